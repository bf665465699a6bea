#include "cli/terminal/plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tenon::cli {
namespace {

struct Range {
  double low = 0, high = 1;
  double part(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

Range x_range(const std::vector<Point>& points) {
  return points.empty() ? Range{} : Range{std::log2(points.front().x), std::log2(points.back().x)};
}

double largest_y(const std::vector<Point>& points) {
  double largest = 0;
  for (const Point& point : points) largest = std::max(largest, point.y);
  return largest > 0 ? largest : 1;
}

std::string shown(double value, std::string (*format)(double)) { return format ? format(value) : fmt::format("{:.3g}", value); }

// A grid of dots, two by four to a character.
class Dots {
 public:
  Dots(int columns, int rows) : columns_(columns), rows_(rows), cells_(static_cast<std::size_t>(columns * rows), 0) {}
  int width() const { return 2 * columns_; }
  int height() const { return 4 * rows_; }

  void set(int x, int y) {
    if (x < 0 || y < 0 || x >= width() || y >= height()) return;
    constexpr int kBit[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    cells_[static_cast<std::size_t>(y / 4 * columns_ + x / 2)] |= kBit[y % 4][x % 2];
  }
  void line(int x0, int y0, int x1, int y1) {
    const int steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1});
    for (int i = 0; i <= steps; ++i)
      set(x0 + static_cast<int>(std::lround(static_cast<double>(x1 - x0) * i / steps)),
          y0 + static_cast<int>(std::lround(static_cast<double>(y1 - y0) * i / steps)));
  }
  std::string row(int row, bool ascii) const {
    std::string text;
    for (int column = 0; column < columns_; ++column) {
      const int dots = cells_[static_cast<std::size_t>(row * columns_ + column)];
      if (ascii) {
        text += dots != 0 ? '*' : ' ';
      } else if (dots == 0) {
        text += ' ';
      } else {
        const int code = 0x2800 + dots;  // three bytes of UTF-8
        text += static_cast<char>(0xE0 | code >> 12);
        text += static_cast<char>(0x80 | (code >> 6 & 0x3F));
        text += static_cast<char>(0x80 | (code & 0x3F));
      }
    }
    return text;
  }

 private:
  int columns_, rows_;
  std::vector<int> cells_;
};

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '<': result += "&lt;"; break;
      case '>': result += "&gt;"; break;
      case '&': result += "&amp;"; break;
      case '"': result += "&quot;"; break;
      default: result += c;
    }
  }
  return result;
}

}  // namespace

std::string plot_text(const Curve& curve, int width, int height, bool ascii) {
  const double top = largest_y(curve.points);
  const std::string highest = shown(top, curve.format_y), lowest = shown(0, curve.format_y);
  const std::size_t margin = std::max(highest.size(), lowest.size());
  const int columns = std::max(10, width - static_cast<int>(margin) - 2), rows = std::max(3, height - 2);
  Dots dots(columns, rows);
  const Range x = x_range(curve.points);
  const auto column_of = [&](double value) {
    return static_cast<int>(std::lround(x.part(std::log2(value)) * (dots.width() - 1)));
  };
  const auto row_of = [&](double value) {
    return dots.height() - 1 - static_cast<int>(std::lround(value / top * (dots.height() - 1)));
  };
  if (curve.mark)
    for (int y = 0; y < dots.height(); y += 2) dots.set(column_of(*curve.mark), y);
  for (std::size_t i = 0; i + 1 < curve.points.size(); ++i)
    dots.line(column_of(curve.points[i].x), row_of(curve.points[i].y), column_of(curve.points[i + 1].x),
              row_of(curve.points[i + 1].y));
  if (curve.points.size() == 1) dots.set(column_of(curve.points[0].x), row_of(curve.points[0].y));

  const char* const bar = ascii ? "|" : "│";
  std::string text = fmt::format("{}\n", curve.title);
  for (int row = 0; row < rows; ++row)
    text += fmt::format("{:>{}} {}{}\n", row == 0 ? highest : row + 1 == rows ? lowest : "", margin, bar, dots.row(row, ascii));
  if (curve.points.empty()) return text;
  const std::string first = fmt::format("{:g}", curve.points.front().x), last = fmt::format("{:g}", curve.points.back().x);
  const std::string middle = curve.mark ? fmt::format("{} {:g}", curve.x_label, *curve.mark) : curve.x_label;
  const int space = columns - static_cast<int>(first.size() + last.size());
  return text + fmt::format("{:>{}}  {}{:^{}}{}\n", "", margin, first, middle, std::max(1, space), last);
}

std::string plot_svg(const Curve& curve) {
  constexpr double kWidth = 720, kHeight = 420, kLeft = 90, kRight = 90, kTop = 50, kBottom = 60;
  const double inner_width = kWidth - kLeft - kRight, inner_height = kHeight - kTop - kBottom;
  const Range x = x_range(curve.points);
  const auto at_x = [&](double value) { return kLeft + x.part(std::log2(value)) * inner_width; };
  const auto path = [&](const std::vector<Point>& points, double top) {
    std::string text;
    for (const Point& point : points)
      text += fmt::format("{}{:.1f},{:.1f}", text.empty() ? "" : " ", at_x(point.x), kTop + (1 - point.y / top) * inner_height);
    return text;
  };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" height=\"{1:g}\" "
      "font-family=\"sans-serif\" font-size=\"13\">\n<title>{2}</title>\n<rect width=\"{0:g}\" height=\"{1:g}\" fill=\"#fff\"/>\n"
      "<text x=\"{3:g}\" y=\"28\" font-size=\"16\">{2}</text>\n",
      kWidth, kHeight, escaped(curve.title), kLeft);
  const double top = largest_y(curve.points), second_top = largest_y(curve.second);
  for (int i = 0; i <= 4; ++i) {
    const double y = kTop + inner_height * (1 - i / 4.0);
    svg += fmt::format("<line x1=\"{:g}\" x2=\"{:g}\" y1=\"{:g}\" y2=\"{:g}\" stroke=\"#ddd\"/>\n", kLeft, kWidth - kRight, y, y);
    svg += fmt::format("<text x=\"{:g}\" y=\"{:g}\" text-anchor=\"end\" fill=\"#0b5fa5\">{}</text>\n", kLeft - 8, y + 4,
                       escaped(shown(top * i / 4, curve.format_y)));
    if (!curve.second.empty())
      svg += fmt::format("<text x=\"{:g}\" y=\"{:g}\" fill=\"#8a4b00\">{}</text>\n", kWidth - kRight + 8, y + 4,
                         escaped(shown(second_top * i / 4, curve.format_second)));
  }
  const std::size_t every = curve.points.size() / 12 + 1;
  for (std::size_t i = 0; i < curve.points.size(); i += every)
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:g}\" text-anchor=\"middle\">{:g}</text>\n", at_x(curve.points[i].x),
                       kHeight - kBottom + 20, curve.points[i].x);
  if (curve.mark && !curve.points.empty())
    svg +=
        fmt::format("<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:g}\" y2=\"{2:g}\" stroke=\"#333\" stroke-dasharray=\"2 4\"/>\n",
                    at_x(*curve.mark), kTop, kHeight - kBottom);
  svg += fmt::format("<polyline fill=\"none\" stroke=\"#0b5fa5\" stroke-width=\"2\" points=\"{}\"/>\n", path(curve.points, top));
  if (!curve.second.empty())
    svg += fmt::format("<polyline fill=\"none\" stroke=\"#8a4b00\" stroke-width=\"2\" stroke-dasharray=\"6 4\" points=\"{}\"/>\n",
                       path(curve.second, second_top));
  svg += fmt::format("<text x=\"{:g}\" y=\"{:g}\" text-anchor=\"middle\">{}</text>\n", kLeft + inner_width / 2, kHeight - 18,
                     escaped(curve.x_label));
  svg += fmt::format("<text x=\"{:g}\" y=\"{:g}\" fill=\"#0b5fa5\">{}</text>\n", kLeft + 8, kTop - 6, escaped(curve.y_label));
  if (!curve.second.empty())
    svg += fmt::format("<text x=\"{:g}\" y=\"{:g}\" text-anchor=\"end\" fill=\"#8a4b00\">{}</text>\n", kWidth - kRight - 8,
                       kTop - 6, escaped(curve.second_label));
  return svg + "</svg>\n";
}

}  // namespace tenon::cli

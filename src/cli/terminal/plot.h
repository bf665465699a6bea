// Curves, in the terminal and as SVG. Both are plain functions of their data: the same curve, the same bytes.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace tenon::cli {

struct Point {
  double x = 0, y = 0;
};

struct Curve {
  std::string title, x_label, y_label;
  std::vector<Point> points;  // by growing x; x is drawn on a logarithmic scale and must be above 0
  std::vector<Point> second;  // another curve with a scale of its own, dashed in SVG, not drawn in the terminal
  std::string second_label;
  std::optional<double> mark;  // an x worth a line
  std::string (*format_y)(double) = nullptr;
  std::string (*format_second)(double) = nullptr;
};

// |width| and |height| in characters, axes included; with dots of Braille, or * where |ascii|. Lines end with a newline.
std::string plot_text(const Curve& curve, int width, int height, bool ascii);
std::string plot_svg(const Curve& curve);

}  // namespace tenon::cli

#include "model/generate/jinja/text_functions.h"

#include <fmt/format.h>

#include <algorithm>
#include <bitset>

#include "base/text/printable.h"
#include "model/generate/jinja/syntax.h"

namespace tenon::jinja {
namespace {

constexpr std::uint64_t kPart = 64;  // charged for each text that is cut from another
constexpr std::string_view kSpaces = " \t\n\r\v\f";

char upper(char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; }
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }
bool is_letter(char c) { return lower(c) >= 'a' && lower(c) <= 'z'; }

Text title(const Text& text) {
  return text.changed([&](char c, std::size_t i) {
    const bool is_inside = i > 0 && (is_letter(text.bytes()[i - 1]) || text.bytes()[i - 1] == '\'');
    return is_inside ? lower(c) : upper(c);
  });
}

enum class Side : std::uint8_t { both, left, right };
Text stripped(Work& work, const Text& text, std::string_view set, Side side) {
  std::size_t begin = 0, end = text.size();
  work.charge(set.size());
  std::bitset<256> is_in;
  for (const char c : set) is_in.set(static_cast<unsigned char>(c));
  const auto goes = [&](std::size_t i) { return is_in[static_cast<unsigned char>(text.bytes()[i])]; };
  if (side != Side::right)
    while (begin < end && goes(begin)) ++begin;
  if (side != Side::left)
    while (end > begin && goes(end - 1)) --end;
  return text.part(begin, end - begin);
}

// Without what Python takes for spaces, beyond ASCII too.
Text stripped(const Text& text, Side side) {
  constexpr std::string_view wide[] = {"\xc2\x85",     "\xc2\xa0",     "\xe1\x9a\x80", "\xe2\x80\x80", "\xe2\x80\x81",
                                       "\xe2\x80\x82", "\xe2\x80\x83", "\xe2\x80\x84", "\xe2\x80\x85", "\xe2\x80\x86",
                                       "\xe2\x80\x87", "\xe2\x80\x88", "\xe2\x80\x89", "\xe2\x80\x8a", "\xe2\x80\xa8",
                                       "\xe2\x80\xa9", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"};
  constexpr std::string_view narrow = " \t\n\r\v\f\x1c\x1d\x1e\x1f";
  std::string_view rest = text.bytes();
  const auto fits = [&](bool at_end) -> std::size_t {  // bytes of the space at an end of |rest|
    if (rest.empty()) return 0;
    if (narrow.find(at_end ? rest.back() : rest.front()) != std::string_view::npos) return 1;
    for (const std::string_view each : wide)
      if (at_end ? rest.ends_with(each) : rest.starts_with(each)) return each.size();
    return 0;
  };
  while (side != Side::right && fits(false) > 0) rest.remove_prefix(fits(false));
  while (side != Side::left && fits(true) > 0) rest.remove_suffix(fits(true));
  return text.part(static_cast<std::size_t>(rest.data() - text.bytes().data()), rest.size());
}

Text replaced(Work& work, const Text& text, const std::string& from, const Text& to, std::int64_t most) {
  if (from.empty()) fail_at(work.line, "'replace' of an empty text");
  Text out;
  std::size_t begin = 0;
  for (std::int64_t count = 0; most < 0 || count < most; ++count) {
    const std::size_t found = find(work, text.bytes(), from, begin);
    if (found == std::string::npos) break;
    work.charge(found - begin + to.size());
    out += text.part(begin, found - begin);
    out += to;
    begin = found + from.size();
  }
  out += text.part(begin);
  return out;
}

// Python's split: between separators, or between runs of spaces.
List split(Work& work, const Text& text, const Value& separator, std::int64_t most) {
  List out;
  std::size_t begin = 0;
  const std::string& bytes = text.bytes();
  work.charge(2 * text.size());
  if (separator.is_undefined() || separator.is_none()) {
    while ((begin = bytes.find_first_not_of(kSpaces, begin)) != std::string::npos) {
      const bool is_last = most >= 0 && static_cast<std::int64_t>(out.size()) >= most;
      const std::size_t end =
          is_last ? bytes.find_last_not_of(kSpaces) + 1 : std::min(bytes.find_first_of(kSpaces, begin), bytes.size());
      work.charge(kPart);
      out.push_back(text.part(begin, end - begin));
      begin = end;
    }
    return out;
  }
  const Text given = needed_text(work, separator, "split");
  const std::string& by = given.bytes();
  if (by.empty()) fail_at(work.line, "'split' by an empty text");
  for (std::size_t end;
       (most < 0 || static_cast<std::int64_t>(out.size()) < most) && (end = find(work, bytes, by, begin)) != std::string::npos;
       begin = end + by.size()) {
    work.charge(kPart);
    out.push_back(text.part(begin, end - begin));
  }
  out.push_back(text.part(begin));
  return out;
}

List split_from_right(Work& work, const Text& text, const Value& separator, std::int64_t most) {
  if (most < 0) return split(work, text, separator, -1);
  const Text given = needed_text(work, separator, "rsplit");
  const std::string& by = given.bytes();
  if (by.empty()) fail_at(work.line, "'rsplit' by an empty text");
  List out;
  std::size_t end = text.size();
  while (static_cast<std::int64_t>(out.size()) < most && end >= by.size()) {
    const std::size_t found = find_last(work, text.bytes(), by, end - by.size());
    if (found == std::string::npos) break;
    work.charge(kPart + end - found);
    out.push_back(text.part(found + by.size(), end - found - by.size()));
    end = found;
  }
  out.push_back(text.part(0, end));
  std::reverse(out.begin(), out.end());
  return out;
}

List lines_of(Work& work, const Text& text) {
  List out;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.bytes().find_first_of("\r\n", begin), text.size());
    work.charge(kPart);
    out.push_back(text.part(begin, end - begin));
    begin = end + (text.bytes().compare(end, 2, "\r\n") == 0 ? 2 : 1);
  }
  return out;
}

Text indented(Work& work, const Text& text, const Arguments& arguments) {
  const Value width = arguments.get(0, "width");
  const std::string by =
      width.text() ? width.text()->bytes()
                   : std::string(static_cast<std::size_t>(std::clamp<std::int64_t>(integer_or(work, width, 4), 0, 1000)), ' ');
  const bool first = arguments.get(1, "first").is_true(), blank = arguments.get(2, "blank").is_true();
  Text out;
  std::size_t begin = 0;
  for (bool is_first = true; begin <= text.size(); is_first = false) {
    const std::size_t end = std::min(text.bytes().find('\n', begin), text.size());
    work.charge(by.size() + 1);
    if (is_first ? first : (blank || end > begin)) out += by;
    out += text.part(begin, end - begin);
    if (end == text.size()) break;
    out += text.part(end, 1);
    begin = end + 1;
  }
  return out;
}

// Whether |part| is at |at|, where it fits and its first byte is.
bool is_at(Work& work, const std::string& text, const std::string& part, std::size_t at) {
  const auto differs = std::mismatch(part.begin(), part.end(), text.begin() + static_cast<std::ptrdiff_t>(at)).first;
  work.charge(static_cast<std::uint64_t>(differs - part.begin()));
  return differs == part.end();
}

}  // namespace

Text without_spaces(const Text& text) { return stripped(text, Side::both); }

std::size_t find(Work& work, const std::string& text, const std::string& part, std::size_t begin) {
  if (part.empty() || part.size() > text.size()) return text.find(part, begin);
  const std::size_t end = text.size() - part.size() + 1;
  for (std::size_t at = begin; (at = text.find(part[0], at)) < end; ++at)
    if (is_at(work, text, part, at)) return at;
  return std::string::npos;
}
std::size_t find_last(Work& work, const std::string& text, const std::string& part, std::size_t last) {
  if (part.empty() || part.size() > text.size()) return text.rfind(part, last);
  for (std::size_t at = std::min(last, text.size() - part.size()); (at = text.rfind(part[0], at)) != std::string::npos; --at) {
    if (is_at(work, text, part, at)) return at;
    if (at == 0) break;
  }
  return std::string::npos;
}

Text needed_text(const Work& work, const Value& value, std::string_view of) {
  if (!value.text()) fail_at(work.line, fmt::format("'{}' takes a text, not {}", of, value.kind()));
  return *value.text();
}
std::int64_t integer_or(const Work& work, const Value& value, std::int64_t otherwise) {
  if (value.is_undefined() || value.is_none()) return otherwise;
  if (!value.get<std::int64_t>() && !value.get<bool>()) fail_at(work.line, fmt::format("{} is not an integer", value.kind()));
  const bool* flag = value.get<bool>();
  return flag ? std::int64_t{*flag} : *value.get<std::int64_t>();
}

Text joined(Work& work, const List& list, const Text& between) {
  Text out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    work.charge(between.size());
    if (i > 0) out += between;
    out += charged_text(work, list[i]);
  }
  return out;
}

std::optional<Value> text_filter(Work& work, const std::string& name, const Text& text, const Arguments& arguments) {
  const auto get = [&](std::size_t place, std::string_view keyword) { return arguments.get(place, keyword); };
  if (name == "trim") {
    const Value set = get(0, "chars");
    return set.text() ? stripped(work, text, set.text()->bytes(), Side::both) : stripped(text, Side::both);
  }
  if (name == "upper") return text.changed([](char c, std::size_t) { return upper(c); });
  if (name == "lower") return text.changed([](char c, std::size_t) { return lower(c); });
  if (name == "title") return title(text);
  if (name == "capitalize") return text.changed([](char c, std::size_t i) { return i == 0 ? upper(c) : lower(c); });
  if (name == "replace")
    return replaced(work, text, needed_text(work, get(0, "old"), name).bytes(), charged_text(work, get(1, "new")),
                    integer_or(work, get(2, "count"), -1));
  if (name == "indent") return indented(work, text, arguments);
  if (name == "safe" || name == "string") return text;
  return std::nullopt;
}

std::optional<Value> text_method(Work& work, const Text& text, const std::string& name, const Arguments& arguments) {
  const std::string& bytes = text.bytes();
  const auto get = [&](std::size_t place, std::string_view keyword = {}) { return arguments.get(place, keyword); };
  const auto strip = [&](Side side) {
    const Value set = get(0);
    return set.text() ? stripped(work, text, set.text()->bytes(), side) : stripped(text, side);
  };
  const auto any = [&](auto fits) -> Value {
    const Value given = get(0);
    const auto holds = [&](const Value& value) {
      const Text part = needed_text(work, value, name);
      work.charge(1 + std::min(part.size(), bytes.size()));
      return bool(fits(part.bytes()));
    };
    if (!given.list()) return holds(given);
    return std::any_of(given.list()->begin(), given.list()->end(), holds);
  };
  work.charge(text.size());
  if (name == "startswith") return any([&](const std::string& part) { return bytes.starts_with(part); });
  if (name == "endswith") return any([&](const std::string& part) { return bytes.ends_with(part); });
  if (name == "strip") return strip(Side::both);
  if (name == "lstrip") return strip(Side::left);
  if (name == "rstrip") return strip(Side::right);
  if (name == "split") return split(work, text, get(0, "sep"), integer_or(work, get(1, "maxsplit"), -1));
  if (name == "rsplit") return split_from_right(work, text, get(0, "sep"), integer_or(work, get(1, "maxsplit"), -1));
  if (name == "splitlines") return lines_of(work, text);
  if (name == "join") return joined(work, elements_of(work, get(0)), text);
  if (name == "removeprefix" || name == "removesuffix") {
    const Text given = needed_text(work, get(0), name);
    const std::string& part = given.bytes();
    if (name == "removeprefix") return bytes.starts_with(part) ? text.part(part.size()) : text;
    return bytes.ends_with(part) ? text.part(0, text.size() - part.size()) : text;
  }
  if (name == "find" || name == "rfind") {
    const Text part = needed_text(work, get(0), name);
    const std::size_t found = name == "find" ? find(work, bytes, part.bytes()) : find_last(work, bytes, part.bytes());
    return found == std::string::npos ? std::int64_t{-1} : std::ssize(characters(bytes.substr(0, found))) - 1;
  }
  if (name == "count") {
    const Text given = needed_text(work, get(0), name);
    const std::string& part = given.bytes();
    std::int64_t count = 0;
    for (std::size_t at = find(work, bytes, part); !part.empty() && at != std::string::npos;
         at = find(work, bytes, part, at + part.size()))
      ++count;
    return count;
  }
  if (name == "format") {
    Text out;
    std::size_t next = 0, begin = 0;
    for (std::size_t at = bytes.find("{}"); at != std::string::npos; at = bytes.find("{}", begin)) {
      out += text.part(begin, at - begin);
      out += charged_text(work, get(next++));
      begin = at + 2;
    }
    if (bytes.find_first_of("{}", begin) != std::string::npos) fail_at(work.line, "'format' takes {} only");
    out += text.part(begin);
    return out;
  }
  if (name == "isdigit")
    return !bytes.empty() && std::all_of(bytes.begin(), bytes.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (name == "isupper" || name == "islower") {
    const bool wants_upper = name == "isupper";
    return std::any_of(bytes.begin(), bytes.end(), is_letter) && std::all_of(bytes.begin(), bytes.end(), [&](char c) {
             return !is_letter(c) || (wants_upper ? upper(c) : lower(c)) == c;
           });
  }
  if (name == "upper" || name == "lower" || name == "title" || name == "capitalize" || name == "replace")
    return text_filter(work, name, text, arguments);
  return std::nullopt;
}

}  // namespace tenon::jinja

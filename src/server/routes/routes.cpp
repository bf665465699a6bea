#include "server/routes/routes.h"

#include <algorithm>

namespace tenon::server {
namespace {

std::vector<std::string_view> split(std::string_view path) {
  std::vector<std::string_view> segments;
  if (path.starts_with('/')) path.remove_prefix(1);
  while (true) {
    const std::size_t slash = path.find('/');
    segments.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return segments;
    path.remove_prefix(slash + 1);
  }
}

}  // namespace

void RouteTable::add(Route route) {
  routes_.push_back(std::move(route));
  const Route& added = routes_.back();
  if (added.path.find('{') == std::string::npos) {
    fixed_[added.path].push_back(&added);
    return;
  }
  std::vector<std::string> segments;
  for (const std::string_view segment : split(added.path)) segments.emplace_back(segment.starts_with('{') ? "" : segment);
  const auto same = std::find_if(patterns_.begin(), patterns_.end(), [&](const Pattern& p) { return p.segments == segments; });
  if (same != patterns_.end()) {
    same->routes.push_back(&added);
  } else {
    patterns_.push_back({std::move(segments), {&added}});
  }
}

RouteTable::Match RouteTable::choose(const std::vector<const Route*>& routes, Method method, std::vector<std::string> arguments) {
  Match match;
  match.arguments = std::move(arguments);
  const Method wanted = method == Method::head ? Method::get : method;
  bool has_get = false;
  for (const Route* route : routes) {
    if (route->method == wanted) match.route = route;
    has_get = has_get || route->method == Method::get;
    match.allow += (match.allow.empty() ? "" : ", ") + std::string(name(route->method));
  }
  match.allow += has_get ? ", HEAD, OPTIONS" : ", OPTIONS";
  return match;
}

RouteTable::Match RouteTable::find(Method method, std::string_view path) const {
  if (const auto found = fixed_.find(path); found != fixed_.end()) return choose(found->second, method, {});
  const std::vector<std::string_view> segments = split(path);
  for (const Pattern& pattern : patterns_) {
    if (pattern.segments.size() != segments.size()) continue;
    std::vector<std::string> arguments;
    bool fits = true;
    for (std::size_t i = 0; i < segments.size() && fits; ++i) {
      if (!pattern.segments[i].empty()) {
        fits = pattern.segments[i] == segments[i];
        continue;
      }
      std::optional<std::string> decoded = percent_decode(segments[i], false);
      fits = decoded && !decoded->empty() && decoded->size() <= 200;
      if (fits) arguments.push_back(std::move(*decoded));
    }
    if (fits) return choose(pattern.routes, method, std::move(arguments));
  }
  return {};
}

}  // namespace tenon::server

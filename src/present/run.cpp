#include "present/run.h"

#include <fmt/format.h>

#include "base/text/units.h"

namespace tenon::present {

void write_timeline(JsonWriter& json, const Timeline& timeline) {
  json.begin_array();
  for (const Span& span : timeline) {
    json.begin_object();
    json.member("stage", span.stage);
    json.seconds("start_seconds", span.start_seconds);
    json.seconds("seconds", span.seconds);
    json.end_object();
  }
  json.end_array();
}

std::string timeline_text(const Timeline& timeline) {
  std::string text;
  for (const Span& span : timeline)
    if (span.seconds > 0) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", span.stage, format_seconds(span.seconds));
  return text;
}

void write_cost(JsonWriter& json, const std::optional<RunCost>& cost) {
  json.key("cost");
  if (!cost) return json.null();
  json.begin_object();
  json.member("dollars", cost->dollars);
  json.member("estimate", cost->is_estimate);
  json.end_object();
}

void write_progress(JsonWriter& json, const Progress& progress) {
  json.begin_object();
  json.member("stage", progress.stage);
  json.text_or_null("device", progress.device);
  json.member("ahead_here", progress.place.ahead_here);
  json.member("ahead_elsewhere", progress.place.ahead_elsewhere);
  json.text_or_null("holder", progress.place.holder);
  json.end_object();
}

std::string progress_text(const Progress& progress) {
  const QueuePlace& place = progress.place;
  if (progress.stage == "opening" || progress.stage == "closing") return progress.stage + " " + progress.device;
  if (progress.stage != "queued") return progress.stage + " on " + progress.device;
  const int ahead = place.ahead_here + place.ahead_elsewhere;
  if (ahead == 0) return "waiting for " + progress.device;
  return fmt::format("waiting for {}: {}{} ahead of this one", progress.device,
                     place.holder.empty() ? "" : "held by " + place.holder + "; ", ahead);
}

}  // namespace tenon::present

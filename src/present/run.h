// A run while it happens and afterwards, as JSON and as text: its stages, and the place in the queue.
#pragma once

#include <string>

#include "base/text/json_writer.h"
#include "tenon/manager.h"

namespace tenon::present {

// [{"stage", "start_seconds", "seconds"}]
void write_timeline(JsonWriter& json, const Timeline& timeline);
// "opening 12.3 ms, computing 4.56 us": the stages that took time.
std::string timeline_text(const Timeline& timeline);

// The member "cost": {"dollars", "estimate"}, null if the device has no price.
void write_cost(JsonWriter& json, const std::optional<RunCost>& cost);

// {"stage", "device", "ahead_here", "ahead_elsewhere", "holder"}
void write_progress(JsonWriter& json, const Progress& progress);
// "opening cuda:0", "computing on cuda:0", "waiting for cuda:0: held by pid 4242 (ada, train.py); 2 ahead of this one"
std::string progress_text(const Progress& progress);

}  // namespace tenon::present

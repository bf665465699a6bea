// A routing decision as JSON and as text: what each device would take, and why one was chosen.
#pragma once

#include <string>
#include <string_view>

#include "base/text/json_writer.h"
#include "present/text.h"
#include "tenon/manager/routing.h"

namespace tenon::present {

// {"requested", "device", "reason", "warning", "considered": [{"device", "eligible", "remark", "queue_seconds", ...,
// "predicted_seconds", "measured", "dollars"}]}. |requested| is the device request the decision answers: "auto", "gpu", "cpu:0".
void write_route(JsonWriter& json, std::string_view requested, const Decision& decision);
// A table and the reason below it; ends with a newline.
std::string route_text(const Decision& decision, const TextStyle& style);

}  // namespace tenon::present

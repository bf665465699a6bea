// What devices were used for and what it cost, as JSON.
#pragma once

#include <optional>

#include "base/text/json_writer.h"
#include "manager/ledger/store.h"

namespace tenon::present {

// |by| names the first member, the sum's key: "device", "program" or "day". None: a total, without a key.
void write_use_sum(JsonWriter& json, const UseSum& sum, std::optional<UseKey> by);
void write_use(JsonWriter& json, const Use& use);

}  // namespace tenon::present

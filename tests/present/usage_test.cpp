#include "present/device/usage.h"

#include "present/present_testing.h"

namespace tenon::present::testing {
namespace {

TEST(UseSum, IsNamedAfterWhatItIsSummedBy) {
  UseSum sum{.key = "cuda:0"};
  sum.runs = 2;
  sum.open_seconds = 1800;
  sum.held_seconds = 900;
  sum.compute_seconds = 450;
  sum.money = 1;
  EXPECT_EQ(json_of([&](JsonWriter& json) { write_use_sum(json, sum, UseKey::device); }),
            R"({"device":"cuda:0","leases":0,"runs":2,"opens":0,"failures":0,"bytes":0,"held_seconds":900.0,)"
            R"("compute_seconds":450.0,"busy_seconds":450.0,"idle_seconds":900.0,"open_seconds":1800.0,)"
            R"("unpriced_open_seconds":0.0,"queued_seconds":0.0,"cost_dollars":1.0,"cost_is_estimate":false,)"
            R"("always_open_cost_dollars":null,"efficiency":0.25})");
  EXPECT_TRUE(
      json_of([&](JsonWriter& json) { write_use_sum(json, sum, UseKey::program); }).starts_with(R"({"program":"cuda:0")"));
  EXPECT_TRUE(json_of([&](JsonWriter& json) { write_use_sum(json, sum, std::nullopt); }).starts_with(R"({"leases":0)"));
}

TEST(Use, HasItsBeginningItsEndAndItsCost) {
  Use use{.begin = SystemTime(std::chrono::seconds(10)), .device = "cuda:0", .kind = "gpu", .program = "train"};
  use.held_seconds = 5;
  use.open_seconds = 1800;
  EXPECT_EQ(json_of([&](JsonWriter& json) { write_use(json, use); }),
            R"({"device":"cuda:0","program":"train","begin":"1970-01-01T00:00:10.000Z","end":"1970-01-01T00:00:15.000Z",)"
            R"("held_seconds":5.0,"compute_seconds":0.0,"busy_seconds":0.0,"open_seconds":1800.0,"queued_seconds":0.0,"runs":0,)"
            R"("cost_dollars":null,"outcome":"ok"})");
  use.price_per_hour = 2;
  EXPECT_NE(json_of([&](JsonWriter& json) { write_use(json, use); }).find(R"("cost_dollars":1.0)"), std::string::npos);
}

}  // namespace
}  // namespace tenon::present::testing

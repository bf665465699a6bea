#include "present/route.h"

#include "present/present_testing.h"

namespace tenon::present::testing {
namespace {

Decision between_three() {
  Decision decision;
  decision.device.id = "cpu:0";
  decision.reason = "fastest: 5 us, against 180 ms on cuda:0";
  Considered chosen, slower, unusable;
  chosen.candidate.device.id = "cpu:0";
  chosen.is_eligible = true;
  chosen.predicted = {.compute_seconds = 5e-6, .is_measured = true};
  chosen.dollars = 0;
  slower.candidate.device.id = "cuda:0";
  slower.is_eligible = true;
  slower.predicted = {.open_seconds = 0.18, .transfer_seconds = 2e-5, .compute_seconds = 1e-5};
  slower.remark = "180 ms slower";
  unusable.candidate.device.id = "tpu:0";
  unusable.remark = "in use by pid 7";
  decision.considered = {chosen, slower, unusable};
  return decision;
}

TEST(Route, JsonHasEveryStageOfEveryDevice) {
  EXPECT_EQ(
      json_of([](JsonWriter& json) { write_route(json, "auto", between_three()); }),
      R"({"requested":"auto","device":"cpu:0","reason":"fastest: 5 us, against 180 ms on cuda:0","warning":null,)"
      R"("considered":[{"device":"cpu:0","eligible":true,"remark":null,"queue_seconds":0.0,"open_seconds":0.0,)"
      R"("compile_seconds":0.0,"transfer_seconds":0.0,"compute_seconds":0.000005,"predicted_seconds":0.000005,"measured":true,)"
      R"("dollars":0.0},{"device":"cuda:0","eligible":true,"remark":"180 ms slower","queue_seconds":0.0,)"
      R"("open_seconds":0.18,"compile_seconds":0.0,"transfer_seconds":0.00002,"compute_seconds":0.00001,)"
      R"("predicted_seconds":0.18003,"measured":false,"dollars":null},{"device":"tpu:0","eligible":false,)"
      R"("remark":"in use by pid 7","queue_seconds":0.0,"open_seconds":0.0,"compile_seconds":0.0,"transfer_seconds":0.0,)"
      R"("compute_seconds":0.0,"predicted_seconds":0.0,"measured":false,"dollars":null}]})");
}

TEST(Route, TextIsATableWithTheReasonBelow) {
  Decision decision = between_three();
  decision.warning = "tpu requested but none was found; using cpu:0";
  EXPECT_EQ(route_text(decision, {}),
            "  DEVICE     QUEUE      OPEN   COMPILE  TRANSFER    COMPUTE     TOTAL      COST\n"
            "* cpu:0          -         -         -         -    5.00 us   5.00 us        $0\n"
            "  cuda:0         -    180 ms         -   20.0 us   ~10.0 us    180 ms         ?\n"
            "         180 ms slower\n"
            "  tpu:0  in use by pid 7\n"
            "cpu:0: fastest: 5 us, against 180 ms on cuda:0\n"
            "warning: tpu requested but none was found; using cpu:0\n"
            "~ estimated from other programs; measured once the program has run there\n");
}

}  // namespace
}  // namespace tenon::present::testing

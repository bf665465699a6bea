#include "present/run.h"

#include "present/present_testing.h"

namespace tenon::present::testing {
namespace {

TEST(Timeline, JsonAndText) {
  const Timeline timeline{{"queued", 0, 0}, {"opening", 0.0125, 0}, {"computing", 4.5e-6, 0.0125}};
  EXPECT_EQ(json_of([&](JsonWriter& json) { write_timeline(json, timeline); }),
            R"([{"stage":"queued","start_seconds":0.0,"seconds":0.0},{"stage":"opening","start_seconds":0.0,"seconds":0.0125},)"
            R"({"stage":"computing","start_seconds":0.0125,"seconds":0.0000045}])");
  EXPECT_EQ(timeline_text(timeline), "opening 12.5 ms, computing 4.50 us");
  EXPECT_EQ(timeline_text({}), "");
}

TEST(Progress, JsonHasThePlaceInTheQueue) {
  EXPECT_EQ(json_of([](JsonWriter& json) { write_progress(json, {"queued", "cuda:0", {1, 2, "pid 7"}}); }),
            R"({"stage":"queued","device":"cuda:0","ahead_here":1,"ahead_elsewhere":2,"holder":"pid 7"})");
  EXPECT_EQ(json_of([](JsonWriter& json) { write_progress(json, {"waiting", "", {}}); }),
            R"({"stage":"waiting","device":null,"ahead_here":0,"ahead_elsewhere":0,"holder":null})");
}

TEST(Progress, TextIsASentence) {
  EXPECT_EQ(progress_text({"opening", "cuda:0", {}}), "opening cuda:0");
  EXPECT_EQ(progress_text({"computing", "cuda:0", {}}), "computing on cuda:0");
  EXPECT_EQ(progress_text({"queued", "cuda:0", {}}), "waiting for cuda:0");
  EXPECT_EQ(progress_text({"queued", "cuda:0", {1, 2, ""}}), "waiting for cuda:0: 3 ahead of this one");
  EXPECT_EQ(progress_text({"queued", "cuda:0", {0, 1, "pid 7"}}), "waiting for cuda:0: held by pid 7; 1 ahead of this one");
}

}  // namespace
}  // namespace tenon::present::testing

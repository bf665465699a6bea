#include "present/device/device_status.h"

#include "present/present_testing.h"

namespace tenon::present::testing {
namespace {

DeviceStatus busy() {
  DeviceStatus status;
  status.device.id = "sim:0";
  status.state = DeviceState::busy;
  status.state_seconds = 0.5;
  status.users = {{"this process", true, true, 0.5}, {"pid 7", false, false, 0.25}};
  status.memory_limit_bytes = 1024;
  status.memory_used_bytes = 512;
  status.policy = "adaptive";
  status.counters.busy_seconds = 2;
  status.counters.idle_seconds = 2;
  status.counters.open_seconds = 4;
  status.counters.compute_seconds = 1;
  return status;
}

TEST(DeviceStatus, SaysWhoHoldsTheDeviceAndHowMuchOfItsTimeItWorked) {
  const std::string text = json_of([](JsonWriter& json) { write_status(json, busy()); });
  EXPECT_TRUE(text.starts_with(
      R"({"state":"busy","reason":null,"state_seconds":0.5,"epoch":0,"users":[{"who":"this process","holding":true,"here":true,)"
      R"("seconds":0.5},{"who":"pid 7","holding":false,"here":false,"seconds":0.25}],"waiting":1,)"
      R"("memory":{"limit_bytes":1024,"used_bytes":512,"peak_bytes":0,"resident_tensors":0},)"
      R"("policy":{"name":"adaptive","threshold_seconds":0.0,"break_even_seconds":0.0,"cost_over_optimum":1.0},)"
      R"("utilisation":0.25,"efficiency":0.25,"open_seconds":4.0,"counters":{"leases":0,)"))
      << text;
  EXPECT_NE(text.find(R"("waits":{"limit_seconds":[1e-05,1e-04,)"), std::string::npos) << text;
}

TEST(DeviceStatus, NamesAnotherProcessThatHoldsTheDevice) {
  DeviceStatus status = busy();
  EXPECT_EQ(holder_elsewhere(status), nullptr) << "this process is the holder";
  status.users = {{"pid 7 (user ada): train.py", true, false, 3}, {"pid 8", false, false, 1}};
  EXPECT_EQ(held_text(status), "sim:0 is held by pid 7 (user ada): train.py for 3.00 s; 1 waits for it");
}

TEST(DeviceStatus, BeforeTheFirstUseThereAreNoRatios) {
  const std::string text = json_of([](JsonWriter& json) { write_status(json, {}); });
  EXPECT_NE(text.find(R"("utilisation":null,"efficiency":null)"), std::string::npos) << text;
}

TEST(DeviceStatus, ADeviceThatNoBackendDrivesHasNone) {
  const std::string text = json_of([](JsonWriter& json) { write_device(json, busy().device, nullptr); });
  EXPECT_TRUE(text.ends_with(R"("details":{},"status":null})")) << text;
}

TEST(Queue, HasHoldersAndWaitersWithWhatIsKnownOfThem) {
  Turnstile::Queue queue{.device = "sim:0", .places = {}, .is_dirty = true};
  Turnstile::Position holder, waiter;
  holder.ticket = 3;
  holder.is_holding = true;
  waiter.ticket = 4;
  waiter.kind = TicketKind::shared;
  queue.places = {holder, waiter};
  EXPECT_EQ(json_of([&](JsonWriter& json) { write_queue(json, queue); }),
            R"({"device":"sim:0","dirty":true,"holders":[{"who":"ticket 3","ticket":3,"mode":"exclusive"}],)"
            R"("waiters":[{"who":"ticket 4","ticket":4,"mode":"shared"}]})");
  queue.places[0].is_known = true;
  queue.places[0].pid = 7;
  queue.places[0].command = "train.py";
  const std::string text = json_of([&](JsonWriter& json) { write_queue(json, queue); });
  for (const char* part : {R"("pid":7)", R"("command":"train.py")", R"("uid":)", R"("seconds":)"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

TEST(DeviceEvent, HasItsTimeTwiceAndItsStages) {
  DeviceEvent event;
  event.kind = DeviceEvent::Kind::ran;
  event.device = "sim:0";
  event.when = std::chrono::system_clock::time_point(std::chrono::milliseconds(1500));
  event.seconds = 0.5;
  event.timeline = {{"computing", 0.5, 0.25}};
  EXPECT_EQ(json_of([&](JsonWriter& json) { write_event(json, event, 17); }),
            R"({"id":17,"kind":"ran","device":"sim:0","when":"1970-01-01T00:00:01.500Z","time":1.5,"seconds":0.5,"message":null,)"
            R"("epoch":0,"program":null,"timeline":[{"stage":"computing","start_seconds":0.25,"seconds":0.5}],"bytes":0})");
}

}  // namespace
}  // namespace tenon::present::testing

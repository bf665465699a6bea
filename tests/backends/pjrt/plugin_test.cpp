// Stand-ins for plugins of all ages: tables of functions that answer as a plugin would.
#include "backends/pjrt/plugin.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "backends/pjrt/client.h"
#include "tenon/error.h"

namespace tenon::pjrt {
namespace {

constexpr std::size_t kSlots = 130;  // more than any version has

// What such a plugin returns as an error.
struct FakeError {
  int code;
  std::string text;
};
int errors_alive = 0;
RawError* make_error(int code, std::string text) {
  ++errors_alive;
  return reinterpret_cast<RawError*>(new FakeError{code, std::move(text)});
}
const FakeError& seen(const RawError* error) { return *reinterpret_cast<const FakeError*>(error); }

RawError* destroy_error(void* args) {
  --errors_alive;
  delete reinterpret_cast<FakeError*>(static_cast<ErrorDestroyArgs*>(args)->error);
  return nullptr;
}
RawError* error_message(void* args) {
  auto* a = static_cast<ErrorMessageArgs*>(args);
  a->message = seen(a->error).text.data();
  a->message_size = seen(a->error).text.size();
  return nullptr;
}
RawError* error_code(void* args) {
  auto* a = static_cast<ErrorCodeArgs*>(args);
  a->code = seen(a->error).code;
  return nullptr;
}
RawError* unimplemented(void*) { return make_error(12, "not here"); }
RawError* exhausted(void*) { return make_error(8, "out of memory"); }
RawError* fine(void*) { return nullptr; }

class FakePlugin {
 public:
  FakePlugin(int minor, std::size_t slots) : memory_(sizeof(Api) + kSlots * sizeof(void*)) {
    Api& api = table();
    api.struct_size = offsetof(Api, functions) + slots * sizeof(void*);
    api.version.major = 0;
    api.version.minor = minor;
    set(Slot::error_destroy, destroy_error);
    set(Slot::error_message, error_message);
    set(Slot::error_code, error_code);
    for (const Slot slot : {Slot::client_create, Slot::client_addressable_devices, Slot::client_compile, Slot::buffer_from_host,
                            Slot::loaded_execute, Slot::buffer_to_host})
      set(slot, unimplemented);
  }
  Api& table() { return *reinterpret_cast<Api*>(memory_.data()); }
  void set(Slot slot, RawError* (*function)(void*)) {
    std::memcpy(memory_.data() + offsetof(Api, functions) + static_cast<std::size_t>(slot) * sizeof(void*), &function,
                sizeof function);
  }

 private:
  std::vector<std::byte> memory_;
};

ErrorCode code_of(auto action) {
  try {
    action();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::ok;
}

TEST(Plugin, OlderAndNewerVersionsThanOursFit) {
  for (const int minor : {57, 81, 114, 300}) {
    FakePlugin fake(minor, kSlots);
    EXPECT_EQ(Plugin("fake", &fake.table()).minor(), minor);
  }
}

TEST(Plugin, VersionsWithAnotherTableAreRefused) {
  FakePlugin old(56, kSlots);
  EXPECT_EQ(code_of([&] { Plugin("fake", &old.table()); }), ErrorCode::unavailable);
  FakePlugin next(80, kSlots);
  next.table().version.major = 1;
  EXPECT_EQ(code_of([&] { Plugin("fake", &next.table()); }), ErrorCode::unavailable);
  EXPECT_EQ(code_of([&] { Plugin("fake", nullptr); }), ErrorCode::unavailable);
}

TEST(Plugin, ATableThatEndsTooEarlyIsRefused) {
  FakePlugin fake(80, 40);  // before loaded_execute
  EXPECT_EQ(code_of([&] { Plugin("fake", &fake.table()); }), ErrorCode::unavailable);
}

TEST(Plugin, AFunctionBeyondTheTableOrNullIsUnimplemented) {
  FakePlugin fake(80, 71);
  const Plugin plugin("fake", &fake.table());
  EXPECT_FALSE(plugin.has(Slot::buffer_ready_event));  // slot 72
  EXPECT_FALSE(plugin.has(Slot::device_memory_stats));
  auto args = make_args<MemoryStatsArgs>();
  EXPECT_EQ(code_of([&] { plugin.call(Slot::device_memory_stats, args); }), ErrorCode::unimplemented);
  plugin.call_quietly(Slot::device_memory_stats, args);
}

TEST(Plugin, ErrorsKeepTheirCodeAndAreFreed) {
  FakePlugin fake(80, kSlots);
  fake.set(Slot::client_compile, exhausted);
  const Plugin plugin("fake", &fake.table());
  auto args = make_args<CompileArgs>();
  try {
    plugin.call(Slot::client_compile, args);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::resource_exhausted);
    EXPECT_STREQ(error.what(), "out of memory");
  }
  EXPECT_EQ(errors_alive, 0);
  plugin.call_quietly(Slot::client_compile, args);
  EXPECT_EQ(errors_alive, 0);
}

TEST(Plugin, WithoutErrorCodesTheCauseIsUnknown) {
  FakePlugin fake(80, kSlots);
  fake.set(Slot::error_code, nullptr);
  const Plugin plugin("fake", &fake.table());
  auto args = make_args<CompileArgs>();
  EXPECT_EQ(code_of([&] { plugin.call(Slot::client_compile, args); }), ErrorCode::unknown);
  EXPECT_EQ(errors_alive, 0);
}

TEST(Plugin, ArgumentsCarryTheSizeUpToTheirLastField) {
  EXPECT_EQ(make_args<MemoryStatsArgs>().header.struct_size, 201u);
  EXPECT_EQ(make_args<ExecuteOptions>().header.struct_size, 144u);
  EXPECT_EQ(make_args<ErrorCodeArgs>().header.struct_size, 28u);
}

TEST(Plugin, EventsThatNeverWereAreDone) {
  FakePlugin fake(80, kSlots);
  fake.set(Slot::event_await, fine);
  const Plugin plugin("fake", &fake.table());
  plugin.await(nullptr);
  plugin.destroy(nullptr);
}

TEST(CompileOptions, PinToOneDevice) {
  const auto bytes = [](std::initializer_list<int> values) {
    std::string text;
    for (const int value : values) text.push_back(static_cast<char>(value));
    return text;
  };
  EXPECT_EQ(compile_options(3), bytes({0x1A, 0x1A, 0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 0x20,
                                       0x01, 0x28, 0x01, 0x4A, 0x09, 0x08, 0x01, 0x10, 0x01, 0x1A, 0x03, 0x0A, 0x01, 0x03}));
  EXPECT_EQ(compile_options(200), bytes({0x1A, 0x1B, 0x08, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 0x20, 0x01,
                                         0x28, 0x01, 0x4A, 0x0A, 0x08, 0x01, 0x10, 0x01, 0x1A, 0x04, 0x0A, 0x02, 0xC8, 0x01}));
}

}  // namespace
}  // namespace tenon::pjrt

#include "backends/cuda/memory/direct_copies.h"

#include "backends/cuda/context.h"

namespace tenon::cuda {

void DirectCopies::pin(std::byte* memory, std::size_t bytes) {
  context_.check(context_.driver().host_register(memory, bytes, 0), "pinning shared memory");
}

void DirectCopies::unpin(std::byte* memory) noexcept { context_.driver().host_unregister(memory); }

void DirectCopies::start_upload(DevicePointer to, const std::byte* from, std::size_t bytes, int slot) {
  context_.check(context_.driver().copy_to_device(to, from, bytes, context_.stream()), "an upload");
  record(slot);
}

void DirectCopies::start_download(std::byte* to, DevicePointer from, std::size_t bytes, int slot) {
  context_.check(context_.driver().copy_to_host(to, from, bytes, context_.stream()), "a download");
  record(slot);
}

void DirectCopies::record(int slot) {
  RawEvent& event = events_[static_cast<std::size_t>(slot)];
  if (!event) context_.check(context_.driver().event_create(&event, kEventDisableTiming), "creating an event");
  context_.check(context_.driver().event_record(event, context_.stream()), "recording an event");
}

bool DirectCopies::is_complete(int slot) {
  const Result result = context_.driver().event_query(events_[static_cast<std::size_t>(slot)]);
  if (result == kNotReady) return false;
  context_.check(result, "a transfer");
  return true;
}

void DirectCopies::close(bool is_lost) noexcept {
  for (RawEvent& event : events_)
    if (RawEvent held = std::exchange(event, nullptr); held && !is_lost) context_.driver().event_destroy(held);
}

}  // namespace tenon::cuda

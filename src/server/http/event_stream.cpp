#include "server/http/event_stream.h"

#include <fmt/format.h>

#include <utility>

namespace tenon::server {

void EventStream::add(std::string text) {
  if (is_ended_) return;
  waiting_bytes_ += text.size();
  waiting_.push_back(std::move(text));
  while (waiting_.size() > kMaxWaiting || (waiting_bytes_ > kMaxWaitingBytes && waiting_.size() > 1)) {
    waiting_bytes_ -= waiting_.front().size();
    waiting_.pop_front();
    ++dropped_;
  }
  if (on_ready) on_ready();
}

void EventStream::send(std::string_view event, std::string_view data, std::uint64_t id) {
  std::string text = fmt::format("event: {}\n", event);
  if (id != 0) text += fmt::format("id: {}\n", id);
  text += "data: ";
  text += data;
  text += "\n\n";
  add(std::move(text));
}

void EventStream::comment() { add(":\n\n"); }

void EventStream::end() {
  is_ended_ = true;
  if (on_ready) on_ready();
}

void EventStream::gone() {
  is_ended_ = true;
  on_ready = nullptr;
  if (auto call = std::exchange(on_gone, nullptr)) call();
}

std::string EventStream::take() {
  std::string text;
  if (dropped_ > 0) text = fmt::format("event: lag\ndata: {{\"dropped\":{}}}\n\n", std::exchange(dropped_, 0));
  for (std::string& event : waiting_) text += event;
  waiting_.clear();
  waiting_bytes_ = 0;
  return text;
}

}  // namespace tenon::server

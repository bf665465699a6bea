// EventStream: server-sent events to one client (text/event-stream).
//
// Events wait here until the connection has sent them. A reader that is too slow loses the oldest waiting ones and is told how
// many ("lag"). Lifetime: shared by the publisher and the connection. Thread safety: everything in the I/O thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace tenon::server {

class EventStream {
 public:
  static constexpr std::size_t kMaxWaiting = 512;
  static constexpr std::size_t kMaxWaitingBytes = std::size_t{4} << 20;

  // |data| is one line of JSON; |id| 0 sends none.
  void send(std::string_view event, std::string_view data, std::uint64_t id = 0);
  void comment();
  // Nothing further; the connection closes when all is sent.
  void end();
  bool is_ended() const noexcept { return is_ended_; }

  // The connection is gone: |on_gone| of the publisher is called, once.
  void gone();
  std::function<void()> on_gone;

  // For the connection: called when there is something to take.
  std::function<void()> on_ready;
  // All that waits, as text for the wire; "" for nothing.
  std::string take();

 private:
  void add(std::string text);

  std::deque<std::string> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::uint64_t dropped_ = 0;
  bool is_ended_ = false;
};

}  // namespace tenon::server

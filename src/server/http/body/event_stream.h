// EventStream: server-sent events to one client (text/event-stream).
//
// Events wait here until the connection has sent them. A reader that is too slow loses the oldest waiting ones and is told how
// many ("lag"). A large text that several streams send is there once (SharedText). Lifetime: shared by the publisher and the
// connection. Thread safety: everything in the I/O thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "server/compute/memory/memory_gate.h"

namespace tenon::server {

// A text that many may hold, with its share of the server's memory: counted once, until the last one drops it.
struct SharedText {
  std::string text;
  MemoryGate::Share memory;
};

class EventStream {
 public:
  // A piece of what goes over the wire: |own|, then |shared|.
  struct Piece {
    std::string own;
    std::shared_ptr<const SharedText> shared;
  };

  static constexpr std::size_t kMaxWaiting = 512;
  static constexpr std::size_t kMaxWaitingBytes = std::size_t{256} << 10;  // of the stream's own
  // What a stream may take: events that wait and those being sent.
  static constexpr std::size_t kMostBytes = 2 * kMaxWaitingBytes;

  // |data| is one line of JSON; |id| 0 sends none, and an |event| of "" no name.
  void send(std::string_view event, std::string_view data, std::uint64_t id = 0);
  // The data is |before|, |shared| and |after|; only the first and the last are copied.
  void send(std::string_view event, std::string_view before, std::shared_ptr<const SharedText> shared, std::string_view after);
  void comment();
  // Events that the connection has not taken yet.
  std::size_t waiting() const noexcept { return waiting_.size(); }
  // Whether a client that loses the connection should ask again: false for the answer to a request.
  bool invites_again = true;
  // Nothing further; the connection closes when all is sent.
  void end();
  bool is_ended() const noexcept { return is_ended_; }

  // The connection is gone: |on_gone| of the publisher is called, once.
  void gone();
  std::function<void()> on_gone;

  // For the connection: called when there is something to take.
  std::function<void()> on_ready;
  // All that waits, as it goes over the wire; empty for nothing.
  std::vector<Piece> take();

 private:
  void add(std::vector<Piece> event);

  std::deque<std::vector<Piece>> waiting_;
  std::size_t waiting_bytes_ = 0;
  std::uint64_t dropped_ = 0;
  bool is_ended_ = false;
};

}  // namespace tenon::server

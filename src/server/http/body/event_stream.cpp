#include "server/http/body/event_stream.h"

#include <fmt/format.h>

#include <utility>

namespace tenon::server {

namespace {

std::string event_head(std::string_view event, std::uint64_t id) {
  if (event.empty()) return "data: ";
  return id == 0 ? fmt::format("event: {}\ndata: ", event) : fmt::format("event: {}\nid: {}\ndata: ", event, id);
}

std::size_t own_bytes(const std::vector<EventStream::Piece>& event) {
  std::size_t bytes = 0;
  for (const EventStream::Piece& piece : event) bytes += piece.own.size();
  return bytes;
}

}  // namespace

void EventStream::add(std::vector<Piece> event) {
  if (is_ended_) return;
  waiting_bytes_ += own_bytes(event);
  waiting_.push_back(std::move(event));
  while (waiting_.size() > kMaxWaiting || (waiting_bytes_ > kMaxWaitingBytes && waiting_.size() > 1)) {
    waiting_bytes_ -= own_bytes(waiting_.front());
    waiting_.pop_front();
    ++dropped_;
  }
  if (on_ready) on_ready();
}

void EventStream::send(std::string_view event, std::string_view data, std::uint64_t id) {
  std::string text = event_head(event, id);
  text += data;
  text += "\n\n";
  std::vector<Piece> pieces(1);
  pieces[0].own = std::move(text);
  add(std::move(pieces));
}

void EventStream::send(std::string_view event, std::string_view before, std::shared_ptr<const SharedText> shared,
                       std::string_view after) {
  std::vector<Piece> pieces(2);
  pieces[0].own = event_head(event, 0);
  pieces[0].own += before;
  pieces[0].shared = std::move(shared);
  pieces[1].own = after;
  pieces[1].own += "\n\n";
  add(std::move(pieces));
}

void EventStream::comment() {
  std::vector<Piece> pieces(1);
  pieces[0].own = ":\n\n";
  add(std::move(pieces));
}

void EventStream::end() {
  is_ended_ = true;
  if (on_ready) on_ready();
}

void EventStream::gone() {
  is_ended_ = true;
  on_ready = nullptr;
  if (auto call = std::exchange(on_gone, nullptr)) call();
}

std::vector<EventStream::Piece> EventStream::take() {
  std::vector<Piece> pieces;
  if (dropped_ > 0)
    pieces.push_back({fmt::format("event: lag\ndata: {{\"dropped\":{}}}\n\n", std::exchange(dropped_, 0)), nullptr});
  for (std::vector<Piece>& event : waiting_) {
    for (Piece& piece : event) {
      if (pieces.empty() || pieces.back().shared) {
        pieces.push_back(std::move(piece));
        continue;
      }
      pieces.back().own += piece.own;
      pieces.back().shared = std::move(piece.shared);
    }
  }
  waiting_.clear();
  waiting_bytes_ = 0;
  return pieces;
}

}  // namespace tenon::server

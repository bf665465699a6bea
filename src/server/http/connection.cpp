#include "server/http/connection.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>
#include <cstring>

#include "base/log.h"
#include "server/http/problem.h"

namespace tenon::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kFirstBuffer = 4096;
constexpr std::size_t kChunkRoom = 16 << 10;
// Bodies from this size on are read to where they stay.
constexpr std::size_t kBlockBytes = 64 << 10;
// Answers up to this size are sent together with their head.
constexpr std::size_t kJoinBytes = 16 << 10;
// A block grows with what has come: a header that announces much must not take arrays from the others.
constexpr std::size_t kFirstBlock = std::size_t{1} << 20;
constexpr std::size_t kBlockGrowth = 4;
// A refused request's body is read and thrown away up to this size, so that the connection can go on.
constexpr std::size_t kSkipBytes = 64 << 10;
constexpr std::size_t kMaxLinger = std::size_t{64} << 20;
constexpr std::size_t kTensorAlignment = 64;
// At most this many answers are sent together.
constexpr std::size_t kSentTogether = 16;
// Written at once at most, so that progress is seen.
constexpr std::size_t kMostWritten = std::size_t{1} << 20;
// A body's share of the server's memory grows in steps of this size.
constexpr std::size_t kShareStep = std::size_t{1} << 20;

constexpr std::string_view kSecurityFields =
    "Content-Security-Policy: default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "X-Frame-Options: DENY\r\n"
    "Referrer-Policy: no-referrer\r\n"
    "Cross-Origin-Opener-Policy: same-origin\r\n"
    "Cross-Origin-Resource-Policy: same-origin\r\n";

bool has_token(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    std::string_view item = list.substr(0, comma);
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
    while (!item.empty() && (item.front() == ' ' || item.front() == '\t')) item.remove_prefix(1);
    while (!item.empty() && (item.back() == ' ' || item.back() == '\t')) item.remove_suffix(1);
    if (equal_ignoring_case(item, token)) return true;
  }
  return false;
}

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, ConnectionHost& host, std::string address)
    : socket_(std::move(socket)),
      host_(host),
      address_(std::move(address)) {}

Connection::~Connection() = default;

void Connection::start(std::list<std::shared_ptr<Connection>>::iterator self) {
  self_ = self;
  ++host_.application.traffic().connections;
  ++host_.of_address[address_];
  guarded([&] {
    buffer_.resize(kFirstBuffer);
    next_request();
  });
}

template <class Step>
void Connection::guarded(Step step) noexcept {
  try {
    try {
      step();
    } catch (const Problem& problem) {
      refuse(problem);
    } catch (const std::exception& error) {
      logging::warn("a connection from {} is closed: {}", address_, error.what());
      const bool is_unanswered = state_ == State::header || state_ == State::body || state_ == State::chunks;
      if (!is_unanswered) return close();
      request_.body = nullptr;
      refuse(Problem(503, "overloaded", "the server is out of memory", "try again in a moment").with_retry(1));
    }
  } catch (...) {
    close();
  }
}

std::size_t Connection::transferred() const noexcept {
  if (state_ == State::chunks) return request_.body ? request_.body->text.size() : 0;
  return state_ == State::body ? body_filled_ : sent_;
}

bool Connection::has_kept_up(std::chrono::milliseconds period) {
  const std::size_t now = transferred();
  const std::size_t least = host_.options.least_bytes_a_second * static_cast<std::size_t>(period.count()) / 1000;
  if (now - checkpoint_ < least) return false;
  checkpoint_ = now;
  return true;
}

void Connection::enter(State state, std::chrono::milliseconds allowed) {
  state_ = state;
  checkpoint_ = 0;
  deadline_ = Clock::now() + allowed;
}

void Connection::close() {
  if (state_ == State::closed) return;
  state_ = State::closed;
  cancel_.request_stop();
  error_code ignored;
  socket_.close(ignored);
  --host_.application.traffic().connections;
  if (const auto count = host_.of_address.find(address_); count != host_.of_address.end() && --count->second == 0)
    host_.of_address.erase(count);
  if (stream_) {
    --host_.application.traffic().streams;
    if (const auto count = host_.streams_of.find(admission_.client.quota);
        count != host_.streams_of.end() && --count->second == 0)
      host_.streams_of.erase(count);
    std::exchange(stream_, nullptr)->gone();
    stream_memory_ = {};
  }
  host_.connections.erase(self_);
}

void Connection::tick(Clock::time_point now) {
  if (state_ == State::answering) {
    // The client may have gone while its answer was being computed; then nobody needs it.
    char byte;
    if (recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) cancel_.request_stop();
    return;
  }
  if (now < deadline_) return;
  const bool is_body = state_ == State::body || state_ == State::chunks;
  const bool is_answer = state_ == State::writing || (state_ == State::streaming && is_writing_events_);
  const std::chrono::milliseconds period = is_body ? host_.options.body_timeout : host_.options.write_timeout;
  if ((is_body || is_answer) && has_kept_up(period)) {
    deadline_ = now + period;
    return;
  }
  if (state_ == State::streaming) {
    if (is_writing_events_) return close();
    deadline_ = now + std::chrono::seconds(15);
    stream_->comment();
    return;
  }
  const bool asked = is_body || (state_ == State::header && has_begun_);
  if (!asked) return close();
  ++host_.application.traffic().timed_out;
  // The pending read must not complete behind the answer.
  error_code ignored;
  socket_.cancel(ignored);
  refuse(Problem(408, "deadline_exceeded", "the request did not arrive in time"));
}

void Connection::drain() {
  if (is_idle()) return close();
  closes_after_ = true;
  if (stream_) stream_->end();
}

// --- Reading ---

void Connection::next_request() {
  began_ = {};
  scanned_ = 0;
  // Views of the last request point to bytes that are about to be overwritten.
  request_.fields.clear();
  request_.body = nullptr;
  request_.method = Method::other;
  request_.method_text = request_.target = request_.query = {};
  request_.path = "/";
  request_.version = 11;
  admission_ = {};
  parser_.reset();
  closes_after_ = host_.is_draining;
  if (begin_ == end_) {
    begin_ = end_ = 0;
    if (closes_after_) return close();
    if (buffer_.size() > kFirstBuffer * 4) {
      buffer_.resize(kFirstBuffer);
      buffer_.shrink_to_fit();
    }
  }
  has_begun_ = begin_ != end_;
  enter(State::header, has_begun_ || !has_served_ ? host_.options.header_timeout : host_.options.idle_timeout);
  read_header();
}

std::size_t Connection::find_header_end() {
  // Empty lines before a request are forgiven (RFC 9112).
  while (end_ - begin_ >= 2 && buffer_[begin_] == '\r' && buffer_[begin_ + 1] == '\n') begin_ += 2, scanned_ = 0;
  return server::find_header_end({buffer_.data() + begin_, end_ - begin_}, scanned_);
}

void Connection::read_header() {
  try {
    if (const std::size_t length = find_header_end(); length > 0) {
      if (length > host_.options.max_header_bytes) throw Problem(431, "too_large", "the header is too long");
      return header_arrived(length);
    }
    if (end_ - begin_ >= host_.options.max_header_bytes)
      throw Problem(431, "too_large", fmt::format("the header is longer than {} bytes", host_.options.max_header_bytes));
  } catch (const Problem& problem) {
    ++host_.application.traffic().malformed;
    return refuse(problem);
  }
  if (end_ == buffer_.size()) {
    if (begin_ > 0) {
      std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
      end_ -= begin_;
      begin_ = 0;
    } else {
      buffer_.resize(std::min(buffer_.size() * 2, host_.options.max_header_bytes + kFirstBuffer));
    }
  }
  socket_.async_read_some(asio::buffer(buffer_.data() + end_, buffer_.size() - end_),
                          [self = shared_from_this()](error_code error, std::size_t bytes) {
                            if (self->state_ != State::header) return;
                            if (error) return self->close();
                            if (!self->has_begun_) self->enter(State::header, self->host_.options.header_timeout);
                            self->has_begun_ = true;
                            self->end_ += bytes;
                            self->guarded([&] { self->read_header(); });
                          });
}

bool Connection::check_message() const {
  if (request_.version >= 11 && request_.count("Host") != 1) return false;
  return request_.count("Host") <= 1;
}

void Connection::header_arrived(std::size_t length) {
  began_ = Clock::now();
  // The header is parsed where it lies, so room for a chunked body must be there before.
  if (buffer_.size() - begin_ - length < kChunkRoom &&
      std::string_view(buffer_.data() + begin_, length).find("hunked") != std::string_view::npos)
    buffer_.resize(begin_ + length + kChunkRoom);
  const std::string_view header(buffer_.data() + begin_, length);
  parser_.emplace(request_, header);
  begin_ += length;
  chunks_at_ = begin_;
  const std::string_view connection = request_.field("Connection");
  request_.keep_alive = request_.version >= 11 ? !has_token(connection, "close") : has_token(connection, "keep-alive");
  if (!request_.keep_alive) closes_after_ = true;
  if (!check_message()) throw Problem(400, "invalid_argument", "a request needs exactly one Host field");

  admission_ = host_.application.admit(request_, address_);
  const bool is_chunked = parser_->chunked();
  const auto content_length = parser_->content_length();
  // Exactly "chunked", once, and not with HTTP/1.0, which does not know it: a proxy in front may read anything else differently.
  const std::string_view encoding = request_.field("Transfer-Encoding");
  const bool is_plain_chunked = is_chunked && equal_ignoring_case(encoding, "chunked") &&
                                request_.count("Transfer-Encoding") == 1 && request_.version >= 11;
  if (!encoding.empty() && !is_plain_chunked) throw Problem(501, "unimplemented", "only chunked transfer encoding is supported");
  const std::uint64_t declared = content_length ? *content_length : 0;
  if (admission_.refusal && (is_chunked || declared > kSkipBytes)) {
    closes_after_ = true;
    return respond(std::move(*admission_.refusal));
  }
  const std::size_t limit = admission_.refusal ? kSkipBytes : admission_.max_body_bytes;
  if (declared > limit) {
    closes_after_ = true;
    return respond(Problem(413, "too_large", fmt::format("the body has {} bytes, more than the limit of {}", declared, limit))
                       .response(request_.path, admission_.request_id));
  }
  if (is_chunked) {
    enter(State::chunks, host_.options.body_timeout);
    if (equal_ignoring_case(request_.field("Expect"), "100-continue") && begin_ == end_) return send_continue();
    return parse_chunks();
  }
  parser_.reset();
  if (declared == 0) return body_arrived();
  begin_body(declared);
}

void Connection::begin_body(std::uint64_t length) {
  auto body = std::make_shared<Body>();
  const auto size = static_cast<std::size_t>(length);
  const std::size_t here = std::min(size, end_ - begin_);
  if (size >= kBlockBytes) {
    body->memory = host_.application.memory().take(admission_.client.quota, here);
    std::size_t json = 0;
    const std::string_view prefix = request_.field("Inference-Header-Content-Length");
    for (const char c : prefix.substr(0, 9))
      if (c >= '0' && c <= '9') json = json * 10 + static_cast<std::size_t>(c - '0');
    body->offset = (kTensorAlignment - json % kTensorAlignment) % kTensorAlignment;
    body->size = size;
    body->reserve(0, std::max(here, kFirstBlock));
    std::memcpy(body->block.mutable_data() + body->offset, buffer_.data() + begin_, here);
  } else {
    body->text.reserve(size);
    body->text.assign(buffer_.data() + begin_, here);
    body->text.resize(size);
  }
  request_.body = std::move(body);
  begin_ += here;
  body_filled_ = here;
  if (here == size) return body_arrived();
  enter(State::body, host_.options.body_timeout);
  if (equal_ignoring_case(request_.field("Expect"), "100-continue")) return send_continue();
  read_body();
}

void Connection::send_continue() {
  static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  asio::async_write(socket_, asio::buffer(kContinue), [self = shared_from_this()](error_code error, std::size_t) {
    if (self->state_ != State::body && self->state_ != State::chunks) return;
    if (error) return self->close();
    self->guarded([&] { self->state_ == State::chunks ? self->read_chunks() : self->read_body(); });
  });
}

void Connection::read_body() {
  Body& body = *request_.body;
  const bool is_block = body.size > 0;
  const std::size_t size = is_block ? body.size : body.text.size();
  if (is_block && body_filled_ == body.room()) body.reserve(body_filled_, body.room() * kBlockGrowth);
  char* const data = is_block ? reinterpret_cast<char*>(body.block.mutable_data()) + body.offset : body.text.data();
  const std::size_t room = is_block ? body.room() : size;
  socket_.async_read_some(asio::buffer(data + body_filled_, room - body_filled_),
                          [self = shared_from_this(), size](error_code error, std::size_t bytes) {
                            if (self->state_ != State::body) return;
                            if (error) return self->close();
                            self->body_filled_ += bytes;
                            self->guarded([&] {
                              self->count_body(self->body_filled_);
                              if (self->body_filled_ < size) return self->read_body();
                              self->body_arrived();
                            });
                          });
}

// A body takes its share of the server's memory as it comes: a header alone reserves nothing.
void Connection::count_body(std::size_t bytes) {
  MemoryGate::Share& share = request_.body->memory;
  if (bytes < kBlockBytes) return;
  if (!share) share = host_.application.memory().take(admission_.client.quota, 0);
  const std::size_t whole = request_.body->size > 0 ? request_.body->size : SIZE_MAX;
  share.grow_to(std::min((bytes + kShareStep - 1) / kShareStep * kShareStep, whole));
}

void Connection::read_chunks() {
  if (begin_ == end_) begin_ = end_ = chunks_at_;
  if (end_ == buffer_.size()) {
    std::memmove(buffer_.data() + chunks_at_, buffer_.data() + begin_, end_ - begin_);
    end_ = chunks_at_ + (end_ - begin_);
    begin_ = chunks_at_;
  }
  if (end_ == buffer_.size()) return refuse(Problem(400, "invalid_argument", "the header of a chunk is too long"));
  socket_.async_read_some(asio::buffer(buffer_.data() + end_, buffer_.size() - end_),
                          [self = shared_from_this()](error_code error, std::size_t bytes) {
                            if (self->state_ != State::chunks) return;
                            if (error) return self->close();
                            self->end_ += bytes;
                            self->guarded([&] { self->parse_chunks(); });
                          });
}

void Connection::parse_chunks() {
  try {
    while (begin_ < end_) {
      const std::size_t limit = admission_.max_body_bytes;
      const std::size_t used = parser_->put_chunks({buffer_.data() + begin_, end_ - begin_}, limit);
      begin_ += used;
      if (request_.body) count_body(request_.body->text.size());
      if (parser_->is_done()) return body_arrived();
      if (used == 0) break;
    }
  } catch (const Problem& problem) {
    return refuse(problem);
  }
  read_chunks();
}

void Connection::body_arrived() {
  if (admission_.refusal) return respond(std::move(*admission_.refusal));
  state_ = State::answering;
  cancel_ = std::stop_source();
  host_.application.answer(request_, admission_, cancel_.get_token(), [self = shared_from_this()](Response response) {
    self->guarded([&] { self->respond(std::move(response)); });
  });
}

// --- Writing ---

void Connection::refuse(const Problem& problem) {
  closes_after_ = true;
  if (admission_.request_id.empty()) admission_.request_id = "malformed";
  respond(problem.response(request_.path, admission_.request_id));
}

void Connection::build_head(const Response& response, std::size_t bytes) {
  const auto field = [&](std::string_view name, std::string_view value) {
    head_ += name;
    head_ += ": ";
    head_ += value;
    head_ += "\r\n";
  };
  head_.clear();
  head_ += "HTTP/1.1 ";
  head_ += fmt::format_int(response.status).c_str();
  head_ += ' ';
  head_ += reason_phrase(response.status);
  head_ += "\r\n";
  field("Date", host_.date);
  field("X-Request-Id", admission_.request_id);
  const bool has_body = response.status != 204 && response.status != 304;
  if (has_body && !response.content_type.empty()) field("Content-Type", response.content_type);
  if (has_body && !response.stream) field("Content-Length", fmt::format_int(bytes).c_str());
  bool is_cached = false;
  for (const auto& [name, value] : response.fields) {
    is_cached = is_cached || name == "Cache-Control";
    field(name, value);
  }
  if (!is_cached) field("Cache-Control", "no-store");
  if (const std::string_view trace = request_.field("traceparent"); !trace.empty() && trace.size() <= 128)
    field("traceparent", trace);
  head_ += kSecurityFields;
  if (closes_after_)
    field("Connection", "close");
  else if (request_.version < 11)
    field("Connection", "keep-alive");
  head_ += "\r\n";
}

void Connection::respond(Response response) {
  const bool is_head = request_.method == Method::head;
  // Nobody will read this stream: its publisher must not keep it.
  const auto end_stream = [&] { std::exchange(response.stream, nullptr)->gone(); };
  if (response.stream && (state_ == State::closed || is_head)) end_stream();
  if (state_ == State::closed) return;
  if (response.stream) {
    const auto mine = host_.streams_of.find(admission_.client.quota);
    const std::size_t most = std::max<std::size_t>(1, host_.options.max_streams / 4);
    const auto refuse = [&](const Problem& problem) {
      end_stream();
      response = problem.response(request_.path, admission_.request_id);
    };
    if (host_.application.traffic().streams >= host_.options.max_streams)
      refuse(Problem(503, "overloaded", "too many event streams are open").with_retry(10));
    else if (mine != host_.streams_of.end() && mine->second >= most)
      refuse(Problem(429, "resource_exhausted", fmt::format("this client already has {} event streams", mine->second),
                     "close one of them; a quarter of all streams is the most that one client has")
                 .with_retry(10));
  }
  if (response.stream) {
    auto memory = host_.application.memory().try_take(admission_.client.quota, EventStream::kMostBytes);
    if (!memory) {
      end_stream();
      response = Problem(503, "overloaded", "there is no memory for a further event stream")
                     .with_retry(10)
                     .response(request_.path, admission_.request_id);
    } else {
      stream_memory_ = std::move(*memory);
    }
  }
  response_ = std::move(response);
  if (response_.close || response_.stream) closes_after_ = true;
  const std::size_t bytes = response_.bytes();
  const double seconds = began_ == Clock::time_point{} ? 0 : std::chrono::duration<double>(Clock::now() - began_).count();
  host_.application.finished(request_, admission_, response_, seconds);
  build_head(response_, bytes);
  const bool has_body = !is_head && response_.status != 204 && response_.status != 304;
  if (response_.stream) {
    stream_ = response_.stream;
    ++host_.application.traffic().streams;
    ++host_.streams_of[admission_.client.quota];
    return begin_stream();
  }
  has_served_ = true;
  sent_ = 0;
  enter(State::writing, host_.options.write_timeout);
  if (!has_body) {
    response_ = {};
  } else if (response_.fixed.empty() && response_.tail.empty() && response_.body.size() <= kJoinBytes) {
    head_ += response_.body;
    response_.body.clear();
  }
  send_soon();
}

void Connection::send_soon() {
  std::vector<std::shared_ptr<Connection>>& unsent = host_.unsent;
  unsent.push_back(shared_from_this());
  const auto send_all = [&unsent] {
    for (const std::shared_ptr<Connection>& connection : std::exchange(unsent, {}))
      connection->guarded([&] { connection->send(); });
  };
  if (unsent.size() == kSentTogether) return send_all();
  // Behind what is ready to run now, the requests that came at the same time among it.
  if (unsent.size() == 1) asio::post(socket_.get_executor(), send_all);
}

void Connection::send() {
  if (state_ != State::writing) return;
  const auto done = [self = shared_from_this()](error_code error, std::size_t) { self->guarded([&] { self->written(error); }); };
  if (response_.bytes() == 0) return asio::async_write(socket_, asio::buffer(head_), done);
  const auto progress = [this](error_code error, std::size_t bytes) {
    sent_ = bytes;
    return error ? std::size_t{0} : kMostWritten;
  };
  std::vector<asio::const_buffer> pieces{asio::buffer(head_)};
  if (!response_.fixed.empty()) {
    pieces.emplace_back(response_.fixed.data(), response_.fixed.size());
  } else {
    if (!response_.body.empty()) pieces.emplace_back(asio::buffer(response_.body));
    for (const HostArray& array : response_.tail) pieces.emplace_back(array.data(), array.bytes());
  }
  asio::async_write(socket_, pieces, progress, done);
}

void Connection::written(error_code error) {
  if (state_ == State::closed) return;
  if (error) return close();
  request_.body = nullptr;
  response_ = {};
  if (!closes_after_) return next_request();
  linger();
}

// A close while bytes of the client are unread would reset the connection, and the client might never see the answer.
void Connection::linger() {
  error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  if (state_ != State::lingering) enter(State::lingering, std::chrono::seconds(2));
  socket_.async_read_some(asio::buffer(discarded_), [self = shared_from_this()](error_code error, std::size_t bytes) {
    if (self->state_ != State::lingering) return;
    self->lingered_ += bytes;
    if (error || self->lingered_ > kMaxLinger) return self->close();
    self->linger();
  });
}

// --- Events ---

void Connection::begin_stream() {
  enter(State::streaming, std::chrono::seconds(15));
  stream_->on_ready = [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->write_events();
  };
  events_ = stream_->take();
  events_.insert(events_.begin(), EventStream::Piece{stream_->invites_again ? head_ + "retry: 2000\n\n" : head_, nullptr});
  send_events();
  // Whatever the client sends now is not looked at; that it closes is.
  auto discard = std::make_shared<std::function<void()>>();
  *discard = [self = weak_from_this(), weak = std::weak_ptr(discard)] {
    const auto connection = self.lock();
    const auto again = weak.lock();
    if (!connection || !again) return;
    connection->socket_.async_read_some(asio::buffer(connection->discarded_), [connection, again](error_code error, std::size_t) {
      if (connection->state_ != State::streaming) return;
      if (error) return connection->close();
      (*again)();
    });
  };
  (*discard)();
}

void Connection::write_events() {
  if (state_ != State::streaming || is_writing_events_) return;
  events_ = stream_->take();
  if (events_.empty()) {
    if (stream_->is_ended()) linger();
    return;
  }
  send_events();
}

void Connection::send_events() {
  is_writing_events_ = true;
  sent_ = checkpoint_ = 0;
  deadline_ = Clock::now() + host_.options.write_timeout;
  const auto progress = [this](error_code error, std::size_t bytes) {
    sent_ = bytes;
    return error ? std::size_t{0} : kMostWritten;
  };
  std::vector<asio::const_buffer> buffers;
  for (const EventStream::Piece& piece : events_) {
    buffers.emplace_back(asio::buffer(piece.own));
    if (piece.shared) buffers.emplace_back(asio::buffer(piece.shared->text));
  }
  asio::async_write(socket_, buffers, progress, [self = shared_from_this()](error_code error, std::size_t) {
    self->is_writing_events_ = false;
    if (self->state_ != State::streaming) return;
    if (error) return self->close();
    self->events_.clear();
    self->deadline_ = Clock::now() + std::chrono::seconds(15);
    self->guarded([&] { self->write_events(); });
  });
}

}  // namespace tenon::server

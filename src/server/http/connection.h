// Connection: one client's socket: requests in, answers out, in order; or a stream of events.
//
// States: reading the header, reading the body, answering, writing, streaming, lingering (the answer to a bad request is sent,
// what still comes is thrown away), closed. Every state but answering and streaming has a deadline; the server's tick looks at
// it. Lifetime: held by its pending operations and by the server's list. Thread safety: everything in the I/O thread.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/application.h"
#include "server/http/body/event_stream.h"
#include "server/http/message.h"
#include "server/http/problem.h"
#include "server/http/request_parser.h"
#include "server/options.h"

namespace tenon::server {

class Connection;

// What connections share.
struct ConnectionHost {
  const ServerOptions& options;
  Application& application;
  std::list<std::shared_ptr<Connection>> connections = {};
  std::unordered_map<std::string, std::size_t> of_address = {};  // how many of them
  std::unordered_map<std::string, std::size_t> streams_of = {};  // event streams of each account or network
  std::string date = {};                                         // of the Date field, renewed by the tick
  bool is_draining = false;
  // Answers that are ready. They are sent together, when the requests that have come are looked at: computing and sending in turn
  // would make each evict the other from the CPU's caches, and wake the client for every answer.
  std::vector<std::shared_ptr<Connection>> unsent = {};
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Clock = std::chrono::steady_clock;

  Connection(boost::asio::ip::tcp::socket socket, ConnectionHost& host, std::string address);
  ~Connection();

  void start(std::list<std::shared_ptr<Connection>>::iterator self);
  const std::string& address() const noexcept { return address_; }
  void tick(Clock::time_point now);
  // Ends at once if it is between requests, else after the answer.
  void drain();
  // What it waits for is not wanted any more; its answer will say so.
  void cancel() noexcept { cancel_.request_stop(); }
  void close();
  bool is_idle() const noexcept { return state_ == State::header && begin_ == end_; }

 private:
  enum class State : std::uint8_t { header, body, chunks, answering, writing, streaming, lingering, closed };

  void next_request();
  void read_header();
  // The end of the header in the buffer; 0 when it has not come yet. Throws Problem.
  std::size_t find_header_end();
  void header_arrived(std::size_t length);
  void begin_body(std::uint64_t length);
  void read_body();
  void read_chunks();
  void parse_chunks();
  void send_continue();
  void body_arrived();
  void respond(Response response);
  void send_soon();
  void send();
  void refuse(const Problem& problem);
  void written(boost::system::error_code error);
  void begin_stream();
  void write_events();
  void send_events();
  void linger();
  void enter(State state, std::chrono::milliseconds allowed);
  // Runs |step| in a completion handler: what it throws costs this connection, never the server.
  template <class Step>
  void guarded(Step step) noexcept;
  // Bytes of the body or the answer that have gone over the wire, and whether they keep up with the least rate.
  std::size_t transferred() const noexcept;
  bool has_kept_up(std::chrono::milliseconds period);
  void count_body(std::size_t bytes);
  bool check_message() const;
  void build_head(const Response& response, std::size_t bytes);

  boost::asio::ip::tcp::socket socket_;
  ConnectionHost& host_;
  std::list<std::shared_ptr<Connection>>::iterator self_;
  const std::string address_;

  State state_ = State::header;
  Clock::time_point deadline_, began_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;  // bytes not parsed yet
  std::size_t scanned_ = 0;          // of them, without a header's end
  std::size_t chunks_at_ = 0;        // where a chunked body may be read to: behind the header

  Request request_;
  Admission admission_;
  std::optional<RequestParser> parser_;  // while a chunked body comes
  std::size_t body_filled_ = 0;
  std::size_t sent_ = 0;        // of the answer
  std::size_t checkpoint_ = 0;  // transferred() when the deadline was last moved
  std::stop_source cancel_;
  bool closes_after_ = false;
  bool has_begun_ = false;   // bytes of the next request have come
  bool has_served_ = false;  // a request has been answered

  std::string head_;
  Response response_;
  std::shared_ptr<EventStream> stream_;
  std::vector<EventStream::Piece> events_;  // being sent
  MemoryGate::Share stream_memory_;
  bool is_writing_events_ = false;
  std::size_t lingered_ = 0;
  char discarded_[1024];
};

}  // namespace tenon::server

// Request and Response: HTTP messages as handlers see them, whatever parses and writes them.
//
// Lifetime: a Request belongs to its connection and is valid until the answer is finished; a handler copies what it keeps, the
// body's shared pointer included. Thread safety: used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/compute/memory/memory_gate.h"
#include "tenon/array.h"

namespace tenon::server {

class EventStream;

enum class Method : std::uint8_t { get, head, post, put, patch, delete_, options, other };
std::string_view name(Method method) noexcept;

struct Field {
  std::string_view name, value;
};

// The bytes after the header. Large ones lie in pooled memory, so that tensors in them can be used where they are.
struct Body {
  std::string text;
  HostArray block;         // instead of |text|
  std::size_t offset = 0;  // in |block|: chosen so that the tensor behind an inference header is aligned
  std::size_t size = 0;    // in |block|, when all of it has come
  MemoryGate::Share memory;

  // Bytes that fit into |block| now.
  std::size_t room() const noexcept { return block.bytes() - offset; }
  // Makes room for |wanted| bytes, at most |size|, and keeps the first |filled|.
  void reserve(std::size_t filled, std::size_t wanted);

  std::string_view view() const noexcept {
    if (block.bytes() == 0) return text;
    return {reinterpret_cast<const char*>(block.data()) + offset, size};
  }
};

struct Request {
  Method method = Method::other;
  std::string_view method_text;
  std::string_view target;  // as sent
  std::string_view path;    // of the target, not decoded
  std::string_view query;   // behind the '?'
  int version = 11;
  bool keep_alive = true;
  std::vector<Field> fields;
  std::shared_ptr<Body> body;

  // The first field of this name, in any case; "" for none.
  std::string_view field(std::string_view name) const noexcept;
  std::size_t count(std::string_view name) const noexcept;
  std::string_view text() const noexcept { return body ? body->view() : std::string_view(); }
  // A parameter of the query, decoded.
  std::optional<std::string> parameter(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> fields;
  std::string body;
  std::vector<HostArray> tail;                // bytes that follow |body|, sent from where they are
  std::span<const unsigned char> fixed = {};  // instead of |body|: bytes that live as long as the program
  std::shared_ptr<EventStream> stream;        // instead of a body
  bool close = false;                         // the connection ends afterwards
  MemoryGate::Share memory;                   // held until it is sent
  bool is_counted = false;                    // its bytes have their share elsewhere

  std::size_t bytes() const noexcept;
};

// Who asks, as far as it is known.
struct Client {
  std::string address;
  std::string account;  // "" without a login
  std::string key;      // what lists go by: the account, else the address
  std::string quota;    // what limits go by: the account, else the network of the address
};

// One request on its way through a handler.
struct Call {
  const Request& request;
  const Client& client;
  const std::string& id;               // the request's
  std::vector<std::string> arguments;  // what {name} in the route's path stands for, decoded
  std::stop_token cancel = {};         // the client is gone
};

// "%41+b" -> "A b" (plus only in queries). None for a malformed escape or a NUL.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);
bool equal_ignoring_case(std::string_view a, std::string_view b) noexcept;

}  // namespace tenon::server

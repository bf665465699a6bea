// RouteTable: every route of the server, in one list: what answers, where it runs, who may ask, and what /openapi.json says.
//
// Lifetime: filled before the server listens, then only read. Thread safety: reading may run side by side.
//
//   table.add({.method = Method::get, .path = "/api/jobs/{id}", .summary = "One job", .handler = ...});
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "server/http/message.h"

namespace tenon::server {

using Handler = std::function<Response(const Call&)>;
// The answer if it can be given without waiting for anything; runs in the I/O thread.
using QuickHandler = std::function<std::optional<Response>(const Call&)>;
// Answers later: |finish| is called once, by any thread, with what makes the answer or throws. The Call's references stay valid
// until then. No thread has to wait meanwhile.
using Finish = std::function<void(std::function<Response()>)>;
using LongHandler = std::function<void(const Call&, Finish)>;

enum class Runs : std::uint8_t {
  here,       // in the I/O thread: answers in microseconds from memory
  in_worker,  // may read the machine or copy much, but neither computes nor waits for a device: threads are kept for these
  computing,  // may compute, or wait for a device
};
enum class Access : std::uint8_t { login, open };  // needs a session or a token where the server has a login; open to all
enum class BodyKind : std::uint8_t { none, json, bytes, form_or_json, inference };

struct Route {
  Method method = Method::get;
  std::string path;  // "/api/jobs/{id}"
  std::string tag;   // groups routes in documents
  std::string summary;
  Runs runs = Runs::here;
  Access access = Access::login;
  BodyKind body = BodyKind::none;
  std::size_t max_body_bytes = 0;    // 0: the server's limit for bodies of this kind
  std::string request_schema = {};   // a name of openapi_schemas(), or JSON text
  std::string response_schema = {};  // likewise; of status |success|
  int success = 200;
  std::string media = "application/json";    // of the answer
  std::vector<std::string> parameters = {};  // of the query: "since: integer", or a schema
  std::vector<int> failures = {};            // statuses beyond those every route may have
  bool renews_session = true;
  Handler handler = {};
  LongHandler begin = {};  // instead of |handler|, in a worker
  QuickHandler quick = {};
  // Which queue of the threads it joins: requests of one queue cannot take all of them. {}: by path.
  std::function<std::string(const Call&)> queue_key = {};
};

class RouteTable {
 public:
  struct Match {
    const Route* route = nullptr;  // nullptr: nothing at this path, or not with this method
    std::vector<std::string> arguments = {};
    std::string allow = {};  // methods there are at this path; "" when there is none
  };

  void add(Route route);
  // HEAD finds what GET would.
  Match find(Method method, std::string_view path) const;
  const std::deque<Route>& all() const noexcept { return routes_; }

 private:
  struct Pattern {
    std::vector<std::string> segments;  // "" for {name}
    std::vector<const Route*> routes;
  };
  static Match choose(const std::vector<const Route*>& routes, Method method, std::vector<std::string> arguments);

  std::deque<Route> routes_;
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, std::vector<const Route*>, Hash, std::equal_to<>> fixed_;
  std::vector<Pattern> patterns_;
};

}  // namespace tenon::server

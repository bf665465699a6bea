#include "server/application.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "base/log.h"
#include "base/system/memory_limit.h"
#include "base/text/printable.h"
#include "base/threads/stop_scope.h"
#include "base/threads/thread_pool.h"
#include "server/access/origin.h"
#include "server/compute/memory/freed_memory.h"
#include "server/compute/thread_priority.h"
#include "server/http/problem.h"
#include "server/services.h"
#include "server/watch/snapshot.h"

namespace tenon::server {
namespace {

// Several routes can be slow at once (logins, vendors' tools, the ledger) before one of the others waits.
constexpr std::size_t kAttendants = 16, kAttendantsOfRoute = 2;

std::uint64_t request_memory_limit(const ServerOptions& options) {
  if (options.max_request_memory != 0) return options.max_request_memory;
  return std::min<std::uint64_t>(std::uint64_t{1} << 30, read_memory_limit("/") / 4);
}

std::uint64_t total_memory_limit(const ServerOptions& options) {
  if (options.max_memory != 0) {
    if (const std::string warning = excessive_limit(options.max_memory, read_memory_limit("/")); !warning.empty())
      logging::warn("{}", warning);
    return options.max_memory;
  }
  return std::max<std::uint64_t>(read_memory_available("/") / 2, std::uint64_t{64} << 20);
}

// The process has more than what requests were given: holes in its heaps, above all.
std::uint64_t without_heaps(std::uint64_t limit) { return limit - limit / 32; }

// The system runs whoever answers before whoever computes: by preferring the former where it can, because a thread that gives way
// to the whole machine is away for longer when it is interrupted with a lock.
TaskPool::Limits limits_of_workers(const ServerOptions& options) {
  TaskPool::Limits limits =
      TaskPool::shared_fairly(options.threads > 0 ? static_cast<std::size_t>(options.threads) : 64, options.max_waiting);
  limits.nice = may_prefer_threads() ? 0 : kComputingNice;
  return limits;
}

std::array<std::size_t, Turns::kKinds> turns_at_cores() {
  std::array<std::size_t, Turns::kKinds> most{};
  most.fill(static_cast<std::size_t>(usable_cores()));
  most[static_cast<std::size_t>(Turns::Kind::fresh)] *= 4;  // they end soon, and some wait for a moment
  return most;
}

double requests_a_second(const ServerOptions& options) {
  if (options.rate_limit >= 0) return options.rate_limit;
  return is_loopback_host(options.host) ? 0 : 100;
}

class RequestIds {
 public:
  RequestIds() {
    if (getrandom(&seed_, sizeof seed_, 0) != sizeof seed_)
      seed_ = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  }
  std::string next() {
    // SplitMix64: distinct for distinct counts.
    std::uint64_t z = seed_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    std::string text(16, '0');
    for (std::size_t i = 16; i-- > 0; z >>= 4) text[i] = "0123456789abcdef"[z & 15];
    return text;
  }

 private:
  std::uint64_t seed_ = 0;
};

std::string request_id(const Request& request) {
  static RequestIds ids;
  const std::string_view given = request.field("X-Request-Id");
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  };
  if (!given.empty() && given.size() <= 64 && std::all_of(given.begin(), given.end(), fits)) return std::string(given);
  return ids.next();
}

bool is_media(std::string_view field, std::string_view wanted) {
  std::string_view media = field.substr(0, field.find(';'));
  while (!media.empty() && media.back() == ' ') media.remove_suffix(1);
  return equal_ignoring_case(media, wanted);
}

void check_media(const Request& request, const Route& route) {
  const std::string_view type = request.field("Content-Type");
  const auto refuse = [&](const char* wanted) {
    throw Problem(415, "invalid_argument", fmt::format("the body must be {}", wanted),
                  fmt::format("send Content-Type: {}", wanted));
  };
  if (!request.field("Content-Encoding").empty() && !equal_ignoring_case(request.field("Content-Encoding"), "identity"))
    throw Problem(415, "invalid_argument", "compressed bodies are not supported");
  switch (route.body) {
    case BodyKind::json:
      if (!is_media(type, "application/json")) refuse("application/json");
      return;
    case BodyKind::form_or_json:
      if (!is_media(type, "application/json") && !is_media(type, "application/x-www-form-urlencoded")) refuse("application/json");
      return;
    case BodyKind::none:
    case BodyKind::bytes:
    case BodyKind::inference: return;
  }
}

// What the server does by itself: a failure must not end it, nor keep it from being done again.
void try_again_later(const char* what, const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    logging::warn("cannot {}, will try again: {}", what, error.what());
  }
}

// On every answer where there is a limit (draft-ietf-httpapi-ratelimit-headers).
void add_rate_limit(Response& response, const Admission& admission, const RateLimit& rates) {
  if (admission.rate_limit.empty()) return;
  response.fields.emplace_back("RateLimit-Policy", fmt::format("\"address\";q={:.0f};w=1", rates.per_second()));
  response.fields.emplace_back("RateLimit", admission.rate_limit);
}

}  // namespace

Services::Services(const ServerOptions& wanted, DeviceManager& devices, Application::Post to_io)
    : options(wanted),
      manager(devices),
      post(std::move(to_io)),
      limits{wanted.max_elements, request_memory_limit(wanted), wanted.max_operations, wanted.max_run_time},
      memory(without_heaps(total_memory_limit(wanted)), wanted.max_client_memory),
      kept(memory.limit() / 64),
      uploads(memory, wanted.upload_quota_bytes, wanted.upload_lifetime),
      results(memory, wanted.result_lifetime),
      programs(memory),
      accounts({.password_file = wanted.password_file,
                .token_file = wanted.token_file,
                .idle = wanted.session_idle,
                .total = wanted.session_total,
                .lockout = wanted.lockout}),
      rates(requests_a_second(wanted)),
      turns(turns_at_cores(), may_prefer_threads()),
      workers(limits_of_workers(wanted), &turns),
      attendants({.threads = kAttendants,
                  .waiting = wanted.max_waiting,
                  .threads_of_client = kAttendants / 2,
                  .waiting_of_client = std::max<std::size_t>(wanted.max_waiting / 4, 1),
                  .threads_of_queue = kAttendantsOfRoute,
                  .threads_of_client_in_queue = kAttendantsOfRoute,
                  .nice = kAttendantsNice}),
      jobs(*this, memory.limit() / 8, wanted.max_jobs * 32),
      models(*this, wanted.model_folder),
      device_view(devices) {
  limits.memory_bytes = std::min(limits.memory_bytes, memory.client_limit());
}

std::shared_ptr<const ComputeRequest> Services::program(const Call& call) {
  const std::string_view text = call.request.text();
  if (std::shared_ptr<const ComputeRequest> known = programs.find(text)) return known;
  std::shared_ptr<ComputeRequest> program;
  try {
    program = reader(call).read(text);
  } catch (const Error& error) {
    throw Problem::of(error, Stage::preparing);
  }
  programs.keep(text, program);
  return program;
}

Application::Application(const ServerOptions& options, DeviceManager& manager, Post post)
    : services_(std::make_unique<Services>(options, manager, std::move(post))) {
  Services& services = *services_;
  add_compute_routes(services.routes, services);
  add_result_routes(services.routes, services);
  add_codec_routes(services.routes, services);
  add_job_routes(services.routes, services);
  add_catalogue_routes(services.routes, services);
  add_device_routes(services.routes, services);
  add_reset_route(services.routes, services);
  add_session_routes(services.routes, services);
  add_inference_routes(services.routes, services);
  add_operation_routes(services.routes, services);
  add_text_routes(services.routes, services);
  add_completion_routes(services.routes, services);
  add_model_routes(services.routes, services);
  services.observer = manager.observe([&services](const DeviceEvent& event) { services.events.record(event); });
}

Application::~Application() { shut_down(); }

MemoryGate& Application::memory() noexcept { return services_->memory; }
Traffic& Application::traffic() noexcept { return services_->traffic; }
const RouteTable& Application::routes() const noexcept { return services_->routes; }
bool Application::has_login() const noexcept { return services_->accounts.is_required(); }

Admission Application::admit(const Request& request, const std::string& peer) {
  Services& services = *services_;
  Admission admission;
  admission.request_id = request_id(request);
  Client& client = admission.client;
  client.address = client_address(request, peer, services.options.trusted_proxy);
  client.key = client.address;
  client.quota = network_of(client.address);
  try {
    RouteTable::Match match = services.routes.find(request.method, request.path);
    admission.route = match.route;
    admission.arguments = std::move(match.arguments);

    if (!services.accounts.is_required()) check_host(request, services.options.allowed_hosts);
    check_origin(request, services.accounts.is_required());
    if (services.rates.is_on()) {
      const double wait = services.rates.take(client.quota, std::chrono::steady_clock::now());
      const RateLimit::Left left = services.rates.left(client.quota);
      admission.rate_limit = fmt::format("\"address\";r={};t={}", left.requests, wait > 0 ? std::ceil(wait) : left.reset_seconds);
      if (wait > 0)
        throw Problem(429, "resource_exhausted", "too many requests from this address")
            .with_retry(static_cast<int>(std::ceil(wait)));
    }

    const bool is_api = request.path.starts_with("/api/") || request.path.starts_with("/v1/") || request.path.starts_with("/v2");
    const bool is_open = match.route != nullptr ? match.route->access == Access::open : !is_api;
    if (services.accounts.is_required()) {
      const bool renews = match.route == nullptr || match.route->renews_session;
      if (std::optional<std::string> account = services.accounts.account_of(request, renews)) {
        client.account = *account;
        client.key = client.quota = "account " + *account;
      } else if (!is_open) {
        throw Problem(401, "unauthenticated", "log in first", "POST /login, or send Authorization: Bearer TOKEN")
            .with_field("WWW-Authenticate", "Bearer realm=\"tenon\"");
      }
    }
    if (request.method == Method::options && (!match.allow.empty() || request.target == "*")) {
      Response response;
      response.status = 204;
      response.fields.emplace_back("Allow", match.allow.empty() ? "GET, HEAD, POST, DELETE, OPTIONS" : match.allow);
      add_rate_limit(response, admission, services.rates);
      admission.refusal = std::move(response);
      return admission;
    }
    if (match.route == nullptr) {
      if (request.method == Method::get || request.method == Method::head) {
        if (std::optional<Response> page = page_response(request)) {
          add_rate_limit(*page, admission, services.rates);
          admission.refusal = std::move(page);
          return admission;
        }
      }
      if (match.allow.empty())
        throw Problem(404, "not_found", fmt::format("unknown path {}", request.path.substr(0, 200)),
                      "GET /openapi.json lists the routes");
      throw Problem(
          405, "method_not_allowed",
          fmt::format("method {} is not allowed for {}", request.method_text.substr(0, 20), request.path.substr(0, 200)),
          fmt::format("allowed methods: {}", match.allow))
          .with_field("Allow", match.allow);
    }
    if (services.is_draining && match.route->access != Access::open)
      throw Problem(503, "unavailable", "the server is shutting down").with_retry(5);
    check_media(request, *match.route);
    const bool is_large = match.route->body == BodyKind::bytes || match.route->body == BodyKind::inference;
    admission.max_body_bytes = is_large                              ? services.options.max_body_bytes
                               : match.route->body == BodyKind::none ? 1024
                                                                     : services.options.max_json_bytes;
    if (match.route->max_body_bytes > 0)
      admission.max_body_bytes = std::min(admission.max_body_bytes, match.route->max_body_bytes);
  } catch (const Problem& problem) {
    admission.refusal = problem.response(request.path, admission.request_id);
  }
  if (admission.refusal) add_rate_limit(*admission.refusal, admission, services.rates);
  return admission;
}

void Application::answer(const Request& request, const Admission& admission, std::stop_token cancel,
                         std::function<void(Response)> done) {
  Services& services = *services_;
  const Route& route = *admission.route;
  if (!admission.rate_limit.empty())
    done = [&services, &admission, send = std::move(done)](Response response) {
      add_rate_limit(response, admission, services.rates);
      send(std::move(response));
    };
  const auto guarded = [&services, &request, &admission](const std::function<Response()>& make) {
    try {
      Response response = make();
      // A slow reader keeps its answer in memory for long.
      if (response.bytes() >= MemoryGate::kCounted && response.fixed.empty() && !response.memory && !response.is_counted)
        response.memory = services.memory.take(admission.client.quota, response.bytes());
      return response;
    } catch (const std::exception& error) {
      const Problem problem = Problem::of(error, Stage::preparing);
      if (problem.status() >= 500 && problem.code() == "internal")
        logging::error("request {} {} failed: {}", admission.request_id, request.path, error.what());
      return problem.response(request.path, admission.request_id);
    }
  };
  const auto call = [&request, &admission, cancel] {
    return Call{request, admission.client, admission.request_id, admission.arguments, cancel};
  };
  if (route.quick) {
    std::optional<Response> response;
    try {
      response = route.quick(call());
    } catch (const std::exception& error) {
      response = Problem::of(error, Stage::preparing).response(request.path, admission.request_id);
    }
    if (response) return done(std::move(*response));
  }
  if (route.runs == Runs::here) return done(guarded([&] { return route.handler(call()); }));
  const std::string queue = route.queue_key ? route.queue_key(call()) : route.path;
  TaskPool& pool = route.runs == Runs::computing ? services.workers : services.attendants;
  const bool is_taken = pool.submit(admission.client.quota, queue, [&services, guarded, call, &route, done, cancel] {
    const StopScope scope(cancel);
    const Finish finish = [&services, guarded, done](const std::function<Response()>& make) {
      auto response = std::make_shared<Response>(guarded(make));
      services.post([done, response] { done(std::move(*response)); });
    };
    if (!route.begin) return finish([&] { return route.handler(call()); });
    try {
      route.begin(call(), finish);
    } catch (...) {
      finish([error = std::current_exception()]() -> Response { std::rethrow_exception(error); });
    }
  });
  if (!is_taken)
    done(Problem(503, "overloaded", "too many requests are waiting", "try again in a moment")
             .with_retry(1)
             .response(request.path, admission.request_id));
}

void Application::finished(const Request& request, const Admission& admission, const Response& response, double seconds) {
  Services& services = *services_;
  services.metrics.count(admission.route, response.status, seconds, request.text().size(), response.bytes());
  if (!services.options.log_requests && response.status != 500) return;
  const std::string message = fmt::format("{} {} {} {} {:.3f} ms {} bytes {} {}", admission.request_id,
                                          printable(request.method_text), printable(request.path.substr(0, 200)), response.status,
                                          seconds * 1e3, response.bytes(), admission.client.address, admission.client.account);
  // Not through the logger, which would leave out most lines of one kind: whoever asked for this log wants all of it.
  const logging::Line line{response.status >= 500 ? logging::Level::error : logging::Level::info,
                           std::chrono::system_clock::now(), message};
  const char* format = std::getenv("TENON_LOG_FORMAT");
  const bool is_json = format != nullptr && std::string_view(format) == "json";
  const std::string text = (is_json ? logging::json_of(line) : logging::text_of(line)) + '\n';
  (void)!write(STDERR_FILENO, text.data(), text.size());
}

void Application::tick() {
  Services& services = *services_;
  services.events.pump();
  const auto now = std::chrono::steady_clock::now();
  services.turns.tick();
  if (now < services.next_second) return;
  services.next_second = now + std::chrono::seconds(1);
  if (!services.is_taking_snapshot) {
    // Without anybody who watches, only the holds of other processes are noted, for the timeline.
    const bool is_watched = services.events.subscribers() > 0;
    services.is_taking_snapshot = services.attendants.submit("", "snapshot", [&services, is_watched] {
      auto text = std::make_shared<std::string>();
      try_again_later("take a snapshot", [&] {
        if (is_watched)
          *text = snapshot_json(services);
        else
          services.holds.observe(services.manager.status(), std::chrono::system_clock::now());
      });
      services.post([&services, text] {
        services.is_taking_snapshot = false;
        if (!text->empty()) services.events.snapshot(std::move(*text));
      });
    });
  }
  if (!services.is_reading_devices && services.device_view.is_stale(now))
    services.is_reading_devices = services.attendants.submit("", "devices", [&services] {
      try_again_later("read the devices", [&] { services.device_view.read(); });
      services.post([&services] { services.is_reading_devices = false; });
    });
  static FreedMemory freed;
  if (freed.is_wanted(services.memory.used(), services.memory.limit(), now) &&
      !services.attendants.submit("", "trim", [] { freed.trim(); }))
    freed.trim();
  services.rates.expire(now);
  // What has expired may be much to free, and others may have the locks.
  if (!services.is_tidying)
    services.is_tidying = services.attendants.submit("", "tidy", [&services, now] {
      try_again_later("drop what has expired", [&] {
        services.uploads.expire(now);
        services.results.expire(now);
        services.jobs.expire(now);
        services.accounts.expire();
        services.models.tick(now);
      });
      services.post([&services] { services.is_tidying = false; });
    });
}

void Application::drain() {
  services_->is_draining = true;
  services_->events.end();
}

bool Application::is_drained() const {
  for (const TaskPool* pool : {&services_->workers, &services_->attendants})
    if (pool->running() + pool->waiting() > 0) return false;
  return services_->jobs.unfinished() == 0;
}

void Application::cancel_all() {
  services_->jobs.cancel_all();
  services_->models.cancel_all();
}

void Application::shut_down() {
  services_->observer = nullptr;
  cancel_all();
  services_->workers.end();
  services_->attendants.end();
}

bool Application::shut_down(std::chrono::milliseconds patience) {
  services_->observer = nullptr;
  cancel_all();
  const auto has_ended = [&] { return services_->workers.end(patience) && services_->attendants.end(patience); };
  if (has_ended()) return true;
  // Cancelled and still running: a device does not answer.
  for (const DeviceStatus& status : services_->manager.status())
    if (status.state == DeviceState::busy || status.state == DeviceState::draining) {
      logging::error("{} still runs a cancelled program; it is given up", status.device.id);
      try {
        services_->manager.close(status.device.id, std::chrono::nanoseconds::zero());
      } catch (const Error& error) {
        logging::error("{}", error.what());
      }
    }
  return has_ended();
}

}  // namespace tenon::server

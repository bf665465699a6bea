// Services: what the routes share. Made by Application, in this order; each part's header says which threads may use it.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>

#include "server/access/accounts.h"
#include "server/access/rate_limit.h"
#include "server/application.h"
#include "server/compute/jobs.h"
#include "server/compute/memory/kept_memory.h"
#include "server/compute/memory/memory_gate.h"
#include "server/compute/program/compute_request.h"
#include "server/compute/program/program_cache.h"
#include "server/compute/task_pool.h"
#include "server/compute/uploads.h"
#include "server/models/model_repository.h"
#include "server/options.h"
#include "server/routes/routes.h"
#include "server/watch/device_view.h"
#include "server/watch/event_hub.h"
#include "server/watch/hold_history.h"
#include "server/watch/metrics.h"
#include "tenon/manager.h"

namespace tenon::server {

struct Services {
  const ServerOptions& options;
  DeviceManager& manager;
  Application::Post post;
  ProgramLimits limits;
  MemoryGate memory;
  KeptMemory kept;
  UploadStore uploads;
  ResultStore results;
  ProgramCache programs;
  Accounts accounts;
  RateLimit rates;
  Metrics metrics;
  Traffic traffic;
  EventHub events;
  HoldHistory holds;
  Turns turns;          // of the workers, at the cores
  TaskPool workers;     // for routes that compute
  TaskPool attendants;  // for the other ones, so that they answer however much is computed
  JobBoard jobs;
  ModelRepository models;
  RouteTable routes;
  std::shared_ptr<void> observer;
  std::atomic<bool> is_draining{false};
  bool is_taking_snapshot = false, is_reading_devices = false, is_tidying = false;
  std::chrono::steady_clock::time_point next_second;
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  DeviceView device_view;

  Services(const ServerOptions& wanted, DeviceManager& devices, Application::Post to_io);

  ClientMemory memory_of(const Call& call) { return {memory, call.client.quota}; }
  ProgramReader reader(const Call& call) { return {limits, memory_of(call), uploads, manager}; }
  // The program of a request's body: read, or found already read.
  std::shared_ptr<const ComputeRequest> program(const Call& call);
};

// The routes, by subject.
void add_compute_routes(RouteTable& routes, Services& services);
void add_result_routes(RouteTable& routes, Services& services);
void add_codec_routes(RouteTable& routes, Services& services);
void add_catalogue_routes(RouteTable& routes, Services& services);
void add_device_routes(RouteTable& routes, Services& services);
void add_reset_route(RouteTable& routes, Services& services);
void add_job_routes(RouteTable& routes, Services& services);
void add_session_routes(RouteTable& routes, Services& services);
void add_inference_routes(RouteTable& routes, Services& services);
void add_operation_routes(RouteTable& routes, Services& services);
void add_text_routes(RouteTable& routes, Services& services);
void add_completion_routes(RouteTable& routes, Services& services);
void add_model_routes(RouteTable& routes, Services& services);
// The page and its files: what is at |path|, nothing for no such file.
std::optional<Response> page_response(const Request& request);

}  // namespace tenon::server

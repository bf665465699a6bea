// /api/jobs and what is below it.
#include "server/services.h"

namespace tenon::server {

void add_job_routes(RouteTable& routes, Services& services) {
  routes.add({.method = Method::post,
              .path = "/api/jobs",
              .tag = "jobs",
              .summary = "Start a job: returns at once with the job's location",
              .runs = Runs::computing,
              .body = BodyKind::json,
              .request_schema = "ExecuteRequest",
              .response_schema = "Job",
              .success = 202,
              .failures = {404, 413},
              .handler = [&services](const Call& call) { return services.jobs.create(call); }});
  routes.add({.method = Method::get,
              .path = "/api/jobs",
              .tag = "jobs",
              .summary = "List this client's jobs",
              .runs = Runs::in_worker,
              .response_schema = R"({"type":"object","required":["jobs"],"properties":{"jobs":{"type":"array"}}})",
              .handler = [&services](const Call& call) { return services.jobs.list(call); }});
  routes.add({.method = Method::get,
              .path = "/api/jobs/{id}",
              .tag = "jobs",
              .summary = "Show one job, with its result when it is done",
              .runs = Runs::in_worker,
              .response_schema = "Job",
              .failures = {404},
              .handler = [&services](const Call& call) { return services.jobs.get(call.arguments[0]); }});
  routes.add({.method = Method::delete_,
              .path = "/api/jobs/{id}",
              .tag = "jobs",
              .summary = "Cancel a job, or delete a finished one",
              .runs = Runs::in_worker,
              .response_schema = "Job",
              .failures = {202, 404},
              .handler = [&services](const Call& call) { return services.jobs.cancel(call.arguments[0]); }});
  routes.add({.method = Method::get,
              .path = "/api/jobs/{id}/events",
              .tag = "jobs",
              .summary = "Stream the progress of a job (server-sent events)",
              .media = "text/event-stream",
              .failures = {404},
              .renews_session = false,
              .handler = [&services](const Call& call) { return services.jobs.events(call.arguments[0]); }});
}

}  // namespace tenon::server

// /livez, /readyz, /metrics, /openapi.json, /api/machine/info, /api/git/info, /api/bug-report.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>

#include "base/system/file_descriptor.h"
#include "base/system/memory_limit.h"
#include "base/system/state_directory.h"
#include "base/text/json_writer.h"
#include "base/threads/thread_pool.h"
#include "server/http/body/json_reader.h"
#include "server/http/problem.h"
#include "server/routes/openapi/openapi.h"
#include "server/services.h"
#include "server/watch/build_info.h"

namespace tenon::server {
namespace {

constexpr std::size_t kMaxReports = 1000;
constexpr int kMaxReportsOfClient = 20;
constexpr std::size_t kMaxReportBytes = std::size_t{1} << 20;
constexpr std::uintmax_t kMaxBytesOfReports = std::uintmax_t{256} << 20;

std::string age_text(double seconds) {
  const auto text = [](double count, const char* unit) {
    const auto whole = static_cast<long long>(count);
    return fmt::format("{} {}{} ago", whole, unit, whole == 1 ? "" : "s");
  };
  if (seconds < 60) return "just now";
  if (seconds < 3600) return text(seconds / 60, "minute");
  if (seconds < 86400) return text(seconds / 3600, "hour");
  return text(seconds / 86400, "day");
}

Response git_info() {
  Response response;
  JsonWriter json(response.body);
  const BuildInfo& build = build_info();
  const bool is_known = !build.commit.empty();
  json.begin_object();
  json.member("success", is_known);
  json.member("full_hash", build.commit);
  json.member("short_hash", build.commit.substr(0, 8));
  const double age = static_cast<double>(std::time(nullptr) - build.commit_time);
  json.member("time_ago", is_known ? age_text(age) : std::string("unknown"));
  json.member("message", build.subject);
  json.member("version", TENON_VERSION);
  json.member("compiler", build.compiler);
  json.end_object();
  return response;
}

Response machine_info(Services& services) {
  utsname system{};
  uname(&system);
  Response response;
  JsonWriter json(response.body);
  const DeviceInfo device = services.manager.default_device();
  json.begin_object();
  json.member("success", true);
  json.member("machine_type", device.name.empty() ? device.id : device.name);
  json.member("device_id", device.id);
  json.member("cores", usable_cores());
  json.member("memory_bytes", read_memory_limit("/"));
  json.member("system", fmt::format("{} {} {}", system.sysname, system.release, system.machine));
  json.member("version", TENON_VERSION);
  json.member("uptime_seconds", std::chrono::duration<double>(std::chrono::steady_clock::now() - services.started).count());
  json.member("pid", getpid());
  json.end_object();
  return response;
}

std::filesystem::path report_directory(const ServerOptions& options) {
  if (!options.report_directory.empty()) return options.report_directory;
  if (const std::string state = state_directory(); !state.empty()) return std::filesystem::path(state) / "reports";
  throw Error(ErrorCode::failed_precondition, "the server has no folder for reports", "start the server with --report-dir");
}

// What a client may leave behind: a few reports each, and all together no more than a disk bears.
struct Reports {
  std::mutex mutex;
  std::map<std::string, int> of_client;  // since the server started

  void check(const std::filesystem::path& directory, const Client& client, std::size_t bytes) const {
    const auto refuse = [](const char* what) {
      throw Problem(429, "resource_exhausted", what, "the administrator of the server must read and remove them")
          .with_retry(3600);
    };
    if (bytes > kMaxReportBytes)
      throw Problem(413, "too_large", fmt::format("the report has {} bytes, more than the limit of {}", bytes, kMaxReportBytes));
    if (const auto mine = of_client.find(client.key); mine != of_client.end() && mine->second >= kMaxReportsOfClient)
      refuse("this client has sent its limit of reports");
    std::size_t count = 0;
    std::uintmax_t total = bytes;
    std::error_code error;
    for (auto at = std::filesystem::directory_iterator(directory, error); !error && at != std::filesystem::directory_iterator();
         at.increment(error)) {
      ++count;
      std::error_code ignored;
      if (const std::uintmax_t size = at->file_size(ignored); !ignored) total += size;
    }
    if (count >= kMaxReports || total > kMaxBytesOfReports) refuse("the limit of reports is reached");
  }
};

// Readable only by the server's user, from the first moment.
void write_report(const std::filesystem::path& file, const std::string& text) {
  std::error_code ignored;
  if (std::filesystem::create_directories(file.parent_path(), ignored)) chmod(file.parent_path().c_str(), S_IRWXU);
  const FileDescriptor fd(open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
  std::size_t done = 0;
  while (fd && done < text.size()) {
    const ssize_t written = write(fd.get(), text.data() + done, text.size() - done);
    if (written <= 0) break;
    done += static_cast<std::size_t>(written);
  }
  if (done == text.size()) return;
  if (fd) unlink(file.c_str());
  throw Error(ErrorCode::unavailable, "the report cannot be written", "the server's --report-dir must be writable");
}

Response bug_report(Services& services, Reports& reports, const Call& call) {
  const MemoryGate::Share parsed = services.reader(call).parsing(call.request.text().size());
  const boost::json::object document = parse_object(call.request.text());
  Members members(document, "");
  const std::string description = members.text("description").value_or("");
  const boost::json::value* data = members.find("report_data");
  members.done();
  if (description.empty()) members.fail("'description' is required");
  const auto begins_character = [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; };
  if (std::count_if(description.begin(), description.end(), begins_character) > 20'000)
    members.fail("the description may have at most 20,000 characters");
  const std::string id = random_id("b_");
  const std::string text =
      boost::json::serialize(boost::json::object{{"id", id},
                                                 {"request_id", call.id},
                                                 {"account", call.client.account},
                                                 {"version", TENON_VERSION},
                                                 {"commit", build_info().commit},
                                                 {"description", description},
                                                 {"report_data", data == nullptr ? boost::json::value() : *data}});
  const std::filesystem::path directory = report_directory(services.options);
  const std::lock_guard one_at_a_time(reports.mutex);
  reports.check(directory, call.client, text.size());
  write_report(directory / (id + ".json"), text + '\n');
  ++reports.of_client[call.client.key];
  Response response;
  JsonWriter json(response.body);
  json.begin_object();
  json.member("success", true);
  json.member("message", fmt::format("saved as {}.json", id));
  json.member("id", id);
  json.key("email_id").null();
  json.end_object();
  return response;
}

Response ready(Services& services) {
  if (services.is_draining) throw Problem(503, "unavailable", "the server is shutting down").with_retry(5);
  std::size_t open = 0;
  for (const DeviceStatus& device : services.manager.used())
    open += device.state == DeviceState::idle || device.state == DeviceState::busy;
  Response response;
  JsonWriter json(response.body);
  json.begin_object();
  json.member("status", "ready");
  json.member("running", services.workers.running());
  json.member("waiting", services.workers.waiting());
  json.member("open_devices", open);
  json.end_object();
  return response;
}

}  // namespace

void add_operation_routes(RouteTable& routes, Services& services) {
  const auto add = [&](std::string path, std::string summary, Runs runs, Access access, Handler handler) {
    routes.add({.method = Method::get,
                .path = std::move(path),
                .tag = "operation",
                .summary = std::move(summary),
                .runs = runs,
                .access = access,
                .response_schema = R"({"type":"object"})",
                .renews_session = false,
                .handler = std::move(handler)});
  };
  add("/livez", "Show whether the process responds", Runs::here, Access::open, [](const Call&) {
    Response response;
    response.body = R"({"status":"ok"})";
    return response;
  });
  add("/readyz", "Show whether requests are accepted", Runs::here, Access::open,
      [&services](const Call&) { return ready(services); });
  add("/api/machine/info", "Describe the machine", Runs::in_worker, Access::login,
      [&services](const Call&) { return machine_info(services); });
  add("/api/git/info", "Show the revision Tenon was built from", Runs::here, Access::login,
      [](const Call&) { return git_info(); });
  add("/openapi.json", "This interface as an OpenAPI document", Runs::here, Access::login,
      // Written once: the routes are all there when the first request arrives. Only the I/O thread is here.
      [&services, document = std::string()](const Call&) mutable {
        if (document.empty()) document = openapi_document(services.routes, services.accounts.is_required());
        Response response;
        response.body = document;
        return response;
      });
  routes.add({.method = Method::get,
              .path = "/metrics",
              .tag = "operation",
              .summary = "Counters for Prometheus",
              .runs = Runs::in_worker,
              .media = "text/plain",
              .renews_session = false,
              .handler = [&services](const Call&) {
                Response response;
                response.content_type = "text/plain; version=0.0.4; charset=utf-8";
                response.body = prometheus_text(services, services.device_view.get(std::chrono::steady_clock::now()));
                return response;
              }});
  routes.add({.method = Method::post,
              .path = "/api/bug-report",
              .tag = "operation",
              .summary = "Save a problem report for the administrator of the server",
              .runs = Runs::in_worker,
              .body = BodyKind::json,
              .request_schema = "BugReport",
              .response_schema = R"({"type":"object","required":["success","message","id"]})",
              .failures = {409},
              .handler = [&services, reports = std::make_shared<Reports>()](const Call& call) {
                return bug_report(services, *reports, call);
              }});
}

}  // namespace tenon::server

#include "server/watch/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <utility>

#include "server/services.h"

namespace tenon::server {
namespace {

void family(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  fmt::format_to(std::back_inserter(out), "# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

struct DeviceFamily {
  std::string_view name, type, help;
  double (*value)(const DeviceStatus&);
};

template <auto Counter>
double counter(const DeviceStatus& status) {
  return static_cast<double>(status.counters.*Counter);
}

using C = DeviceCounters;
constexpr DeviceFamily kDeviceFamilies[] = {
    {"tenon_device_available_ratio", "gauge", "1 if the device can be used.",
     [](const DeviceStatus& s) { return s.device.available ? 1.0 : 0.0; }},
    {"tenon_device_open_ratio", "gauge", "1 while the device is open in this process.",
     [](const DeviceStatus& s) {
       return s.state == DeviceState::idle || s.state == DeviceState::busy || s.state == DeviceState::draining ? 1.0 : 0.0;
     }},
    {"tenon_device_waiting", "gauge", "Leases and processes that wait for the device.",
     [](const DeviceStatus& s) {
       return static_cast<double>(
           std::count_if(s.users.begin(), s.users.end(), [](const DeviceUser& u) { return !u.is_holding; }));
     }},
    {"tenon_device_oldest_wait_seconds", "gauge", "Longest current wait.",
     [](const DeviceStatus& s) {
       double oldest = 0;
       for (const DeviceUser& user : s.users)
         if (!user.is_holding) oldest = std::max(oldest, user.seconds);
       return oldest;
     }},
    {"tenon_device_epoch", "gauge", "Epoch of this process's hold on the device, 0 without one; grows with every holder.",
     [](const DeviceStatus& s) { return static_cast<double>(s.epoch); }},
    {"tenon_device_memory_used_bytes", "gauge", "Memory this process uses on the device.",
     [](const DeviceStatus& s) { return static_cast<double>(s.memory_used_bytes); }},
    {"tenon_device_memory_limit_bytes", "gauge", "Memory limit of this process on the device.",
     [](const DeviceStatus& s) { return static_cast<double>(s.memory_limit_bytes); }},
    {"tenon_device_keep_open_threshold_seconds", "gauge", "How long the device would currently be kept open while idle.",
     [](const DeviceStatus& s) { return s.threshold_seconds; }},
    {"tenon_device_break_even_seconds", "gauge", "Idle time that costs as much as opening and closing once.",
     [](const DeviceStatus& s) { return s.break_even_seconds; }},
    {"tenon_device_cost_over_optimum_ratio", "gauge", "Cost of keeping the device open relative to the offline optimum.",
     [](const DeviceStatus& s) { return s.cost_over_optimum; }},
    {"tenon_device_leases_total", "counter", "Leases granted.", counter<&C::leases>},
    {"tenon_device_warm_leases_total", "counter", "Leases that found the device open.", counter<&C::warm>},
    {"tenon_device_cold_leases_total", "counter", "Leases that had to open it.", counter<&C::cold>},
    {"tenon_device_queued_leases_total", "counter", "Leases that had to wait.", counter<&C::queued>},
    {"tenon_device_lease_timeouts_total", "counter", "Leases that timed out.", counter<&C::timeouts>},
    {"tenon_device_lease_cancellations_total", "counter", "Leases cancelled while waiting.", counter<&C::cancellations>},
    {"tenon_device_overtakes_total", "counter", "Leases granted after a later one of the same priority: always 0.",
     counter<&C::overtakes>},
    {"tenon_device_opens_total", "counter", "Times the device was opened.", counter<&C::opens>},
    {"tenon_device_open_failures_total", "counter", "Times opening failed.", counter<&C::open_failures>},
    {"tenon_device_closes_total", "counter", "Times the device was closed.", counter<&C::closes>},
    {"tenon_device_close_failures_total", "counter", "Times closing failed.", counter<&C::close_failures>},
    {"tenon_device_dirty_grants_total", "counter",
     "Grants of a dirty device: the previous holder died or did not close it cleanly.", counter<&C::dirty_grants>},
    {"tenon_device_requeued_at_close_total", "counter", "Leases that arrived while the device was closing and reopened it.",
     counter<&C::requeued_at_close>},
    {"tenon_device_lost_total", "counter", "Times the device was lost while open.", counter<&C::lost>},
    {"tenon_device_yields_total", "counter", "Times the device was yielded to another process.", counter<&C::yields>},
    {"tenon_device_runs_total", "counter", "Programs run.", counter<&C::runs>},
    {"tenon_device_run_failures_total", "counter", "Programs that failed.", counter<&C::run_failures>},
    {"tenon_device_spills_total", "counter", "Tensors moved to host memory before a close.", counter<&C::spills>},
    {"tenon_device_restores_total", "counter", "Tensors moved back to a device.", counter<&C::restores>},
    {"tenon_device_evictions_total", "counter", "Tensors evicted to host memory.", counter<&C::evictions>},
    {"tenon_device_uploaded_bytes_total", "counter", "Bytes moved to the device.", counter<&C::bytes_up>},
    {"tenon_device_downloaded_bytes_total", "counter", "Bytes moved from the device.", counter<&C::bytes_down>},
    {"tenon_device_open_seconds_total", "counter", "Time spent opening.", counter<&C::open_seconds>},
    {"tenon_device_close_seconds_total", "counter", "Time spent closing.", counter<&C::close_seconds>},
    {"tenon_device_busy_seconds_total", "counter", "Time open and leased.", counter<&C::busy_seconds>},
    {"tenon_device_idle_seconds_total", "counter", "Time open without a lease.", counter<&C::idle_seconds>},
    {"tenon_device_queue_seconds_total", "counter", "Time leases waited.", counter<&C::queue_seconds>},
    {"tenon_device_compute_seconds_total", "counter", "Time spent computing.", counter<&C::compute_seconds>},
};

constexpr DeviceState kStates[] = {DeviceState::closed,  DeviceState::waiting, DeviceState::opening,
                                   DeviceState::idle,    DeviceState::busy,    DeviceState::draining,
                                   DeviceState::closing, DeviceState::failed,  DeviceState::lost};

struct WaitFamily {
  std::string_view wait;
  WaitHistogram DeviceCounters::* histogram;
};
constexpr WaitFamily kWaits[] = {{"warm", &C::warm_waits}, {"cold", &C::cold_waits}, {"queued", &C::queued_waits}};

void write_states(std::string& out, const std::vector<DeviceStatus>& status) {
  family(out, "tenon_device_state", "gauge", "1 for the state the device is in.");
  for (const DeviceStatus& s : status)
    for (const DeviceState state : kStates)
      fmt::format_to(std::back_inserter(out), "tenon_device_state{{device=\"{}\",state=\"{}\"}} {}\n", escaped(s.device.id),
                     name(state), s.state == state ? 1 : 0);
  family(out, "tenon_device_held_seconds", "gauge", "How long the holder has had the device.");
  for (const DeviceStatus& s : status) {
    std::map<std::string, double> held;  // by holder: several leases of this process are one
    for (const DeviceUser& user : s.users)
      if (user.is_holding) held[user.who] = std::max(held[user.who], user.seconds);
    for (const auto& [who, seconds] : held)
      fmt::format_to(std::back_inserter(out), "tenon_device_held_seconds{{device=\"{}\",holder=\"{}\"}} {}\n",
                     escaped(s.device.id), escaped(who), seconds);
  }
}

void write_waits(std::string& out, const std::vector<DeviceStatus>& status) {
  family(out, "tenon_device_lease_wait_seconds", "histogram",
         "Time from the request of a lease to its grant: warm (device open and free), cold (had to be opened), queued (others "
         "were ahead).");
  for (const DeviceStatus& s : status)
    for (const WaitFamily& f : kWaits) {
      const WaitHistogram& waits = s.counters.*f.histogram;
      const std::string labels = fmt::format("device=\"{}\",wait=\"{}\"", escaped(s.device.id), f.wait);
      std::uint64_t below = 0;
      for (std::size_t i = 0; i < waits.counts.size(); ++i) {
        below += waits.counts[i];
        const std::string limit =
            i < WaitHistogram::kLimitSeconds.size() ? fmt::format("{}", WaitHistogram::kLimitSeconds[i]) : "+Inf";
        fmt::format_to(std::back_inserter(out), "tenon_device_lease_wait_seconds_bucket{{{},le=\"{}\"}} {}\n", labels, limit,
                       below);
      }
      fmt::format_to(std::back_inserter(out),
                     "tenon_device_lease_wait_seconds_sum{{{0}}} {1}\ntenon_device_lease_wait_seconds_count{{{0}}} {2}\n", labels,
                     waits.seconds, below);
    }
}

void write_devices(std::string& out, const std::vector<DeviceStatus>& status) {
  family(out, "tenon_device_info", "gauge", "Devices of the machine.");
  for (const DeviceStatus& s : status)
    fmt::format_to(std::back_inserter(out), "tenon_device_info{{device=\"{}\",kind=\"{}\",name=\"{}\",simulated=\"{}\"}} 1\n",
                   escaped(s.device.id), name(s.device.kind), escaped(s.device.name), is_simulated(s.device));
  write_states(out, status);
  write_waits(out, status);
  for (const DeviceFamily& f : kDeviceFamilies) {
    family(out, f.name, f.type, f.help);
    for (const DeviceStatus& s : status)
      fmt::format_to(std::back_inserter(out), "{}{{device=\"{}\"}} {}\n", f.name, escaped(s.device.id), f.value(s));
  }
}

// The names of NVIDIA's DCGM exporter for what cards report, so that dashboards made for it show every accelerator.
struct CardFamily {
  std::string_view name, help;
  std::optional<double> (*value)(const DeviceInfo&);
};

constexpr double kMiB = 1 << 20;

std::optional<double> utilisation(const DeviceInfo& device) {
  const auto found = device.details.find("utilization");  // "37 %"
  if (found == device.details.end()) return std::nullopt;
  double percent = 0;
  const auto [end, failure] = std::from_chars(found->second.data(), found->second.data() + found->second.size(), percent);
  return failure == std::errc() ? std::optional(percent) : std::nullopt;
}

constexpr CardFamily kCardFamilies[] = {
    {"DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %).", utilisation},
    {"DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB).",
     [](const DeviceInfo& d) {
       return d.memory_free_bytes ? std::optional(static_cast<double>(*d.memory_free_bytes) / kMiB) : std::nullopt;
     }},
    {"DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB).",
     [](const DeviceInfo& d) {
       return d.memory_free_bytes && d.memory_total_bytes
                  ? std::optional(static_cast<double>(*d.memory_total_bytes - *d.memory_free_bytes) / kMiB)
                  : std::nullopt;
     }},
    {"DCGM_FI_DEV_POWER_USAGE", "Power draw (in W).", [](const DeviceInfo& d) { return d.power_watts; }},
    {"DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C).", [](const DeviceInfo& d) { return d.temperature_celsius; }},
};

void write_cards(std::string& out, const std::vector<DeviceInfo>& devices) {
  for (const CardFamily& f : kCardFamilies) {
    bool is_first = true;
    int number = 0;
    for (const DeviceInfo& device : devices) {
      if (device.kind == DeviceKind::cpu) continue;
      const int index = number++;
      const std::optional<double> value = f.value(device);
      if (!value) continue;
      if (std::exchange(is_first, false)) family(out, f.name, "gauge", f.help);
      fmt::format_to(std::back_inserter(out), "{}{{gpu=\"{}\",UUID=\"{}\",device=\"{}\",modelName=\"{}\"}} {}\n", f.name, index,
                     escaped(device.uuid), escaped(device.id), escaped(device.name), *value);
    }
  }
}

void single(std::string& out, std::string_view name, std::string_view type, std::string_view help, double value) {
  family(out, name, type, help);
  fmt::format_to(std::back_inserter(out), "{} {}\n", name, value);
}

}  // namespace

void Metrics::count(const Route* route, int status, double seconds, std::size_t bytes_in, std::size_t bytes_out) {
  uncounted_.push_back({route, status, seconds, bytes_in, bytes_out});
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;  // somebody writes the text: with the next request
  for (const Answered& answered : uncounted_) add(answered);
  uncounted_.clear();
}

void Metrics::add(const Answered& answered) {
  OfRoute& of = routes_[answered.route];
  ++of.by_status[answered.status];
  ++of.count;
  of.seconds += answered.seconds;
  const auto bucket = std::lower_bound(kSeconds.begin(), kSeconds.end(), answered.seconds);
  if (bucket != kSeconds.end()) ++of.buckets[static_cast<std::size_t>(bucket - kSeconds.begin())];
  ++requests_;
  bytes_in_ += answered.bytes_in;
  bytes_out_ += answered.bytes_out;
}

std::uint64_t Metrics::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void Metrics::write(std::string& out) const {
  const std::lock_guard lock(mutex_);
  const auto label = [](const Route* route) {
    return route == nullptr ? std::string_view("other") : std::string_view(route->path);
  };
  const auto method = [](const Route* route) { return route == nullptr ? std::string_view() : name(route->method); };
  family(out, "tenon_http_requests_total", "counter", "Requests answered.");
  for (const auto& [route, of] : routes_)
    for (const auto& [status, count] : of.by_status)
      fmt::format_to(std::back_inserter(out), "tenon_http_requests_total{{method=\"{}\",route=\"{}\",status=\"{}\"}} {}\n",
                     method(route), label(route), status, count);
  family(out, "tenon_http_request_seconds", "histogram", "Time from the arrival of the header to the response.");
  for (const auto& [route, of] : routes_) {
    std::uint64_t below = 0;
    for (std::size_t i = 0; i < kSeconds.size(); ++i) {
      below += of.buckets[i];
      fmt::format_to(std::back_inserter(out), "tenon_http_request_seconds_bucket{{method=\"{}\",route=\"{}\",le=\"{}\"}} {}\n",
                     method(route), label(route), kSeconds[i], below);
    }
    fmt::format_to(std::back_inserter(out),
                   "tenon_http_request_seconds_bucket{{method=\"{0}\",route=\"{1}\",le=\"+Inf\"}} {2}\n"
                   "tenon_http_request_seconds_sum{{method=\"{0}\",route=\"{1}\"}} {3}\n"
                   "tenon_http_request_seconds_count{{method=\"{0}\",route=\"{1}\"}} {2}\n",
                   method(route), label(route), of.count, of.seconds);
  }
  single(out, "tenon_http_received_bytes_total", "counter", "Bytes of request bodies.", static_cast<double>(bytes_in_));
  single(out, "tenon_http_sent_bytes_total", "counter", "Bytes of response bodies.", static_cast<double>(bytes_out_));
}

std::string prometheus_text(Services& services, const DeviceTable& devices) {
  std::string out;
  family(out, "tenon_build_info", "gauge", "Version of the server.");
  fmt::format_to(std::back_inserter(out), "tenon_build_info{{version=\"{}\"}} 1\n", TENON_VERSION);
  const double uptime = std::chrono::duration<double>(std::chrono::steady_clock::now() - services.started).count();
  single(out, "tenon_uptime_seconds", "gauge", "Seconds since the server started.", uptime);
  services.metrics.write(out);
  const Traffic& t = services.traffic;
  single(out, "tenon_http_connections", "gauge", "Open connections.", static_cast<double>(t.connections));
  single(out, "tenon_http_streams", "gauge", "Open event streams.", static_cast<double>(t.streams));
  single(out, "tenon_http_connections_accepted_total", "counter", "Connections accepted.", static_cast<double>(t.accepted));
  single(out, "tenon_http_connections_refused_total", "counter", "Connections refused because of the limit.",
         static_cast<double>(t.refused));
  single(out, "tenon_http_timeouts_total", "counter", "Requests that did not arrive in time.", static_cast<double>(t.timed_out));
  single(out, "tenon_http_malformed_total", "counter", "Messages that were not HTTP requests.", static_cast<double>(t.malformed));
  single(out, "tenon_requests_running", "gauge", "Requests being processed.", static_cast<double>(services.workers.running()));
  single(out, "tenon_requests_waiting", "gauge", "Requests waiting for a worker thread.",
         static_cast<double>(services.workers.waiting()));
  single(out, "tenon_jobs", "gauge", "Unfinished jobs.", static_cast<double>(services.jobs.unfinished()));
  single(out, "tenon_request_memory_used_bytes", "gauge", "Memory used by requests.",
         static_cast<double>(services.memory.used()));
  single(out, "tenon_request_memory_limit_bytes", "gauge", "Memory limit of all requests.",
         static_cast<double>(services.memory.limit()));
  single(out, "tenon_program_cache_hits_total", "counter", "Requests found in the program cache.",
         static_cast<double>(services.programs.hits()));
  single(out, "tenon_program_cache_misses_total", "counter", "Requests not found in the program cache.",
         static_cast<double>(services.programs.misses()));
  single(out, "tenon_sessions", "gauge", "Active sessions.", static_cast<double>(services.accounts.sessions()));
  single(out, "tenon_login_failures_total", "counter", "Failed logins.", static_cast<double>(services.accounts.failures()));
  write_devices(out, devices.status);
  write_cards(out, devices.found.devices);
  return out;
}

}  // namespace tenon::server

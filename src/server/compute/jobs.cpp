#include "server/compute/jobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/log.h"
#include "base/text/json_writer.h"
#include "present/run.h"
#include "present/text.h"
#include "server/compute/execution.h"
#include "server/http/problem.h"
#include "server/services.h"

namespace tenon::server {

static constexpr std::uint64_t kJobBytes = 2048;  // of a finished job without its texts

struct JobBoard::Job {
  std::string id, owner, quota, request_id;
  std::string operation, expression, device;  // of the program
  std::chrono::system_clock::time_point created = std::chrono::system_clock::now();
  Clock::time_point begun = Clock::now();
  std::stop_source stop;

  mutable std::mutex mutex;  // of what follows
  std::string status = "queued";
  Progress progress{.stage = "waiting", .device = {}, .place = {}};
  std::vector<std::string> log;
  double seconds = 0;
  std::shared_ptr<const ComputeRequest> program;  // until it is finished
  MemoryGate::Share memory;                       // for running it, then for what is left of it
  std::shared_ptr<const SharedText> result;  // JSON; nullptr: none. While it runs: the results, which are still being compared
  std::string problem;                       // JSON
  Clock::time_point ended;

  std::vector<std::weak_ptr<EventStream>> streams;  // I/O thread

  bool is_finished() const { return status == "done" || status == "failed" || status == "cancelled"; }
};

// What GET and the events have in common.
static void write_state(JsonWriter& json, const auto& job) {
  json.key("progress");
  present::write_progress(json, job.progress);
  json.list("status_log", job.log);
  json.member("seconds", job.is_finished() ? job.seconds : std::chrono::duration<double>(Clock::now() - job.begun).count());
}

// What GET shows, in three parts: the result between |before| and |after| is not copied.
struct JobText {
  std::string before;
  std::shared_ptr<const SharedText> result;
  std::string after;
};

// Under the job's mutex.
static std::string description(const auto& job) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("id", job.id);
  json.member("status", job.status);
  json.member("location", "/api/jobs/" + job.id);
  json.member("events", "/api/jobs/" + job.id + "/events");
  json.member("created", present::utc_text(job.created));
  if (job.operation.empty())
    json.member("expression", job.expression);
  else
    json.member("operation", job.operation);
  json.member("device", job.device);
  write_state(json, job);
  return text;
}

static JobText job_text(const auto& job) {
  static const auto none = std::make_shared<const SharedText>("null", MemoryGate::Share());
  JobText text{description(job) + ",\"result\":", job.result ? job.result : none, ",\"problem\":"};
  text.after += job.problem.empty() ? "null" : job.problem;
  text.after += '}';
  return text;
}

// A text that stays where it is until the answer is sent.
static HostArray bytes_of(std::shared_ptr<const SharedText> text) {
  const char* const data = text->text.data();
  const auto size = static_cast<std::int64_t>(text->text.size());
  return HostArray::borrow(DType::u8, {size}, data, std::move(text));
}

static Response job_response(JobText text) {
  Response response;
  response.body = std::move(text.before);
  if (text.result->text.size() < MemoryGate::kCounted) {
    response.body += text.result->text;
    response.body += text.after;
    return response;
  }
  response.is_counted = true;
  response.tail.push_back(bytes_of(std::move(text.result)));
  response.tail.push_back(bytes_of(std::make_shared<const SharedText>(std::move(text.after), MemoryGate::Share())));
  return response;
}

static std::string progress_json(const auto& job) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("id", job.id);
  json.member("status", job.status);
  write_state(json, job);
  json.end_object();
  return text;
}

JobBoard::JobBoard(Services& services, std::uint64_t max_bytes, std::size_t max_finished)
    : services_(services),
      finished_(max_bytes, max_finished) {}

JobBoard::~JobBoard() { cancel_all(); }

std::shared_ptr<JobBoard::Job> JobBoard::find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end())
    throw Error(ErrorCode::not_found, "unknown job",
                "finished jobs are kept for at most 10 minutes, and fewer of them while memory is short");
  return found->second;
}

void JobBoard::erase(const std::string& id) {
  finished_.remove(id);
  jobs_.erase(id);
}

// Results of this client's finished jobs make room for its next one.
MemoryGate::Share JobBoard::take_memory(const std::string& client, std::uint64_t bytes) {
  const ClientMemory memory{services_.memory, client};
  while (true) {
    if (std::optional<MemoryGate::Share> share = memory.try_take(bytes)) return std::move(*share);
    const std::lock_guard lock(mutex_);
    const std::optional<std::string> oldest = finished_.oldest_of(client);
    if (!oldest) return memory.take(bytes);
    erase(*oldest);
  }
}

Response JobBoard::create(const Call& call) {
  auto job = std::make_shared<Job>();
  job->id = random_id("j_");
  job->owner = call.client.key;
  job->quota = call.client.quota;
  job->request_id = call.id;
  job->program = services_.program(call);
  job->operation = job->program->operation;
  job->expression = job->program->expression;
  job->device = job->program->device;
  job->memory = take_memory(job->quota, job->program->run_bytes);
  std::string text;
  {
    const std::lock_guard lock(job->mutex);
    text = job_response(job_text(*job)).body;
  }
  {
    const std::lock_guard lock(mutex_);
    std::size_t mine = 0;
    for (const auto& [id, other] : jobs_) {
      const std::lock_guard other_lock(other->mutex);
      mine += other->owner == job->owner && !other->is_finished();
    }
    if (jobs_.size() >= services_.options.max_jobs * 64)
      throw Problem(503, "overloaded", "too many jobs are waiting").with_retry(5);
    if (mine >= services_.options.max_jobs)
      throw Problem(429, "resource_exhausted", fmt::format("this client already has {} unfinished jobs", mine),
                    "cancel a job, or wait until one ends")
          .with_retry(5);
    jobs_.emplace(job->id, job);
  }
  if (!services_.workers.submit(job->quota, "device " + job->device, [this, job] { run(job); })) {
    const std::lock_guard lock(mutex_);
    jobs_.erase(job->id);
    throw Problem(503, "overloaded", "too many requests are waiting").with_retry(2);
  }
  Response response;
  response.status = 202;
  response.fields.emplace_back("Location", "/api/jobs/" + job->id);
  response.fields.emplace_back("Preference-Applied", "respond-async");
  response.body = std::move(text);
  return response;
}

void JobBoard::run(const std::shared_ptr<Job>& job) {
  const std::string path = "/api/jobs/" + job->id;
  const ComputeRequest& program = *job->program;
  try {
    if (job->stop.stop_requested()) throw Error(ErrorCode::cancelled, "cancelled before it started");
    ExecutionOptions options{.memory = {services_.memory, job->quota}};
    options.cancel = job->stop.get_token();
    options.limit = services_.options.max_run_time;
    options.on_progress = [&](const Progress& progress, const std::vector<std::string>& status_log) {
      {
        const std::lock_guard lock(job->mutex);
        job->status = progress.stage == "queued" ? "queued" : "running";
        job->progress = progress;
        job->log = status_log;
      }
      announce(job);
    };
    Outcome outcome;
    const auto keep_results = [&] {
      if (!outcome.download.empty() || (!program.keep && file_format(program.output).empty())) return;
      const std::string id = services_.results.keep(job->quota, {outcome.run.outputs, program.names});
      if (!id.empty()) outcome.download = "/api/results/" + id;
    };
    options.on_result = [&] {
      keep_results();
      show_result(job, answer_json(program, outcome, job->request_id));
    };
    execute(program, services_.manager, options, outcome);
    keep_results();
    {
      const std::lock_guard lock(job->mutex);
      job->log = outcome.status_log;
    }
    finish(job, "done", {answer_json(program, outcome, job->request_id), std::move(job->memory)}, "");
  } catch (const std::exception& error) {
    const Problem problem = Problem::of(error, Stage::running);
    if (problem.status() == 500) logging::error("job {} (request {}) failed: {}", job->id, job->request_id, error.what());
    finish(job, problem.status() == 499 ? "cancelled" : "failed", {}, problem.document(path, job->request_id));
  }
}

// Where there is no memory for the text twice, the result is shown when it has been compared.
void JobBoard::show_result(const std::shared_ptr<Job>& job, std::string text) {
  text.shrink_to_fit();
  std::optional<MemoryGate::Share> memory = services_.memory.try_take(job->quota, text.size());
  if (!memory) return;
  {
    const std::lock_guard lock(job->mutex);
    job->progress.stage = "comparing";
    job->result = std::make_shared<const SharedText>(std::move(text), std::move(*memory));
  }
  announce(job);
}

void JobBoard::finish(const std::shared_ptr<Job>& job, std::string status, SharedText result, std::string problem) {
  std::shared_ptr<const ComputeRequest> program;  // freed outside the lock
  MemoryGate::Share memory;
  if (result.text.capacity() / 2 > result.text.size()) result.text.shrink_to_fit();
  if (result.memory) result.memory.shrink_to(result.text.size());
  // What is left of a job is small and bounded by |finished_|: it counts, but is kept also where it cannot be counted.
  std::optional<MemoryGate::Share> rest =
      services_.memory.try_take(job->quota, kJobBytes + job->expression.size() + problem.size());
  {
    const std::lock_guard lock(job->mutex);
    job->status = std::move(status);
    if (!result.text.empty()) job->result = std::make_shared<const SharedText>(std::move(result));
    job->problem = std::move(problem);
    job->ended = Clock::now();
    job->seconds = std::chrono::duration<double>(job->ended - job->begun).count();
    program = std::move(job->program);
    memory = std::move(job->memory);
    if (rest) job->memory = std::move(*rest);
  }
  announce(job);
  keep(job);
}

void JobBoard::keep(const std::shared_ptr<Job>& job) {
  std::uint64_t bytes = kJobBytes + job->expression.size();
  {
    const std::lock_guard lock(job->mutex);
    bytes += (job->result ? job->result->text.size() : 0) + job->problem.size();
  }
  const std::lock_guard lock(mutex_);
  if (!jobs_.contains(job->id)) return;
  while (finished_.count_of(job->quota) >= services_.options.max_jobs) erase(*finished_.oldest_of(job->quota));
  while (const std::optional<std::string> excess = finished_.excess(bytes)) erase(*excess);
  finished_.add(job->id, job->quota, bytes);
}

void JobBoard::announce(const std::shared_ptr<Job>& job) {
  services_.post([job] {
    std::erase_if(job->streams, [](const auto& weak) { return weak.expired(); });
    if (job->streams.empty()) return;
    std::string event, progress;
    JobText last;
    bool is_over = false;
    {
      const std::lock_guard lock(job->mutex);
      is_over = job->is_finished();
      if (is_over || job->result) {
        event = is_over ? job->status : "result";
        last = job_text(*job);
      } else {
        progress = progress_json(*job);
      }
    }
    for (const auto& weak : job->streams) {
      const auto stream = weak.lock();
      if (!stream || stream->is_ended()) continue;
      if (!last.result) {
        stream->send("progress", progress);
        continue;
      }
      stream->send(event, last.before, last.result, last.after);
      if (is_over) stream->end();
    }
  });
}

Response JobBoard::list(const Call& call) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.key("jobs").begin_array();
  const std::lock_guard lock(mutex_);
  for (const auto& [id, job] : jobs_) {
    if (job->owner != call.client.key) continue;
    const std::lock_guard job_lock(job->mutex);
    json.raw(description(*job) + "}");
  }
  json.end_array();
  json.end_object();
  Response response;
  response.body = std::move(text);
  return response;
}

Response JobBoard::get(const std::string& id) {
  const std::shared_ptr<Job> job = find(id);
  const std::lock_guard lock(job->mutex);
  return job_response(job_text(*job));
}

Response JobBoard::cancel(const std::string& id) {
  const std::shared_ptr<Job> job = find(id);
  // Outside the lock: whoever waits for the stop may call back at once.
  job->stop.request_stop();
  Response response;
  bool is_finished = false;
  {
    const std::lock_guard lock(job->mutex);
    is_finished = job->is_finished();
    response = job_response(job_text(*job));
    response.status = is_finished ? 200 : 202;
  }
  if (is_finished) {
    const std::lock_guard lock(mutex_);
    erase(id);
  }
  return response;
}

Response JobBoard::events(const std::string& id) {
  const std::shared_ptr<Job> job = find(id);
  auto stream = std::make_shared<EventStream>();
  {
    const std::lock_guard lock(job->mutex);
    if (job->is_finished() || job->result) {
      const JobText text = job_text(*job);
      stream->send(job->is_finished() ? job->status : "result", text.before, text.result, text.after);
    } else {
      stream->send("progress", progress_json(*job));
    }
    if (job->is_finished())
      stream->end();
    else
      job->streams.push_back(stream);
  }
  Response response;
  response.content_type = "text/event-stream";
  response.fields.emplace_back("X-Accel-Buffering", "no");
  response.stream = std::move(stream);
  return response;
}

std::size_t JobBoard::unfinished() const {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const auto& [id, job] : jobs_) {
    const std::lock_guard job_lock(job->mutex);
    count += !job->is_finished();
  }
  return count;
}

void JobBoard::expire(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  std::erase_if(jobs_, [&](const auto& entry) {
    const std::lock_guard job_lock(entry.second->mutex);
    const bool is_over = entry.second->is_finished() && now - entry.second->ended >= services_.options.result_lifetime;
    if (is_over) finished_.remove(entry.first);
    return is_over;
  });
}

void JobBoard::cancel_all() {
  std::vector<std::shared_ptr<Job>> all;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, job] : jobs_) all.push_back(job);
  }
  for (const auto& job : all) job->stop.request_stop();
}

}  // namespace tenon::server

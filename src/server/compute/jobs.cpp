#include "server/compute/jobs.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json_writer.h"
#include "base/log.h"
#include "present/run.h"
#include "present/text.h"
#include "server/compute/execution.h"
#include "server/http/problem.h"
#include "server/services.h"

namespace tenon::server {

struct JobBoard::Job {
  std::string id, owner, request_id;
  std::shared_ptr<const Program> program;
  std::chrono::system_clock::time_point created = std::chrono::system_clock::now();
  Clock::time_point begun = Clock::now();
  std::stop_source stop;

  mutable std::mutex mutex;  // of what follows
  std::string status = "queued";
  Progress progress{.stage = "waiting", .device = {}, .place = {}};
  std::vector<std::string> log;
  double seconds = 0;
  std::string result, problem;  // JSON
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

// As GET shows it; |whole| with the result. Under the job's mutex.
static std::string job_json(const auto& job, bool whole) {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  json.member("id", job.id);
  json.member("status", job.status);
  json.member("location", "/api/jobs/" + job.id);
  json.member("events", "/api/jobs/" + job.id + "/events");
  json.member("created", present::utc_text(job.created));
  if (job.program->operation.empty())
    json.member("expression", job.program->expression);
  else
    json.member("operation", job.program->operation);
  json.member("device", job.program->device);
  write_state(json, job);
  if (whole) {
    json.key("result").raw(job.result.empty() ? "null" : job.result);
    json.key("problem").raw(job.problem.empty() ? "null" : job.problem);
  }
  json.end_object();
  return text;
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

JobBoard::~JobBoard() { cancel_all(); }

std::shared_ptr<JobBoard::Job> JobBoard::find(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = jobs_.find(id);
  if (found == jobs_.end()) throw Error(ErrorCode::not_found, "unknown job", "finished jobs are kept for 10 minutes");
  return found->second;
}

Response JobBoard::create(const Call& call) {
  auto job = std::make_shared<Job>();
  job->id = random_id("j_");
  job->owner = call.client.key;
  job->request_id = call.id;
  job->program = services_.program(call.request.text());
  {
    const std::lock_guard lock(mutex_);
    std::size_t mine = 0;
    for (const auto& [id, other] : jobs_) {
      const std::lock_guard other_lock(other->mutex);
      mine += other->owner == job->owner && !other->is_finished();
    }
    if (mine >= services_.options.max_jobs || jobs_.size() >= services_.options.max_jobs * 64)
      throw Problem(429, "resource_exhausted", fmt::format("this client already has {} unfinished jobs", mine),
                    "cancel a job, or wait until one ends")
          .with_retry(5);
    jobs_.emplace(job->id, job);
  }
  std::string text;
  {
    const std::lock_guard lock(job->mutex);
    text = job_json(*job, true);
  }
  if (!services_.workers.submit("job " + job->program->device, [this, job] { run(job); })) {
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
  try {
    if (job->stop.stop_requested()) throw Error(ErrorCode::cancelled, "cancelled before it started");
    ExecutionOptions options;
    options.cancel = job->stop.get_token();
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
    execute(*job->program, services_.manager, options, outcome);
    if (job->program->keep || job->program->output == OutputForm::npy || job->program->output == OutputForm::safetensors) {
      std::uint64_t bytes = 0;
      for (const HostArray& array : outcome.run.outputs) bytes += array.bytes();
      const std::string id = services_.results.keep({outcome.run.outputs, job->program->names}, services_.memory.take(bytes));
      if (!id.empty()) outcome.download = "/api/results/" + id;
    }
    {
      const std::lock_guard lock(job->mutex);
      job->log = outcome.status_log;
    }
    finish(job, "done", answer_json(*job->program, outcome, job->request_id), "");
  } catch (const std::exception& error) {
    const Problem problem = Problem::of(error, Stage::running);
    if (problem.status() == 500) logging::error("job {} (request {}) failed: {}", job->id, job->request_id, error.what());
    finish(job, problem.status() == 499 ? "cancelled" : "failed", "", problem.document(path, job->request_id));
  }
}

void JobBoard::finish(const std::shared_ptr<Job>& job, std::string status, std::string result, std::string problem) {
  {
    const std::lock_guard lock(job->mutex);
    job->status = std::move(status);
    job->result = std::move(result);
    job->problem = std::move(problem);
    job->ended = Clock::now();
    job->seconds = std::chrono::duration<double>(job->ended - job->begun).count();
  }
  announce(job);
}

void JobBoard::announce(const std::shared_ptr<Job>& job) {
  services_.post([job] {
    std::erase_if(job->streams, [](const auto& weak) { return weak.expired(); });
    if (job->streams.empty()) return;
    std::string event, data;
    bool is_finished = false;
    {
      const std::lock_guard lock(job->mutex);
      is_finished = job->is_finished();
      event = is_finished ? job->status : "progress";
      data = is_finished ? job_json(*job, true) : progress_json(*job);
    }
    for (const auto& weak : job->streams) {
      const auto stream = weak.lock();
      if (!stream || stream->is_ended()) continue;
      stream->send(event, data);
      if (is_finished) stream->end();
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
    json.raw(job_json(*job, false));
  }
  json.end_array();
  json.end_object();
  Response response;
  response.body = std::move(text);
  return response;
}

Response JobBoard::get(const std::string& id) {
  const std::shared_ptr<Job> job = find(id);
  Response response;
  const std::lock_guard lock(job->mutex);
  response.body = job_json(*job, true);
  return response;
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
    response.status = is_finished ? 200 : 202;
    response.body = job_json(*job, true);
  }
  if (is_finished) {
    const std::lock_guard lock(mutex_);
    jobs_.erase(id);
  }
  return response;
}

Response JobBoard::events(const std::string& id) {
  const std::shared_ptr<Job> job = find(id);
  auto stream = std::make_shared<EventStream>();
  {
    const std::lock_guard lock(job->mutex);
    if (job->is_finished()) {
      stream->send(job->status, job_json(*job, true));
      stream->end();
    } else {
      stream->send("progress", progress_json(*job));
      job->streams.push_back(stream);
    }
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
    return entry.second->is_finished() && now - entry.second->ended >= services_.options.result_lifetime;
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

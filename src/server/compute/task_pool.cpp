#include "server/compute/task_pool.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "server/compute/thread_priority.h"

namespace tenon::server {
namespace {

constexpr std::chrono::milliseconds kLong{200};
constexpr int kLoweredBy = 5;  // of nice: a third of the share that it had

bool set_nice(pid_t thread, int nice) { return setpriority(PRIO_PROCESS, static_cast<id_t>(thread), nice) == 0; }

}  // namespace

TaskPool::TaskPool(const Limits& limits)
    : limits_(limits),
      nice_(std::min(own_nice() + limits.nice, 19)),
      lowered_nice_(std::min(nice_ + kLoweredBy, 19)) {}

TaskPool::Limits TaskPool::shared_fairly(std::size_t threads, std::size_t waiting) {
  Limits limits;
  limits.threads = threads;
  limits.waiting = waiting;
  // Two at least, if there are two: one of them may wait for a device.
  limits.threads_of_client = std::max(threads / 4, std::min<std::size_t>(threads, 2));
  limits.waiting_of_client = std::max(waiting / 4, std::min<std::size_t>(waiting, 1));
  limits.threads_of_queue = std::max<std::size_t>(threads / 2, 1);
  limits.threads_of_client_in_queue = std::max<std::size_t>(limits.threads_of_client / 2, 1);
  return limits;
}

bool TaskPool::end(std::optional<std::chrono::milliseconds> patience) {
  std::map<std::string, Client> dropped;  // their captures go outside the lock
  std::unique_lock lock(mutex_);
  is_ending_ = true;
  for (auto& [name, client] : clients_) {
    for (auto& [key, queue] : client.queues) dropped[name].queues[key].tasks.swap(queue.tasks);
    client.turns.clear();
    client.waiting = 0;
  }
  turns_.clear();
  waiting_ = 0;
  wake_.notify_all();
  const auto is_over = [&] { return threads_ + lowered_ == 0; };
  if (patience) return ended_.wait_for(lock, *patience, is_over);
  ended_.wait(lock, is_over);
  return true;
}

bool TaskPool::may_run(const Client& client, const std::string& queue) const {
  if (client.queues.at(queue).running >= limits_.threads_of_client_in_queue) return false;
  const auto running = running_of_queue_.find(queue);
  return running == running_of_queue_.end() || running->second < limits_.threads_of_queue;
}

std::optional<std::size_t> TaskPool::next_queue(const Client& client) const {
  if (client.running >= limits_.threads_of_client) return std::nullopt;
  for (std::size_t i = 0; i < client.turns.size(); ++i)
    if (may_run(client, client.turns[i])) return i;
  return std::nullopt;
}

bool TaskPool::has_ready() const {
  return has_room() &&
         std::any_of(turns_.begin(), turns_.end(), [&](const std::string& name) { return next_queue(clients_.at(name)); });
}

std::optional<TaskPool::Chosen> TaskPool::take() {
  for (auto turn = turns_.begin(); turn != turns_.end(); ++turn) {
    Client& client = clients_.at(*turn);
    const std::optional<std::size_t> index = next_queue(client);
    if (!index) continue;
    Chosen chosen;
    chosen.client = std::move(*turn);
    chosen.queue = std::move(client.turns[*index]);
    turns_.erase(turn);
    client.turns.erase(client.turns.begin() + static_cast<std::ptrdiff_t>(*index));
    Queue& queue = client.queues.at(chosen.queue);
    chosen.task = std::move(queue.tasks.front());
    queue.tasks.pop_front();
    ++queue.running;
    if (!queue.tasks.empty()) client.turns.push_back(chosen.queue);
    if (!client.turns.empty()) turns_.push_back(chosen.client);
    --client.waiting;
    --waiting_;
    ++client.running;
    ++running_of_queue_[chosen.queue];
    return chosen;
  }
  return std::nullopt;
}

void TaskPool::finished(const Chosen& chosen) {
  if (const auto queue = running_of_queue_.find(chosen.queue); --queue->second == 0) running_of_queue_.erase(queue);
  const auto client = clients_.find(chosen.client);
  const auto queue = client->second.queues.find(chosen.queue);
  if (--queue->second.running == 0 && queue->second.tasks.empty()) client->second.queues.erase(queue);
  if (--client->second.running == 0 && client->second.queues.empty()) clients_.erase(client);
}

bool TaskPool::submit(const std::string& client, const std::string& queue, Task task) {
  const std::lock_guard lock(mutex_);
  if (is_ending_ || waiting_ >= limits_.waiting) return false;
  if (const auto known = clients_.find(client); known != clients_.end() && known->second.waiting >= limits_.waiting_of_client)
    return false;
  const bool is_first = threads_ == 0;
  if (is_first) start_thread();
  if (threads_ == 0) return false;
  Client& joined = clients_[client];
  if (joined.turns.empty()) turns_.push_back(client);
  std::deque<Task>& tasks = joined.queues[queue].tasks;
  if (tasks.empty()) joined.turns.push_back(queue);
  tasks.push_back(std::move(task));
  ++joined.waiting;
  ++waiting_;
  if (!is_first) start_thread_if_needed();
  return true;
}

void TaskPool::start_thread() {
  ++threads_;
  try {
    std::thread([this] { work(); }).detach();
  } catch (const std::system_error&) {
    --threads_;  // the system refuses more: those that exist do the work
  }
}

void TaskPool::start_thread_if_needed() {
  if (is_ending_ || !has_ready()) return;
  if (idle_ > 0)
    wake_.notify_one();
  else if (threads_ < limits_.threads)
    start_thread();
}

// A process may not raise a priority again, and a new thread has that of its maker. So a thread that was lowered ends with its
// task, and those that take its place are started here or by others.
void TaskPool::lower_long_tasks(Clock::time_point now) {
  // The thread of all connections calls this: it does not wait for one that the system has interrupted with the lock.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return;
  for (Running& task : running_) {
    if (task.is_lowered || now - task.since < kLong) continue;
    if (!set_nice(task.thread, lowered_nice_)) continue;
    task.is_lowered = true;
    --threads_;
    ++lowered_;
  }
  start_thread_if_needed();
}

void TaskPool::work() {
  pthread_setname_np(pthread_self(), "tenon-worker");
  const pid_t self = gettid();
  set_own_nice(nice_);
  std::unique_lock lock(mutex_);
  bool is_lowered = false;
  while (!is_lowered) {
    ++idle_;
    const bool woken = wake_.wait_for(lock, std::chrono::seconds(10), [&] { return is_ending_ || has_ready(); });
    --idle_;
    if (is_ending_ || !woken) break;
    std::optional<Chosen> chosen = take();
    const auto running = running_.insert(running_.end(), {self, Clock::now()});
    // A task may have come when this thread was the only idle one, or when its client or queue had all they may.
    start_thread_if_needed();
    lock.unlock();
    chosen->task();
    chosen->task = nullptr;
    lock.lock();
    is_lowered = running->is_lowered;
    running_.erase(running);
    finished(*chosen);
  }
  --(is_lowered ? lowered_ : threads_);
  if (is_lowered && idle_ > 0 && has_ready()) wake_.notify_one();
  ended_.notify_all();
}

std::size_t TaskPool::waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_;
}

std::size_t TaskPool::running() const {
  const std::lock_guard lock(mutex_);
  return running_.size();
}

}  // namespace tenon::server

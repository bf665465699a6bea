#include "server/compute/task_pool.h"

#include <pthread.h>
#include <semaphore.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <system_error>
#include <thread>

#include "server/compute/thread_priority.h"

namespace tenon::server {
namespace {

constexpr time_t kIdleSeconds = 10;
// How many tasks are taken without looking at limits while another thread has the lock.
constexpr std::size_t kMostArrived = 64;

}  // namespace

// A thread that has nothing to do. It is woken outside the lock, which it needs at once.
class TaskPool::Sleeper {
 public:
  Sleeper() { sem_init(&woken_, 0, 0); }
  ~Sleeper() { sem_destroy(&woken_); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  void wake() { sem_post(&woken_); }
  void sleep() {
    while (sem_wait(&woken_) != 0) {
    }
  }
  // False if nobody woke it in time.
  bool sleep_for(time_t seconds) {
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    while (sem_timedwait(&woken_, &until) != 0)
      if (errno != EINTR) return false;
    return true;
  }

  Sleeper* next = nullptr;  // to be woken

 private:
  sem_t woken_;
};

// The lock. Whoever has had it takes in what came meanwhile, and wakes and starts threads afterwards.
class TaskPool::Locked {
 public:
  explicit Locked(TaskPool& pool) : Locked(pool, std::unique_lock(pool.mutex_)) {}
  Locked(TaskPool& pool, std::unique_lock<std::mutex> lock) : pool_(pool), lock_(std::move(lock)) { pool_.take_arrivals(); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

  ~Locked() {
    do {
      if (!lock_) lock_.lock();
      pool_.take_arrivals();
      Sleeper* wakes = std::exchange(pool_.to_wake_, nullptr);
      std::size_t starts = std::exchange(pool_.to_start_, 0);
      lock_.unlock();
      while (wakes) std::exchange(wakes, wakes->next)->wake();
      while (starts > 0 && pool_.start_thread()) --starts;
      if (starts > 0) {  // the system refuses more: those that exist do the work
        lock_.lock();
        pool_.threads_ -= starts;
        continue;
      }
      // Who could not lock a moment ago has pushed before.
      std::atomic_thread_fence(std::memory_order_seq_cst);
    } while (lock_ || (!pool_.arrivals_.empty() && lock_.try_lock()));
  }

 private:
  TaskPool& pool_;
  std::unique_lock<std::mutex> lock_;
};

TaskPool::TaskPool(const Limits& limits, Turns* turns)
    : limits_(limits),
      nice_(std::min(own_nice() + limits.nice, 19)),
      turns_(turns) {}

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
  {
    const Locked locked(*this);
    is_ending_ = true;
    for (auto& [name, client] : clients_) {
      for (auto& [key, queue] : client.queues) dropped[name].queues[key].tasks.swap(queue.tasks);
      client.turns.clear();
      client.waiting = 0;
    }
    turns_of_clients_.clear();
    waiting_ = 0;
    for (Sleeper* sleeper : std::exchange(idle_, {})) sleeper->next = std::exchange(to_wake_, sleeper);
  }
  dropped.clear();
  {
    // Nothing arrives any more that somebody would have to take in.
    std::unique_lock lock(mutex_);
    const auto is_over = [&] { return threads_ == 0; };
    if (!patience)
      ended_.wait(lock, is_over);
    else if (!ended_.wait_for(lock, *patience, is_over))
      return false;
  }
  while (inside_.load() > 0) std::this_thread::yield();
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
  return has_room() && std::any_of(turns_of_clients_.begin(), turns_of_clients_.end(),
                                   [&](const std::string& name) { return next_queue(clients_.at(name)); });
}

std::optional<TaskPool::Chosen> TaskPool::take() {
  if (!has_room()) return std::nullopt;
  for (auto turn = turns_of_clients_.begin(); turn != turns_of_clients_.end(); ++turn) {
    Client& client = clients_.at(*turn);
    const std::optional<std::size_t> index = next_queue(client);
    if (!index) continue;
    Chosen chosen;
    chosen.client = std::move(*turn);
    chosen.queue = std::move(client.turns[*index]);
    turns_of_clients_.erase(turn);
    client.turns.erase(client.turns.begin() + static_cast<std::ptrdiff_t>(*index));
    Queue& queue = client.queues.at(chosen.queue);
    chosen.task = std::move(queue.tasks.front());
    queue.tasks.pop_front();
    ++queue.running;
    if (!queue.tasks.empty()) client.turns.push_back(chosen.queue);
    if (!client.turns.empty()) turns_of_clients_.push_back(chosen.client);
    --client.waiting;
    --waiting_;
    ++client.running;
    ++running_of_queue_[chosen.queue];
    ++running_;
    return chosen;
  }
  return std::nullopt;
}

void TaskPool::finished(const Chosen& chosen) {
  --running_;
  if (const auto queue = running_of_queue_.find(chosen.queue); --queue->second == 0) running_of_queue_.erase(queue);
  const auto client = clients_.find(chosen.client);
  const auto queue = client->second.queues.find(chosen.queue);
  if (--queue->second.running == 0 && queue->second.tasks.empty()) client->second.queues.erase(queue);
  if (--client->second.running == 0 && client->second.queues.empty()) clients_.erase(client);
}

bool TaskPool::submit(const std::string& client, const std::string& queue, Task task) {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock && arrived_.load(std::memory_order_relaxed) < kMostArrived) {
    arrived_.fetch_add(1, std::memory_order_relaxed);
    arrivals_.push({client, queue, std::move(task)});
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (lock.try_lock()) Locked(*this, std::move(lock));
    return true;
  }
  if (!lock) lock.lock();
  const Locked locked(*this, std::move(lock));
  if (is_ending_ || waiting_ >= limits_.waiting) return false;
  if (const auto known = clients_.find(client); known != clients_.end() && known->second.waiting >= limits_.waiting_of_client)
    return false;
  if (threads_ == 0) {
    ++threads_;
    if (!start_thread()) return --threads_, false;
  }
  enqueue(client, queue, std::move(task));
  return true;
}

void TaskPool::take_arrivals() {
  for (auto list = arrivals_.take(); !list.empty();) {
    Arrival arrival = list.pop();
    arrived_.fetch_sub(1, std::memory_order_relaxed);
    if (!is_ending_) enqueue(arrival.client, arrival.queue, std::move(arrival.task));
  }
}

void TaskPool::enqueue(const std::string& client, const std::string& queue, Task task) {
  Client& joined = clients_[client];
  if (joined.turns.empty()) turns_of_clients_.push_back(client);
  std::deque<Task>& tasks = joined.queues[queue].tasks;
  if (tasks.empty()) joined.turns.push_back(queue);
  tasks.push_back(std::move(task));
  ++joined.waiting;
  ++waiting_;
  want_thread_if_needed();
}

void TaskPool::want_thread_if_needed() {
  if (is_ending_ || !has_ready()) return;
  if (!idle_.empty()) {
    Sleeper* const sleeper = idle_.back();
    idle_.pop_back();
    sleeper->next = std::exchange(to_wake_, sleeper);
  } else if (threads_ < limits_.threads) {
    ++threads_;
    ++to_start_;
  }
}

bool TaskPool::start_thread() {
  inside_.fetch_add(1);
  try {
    std::thread([this] {
      work();
      inside_.fetch_sub(1);  // the last look at the pool
    }).detach();
    return true;
  } catch (const std::system_error&) {
    inside_.fetch_sub(1);
    return false;
  }
}

// None: the thread ends.
std::optional<TaskPool::Chosen> TaskPool::next_task(Sleeper& sleeper) {
  while (true) {
    {
      const Locked locked(*this);
      if (is_ending_) return std::nullopt;
      if (std::optional<Chosen> chosen = take()) {
        // A task may have come when this thread was the only idle one, or when its client or queue had all they may.
        want_thread_if_needed();
        return chosen;
      }
      idle_.push_back(&sleeper);
    }
    if (sleeper.sleep_for(kIdleSeconds)) continue;
    {
      const Locked locked(*this);
      if (std::erase(idle_, &sleeper) > 0) return std::nullopt;
    }
    sleeper.sleep();  // somebody has just decided to wake it
  }
}

void TaskPool::work() {
  pthread_setname_np(pthread_self(), "tenon-worker");
  set_own_nice(nice_);
  Sleeper sleeper;
  while (std::optional<Chosen> chosen = next_task(sleeper)) {
    {
      std::optional<Turns::Task> turn;
      if (turns_) turn.emplace(*turns_, chosen->client);
      chosen->task();
      chosen->task = nullptr;
    }
    const Locked locked(*this);
    finished(*chosen);
  }
  const Locked locked(*this);
  --threads_;
  want_thread_if_needed();
  ended_.notify_all();
}

std::size_t TaskPool::waiting() const {
  const Locked locked(const_cast<TaskPool&>(*this));
  return waiting_;
}

std::size_t TaskPool::running() const {
  const Locked locked(const_cast<TaskPool&>(*this));
  return running_;
}

}  // namespace tenon::server

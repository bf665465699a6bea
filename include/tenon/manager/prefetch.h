// Prefetch: prepares values ahead of their use on a separate thread.
//
// |next| is called until it returns nullopt; at most |buffer| values are queued at any time. Lifetime: the destructor waits only
// for the current call of |next|. Thread safety: take() must be called by one thread at a time.
//
//   Prefetch<HostArray> batches([&] { return read_batch(file); });
//   while (std::optional<HostArray> batch = batches.take()) manager.run(graph, std::span(&*batch, 1));
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace tenon {

namespace detail {

// The thread and its queue, independent of the value type.
class PrefetchThread {
 public:
  using Next = std::function<std::shared_ptr<void>()>;  // null at the end
  PrefetchThread(Next next, std::size_t buffer);
  ~PrefetchThread();
  PrefetchThread(const PrefetchThread&) = delete;
  PrefetchThread& operator=(const PrefetchThread&) = delete;
  std::shared_ptr<void> take();  // null at the end

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace detail

template <class T>
class Prefetch {
 public:
  explicit Prefetch(std::function<std::optional<T>()> next, std::size_t buffer = 2)
      : thread_(
            [next = std::move(next)]() -> std::shared_ptr<void> {
              std::optional<T> value = next();
              return value ? std::make_shared<T>(std::move(*value)) : nullptr;
            },
            buffer) {}

  // Waits for the next value; nullopt at the end. Rethrows an exception of |next| after the earlier values.
  std::optional<T> take() {
    const std::shared_ptr<void> value = thread_.take();
    return value ? std::optional<T>(std::move(*static_cast<T*>(value.get()))) : std::nullopt;
  }

 private:
  detail::PrefetchThread thread_;
};

}  // namespace tenon

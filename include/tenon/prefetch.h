// Prefetch: prepares values ahead of their use, in a thread of its own.
//
// |next| is called until it gives nothing; at most |buffer| values wait at any time. Lifetime: dropping it waits for the call of
// |next| that runs, no longer. Thread safety: take() by one thread at a time.
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

// The thread and its queue, of values whose type only Prefetch knows.
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

  // The next value, waiting for it; nothing at the end. Throws what |next| threw, after the values before it.
  std::optional<T> take() {
    const std::shared_ptr<void> value = thread_.take();
    return value ? std::optional<T>(std::move(*static_cast<T*>(value.get()))) : std::nullopt;
  }

 private:
  detail::PrefetchThread thread_;
};

}  // namespace tenon

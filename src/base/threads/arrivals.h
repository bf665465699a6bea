// Arrivals: what several threads hand to another one without waiting for each other.
//
// push() never blocks and takes no lock, so that a thread that is interrupted in it holds up nobody. take() gives everything that
// has come, in order.
//
// Thread safety: all calls may come from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

namespace tenon {

template <class T>
class Arrivals {
 public:
  Arrivals() = default;
  ~Arrivals() { take(); }
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  struct Node {
    T value;
    std::unique_ptr<Node> next;
  };
  // The first of a list. Long ones are destroyed node by node, not by recursion.
  class List {
   public:
    explicit List(std::unique_ptr<Node> first) noexcept : first_(std::move(first)) {}
    List(List&&) noexcept = default;
    List& operator=(List&&) = delete;
    ~List() {
      while (first_) pop();
    }
    bool empty() const noexcept { return !first_; }
    T pop() {
      const std::unique_ptr<Node> taken = std::exchange(first_, std::move(first_->next));
      return std::move(taken->value);
    }

   private:
    std::unique_ptr<Node> first_;
  };

  // True if there was nothing before: the one who takes may have to be woken.
  bool push(T value) {
    auto* const node = new Node{std::move(value), nullptr};
    Node* latest = latest_.load(std::memory_order_relaxed);
    do node->next.release(), node->next.reset(latest);
    while (!latest_.compare_exchange_weak(latest, node));
    return latest == nullptr;
  }

  bool empty() const noexcept { return latest_.load() == nullptr; }

  List take() noexcept {
    std::unique_ptr<Node> reversed(latest_.exchange(nullptr)), first;
    while (reversed) {
      std::unique_ptr<Node> rest = std::move(reversed->next);
      reversed->next = std::move(first);
      first = std::exchange(reversed, std::move(rest));
    }
    return List(std::move(first));
  }

 private:
  std::atomic<Node*> latest_{nullptr};
};

}  // namespace tenon

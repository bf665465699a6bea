// Hoard: what is kept for clients until they fetch it, and what goes first when it is too much.
//
// The one who goes without is who has most: the oldest thing of the owner with the most bytes, so that a client who keeps one
// small result does not lose it to another who floods the server. A value without locks; its owner has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>

namespace tenon::server {

class Hoard {
 public:
  Hoard(std::uint64_t max_bytes, std::size_t max_count) : max_bytes_(max_bytes), max_count_(max_count) {}

  // |id| must be new.
  void add(const std::string& id, const std::string& owner, std::uint64_t bytes);
  void remove(const std::string& id) noexcept;

  // What must be given up first before one thing more, of |bytes|, fits; nothing when it does.
  std::optional<std::string> excess(std::uint64_t bytes) const;
  // The oldest of |owner|.
  std::optional<std::string> oldest_of(const std::string& owner) const;

  std::uint64_t bytes() const noexcept { return bytes_; }
  std::uint64_t max_bytes() const noexcept { return max_bytes_; }
  std::size_t count_of(const std::string& owner) const;

 private:
  struct Item {
    std::string id, owner;
    std::uint64_t bytes = 0;
  };
  struct Total {
    std::uint64_t bytes = 0;
    std::size_t count = 0;
  };
  const std::uint64_t max_bytes_;
  const std::size_t max_count_;
  std::list<Item> items_;  // the oldest first
  std::unordered_map<std::string, std::list<Item>::iterator> by_id_;
  std::unordered_map<std::string, Total> by_owner_;
  std::uint64_t bytes_ = 0;
};

}  // namespace tenon::server

// MemoryGate: how much memory all requests together, and each client, may have at one time.
//
// A share is taken before the memory it stands for, from an estimate, and given back when it is dropped. A client is a name (an
// account, or the network of an address); one client has at most |client_limit|, a quarter by default, so that nobody can take
// the server from the others. The server's own memory (caches) has the name kServer and is bounded by those who take it.
// Thread safety: all calls may run side by side.
//
//   MemoryGate::Share share = gate.take(client, body_bytes);   // throws Problem
//   share.shrink_to(what_is_left);
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace tenon::server {

class MemoryGate {
 private:
  struct Holder {
    std::uint64_t bytes = 0;
    std::uint64_t shares = 0;
    const std::string* name = nullptr;  // its key
    bool is_bounded = true;
  };

 public:
  // What is smaller takes no share: the numbers of connections, threads and cached programs bound it.
  static constexpr std::uint64_t kCounted = 64 << 10;
  static inline const std::string kServer;

  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept
        : gate_(std::exchange(other.gate_, nullptr)),
          holder_(other.holder_),
          bytes_(std::exchange(other.bytes_, 0)) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(gate_, other.gate_);
      std::swap(holder_, other.holder_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() {
      if (gate_ != nullptr) gate_->release(*this);
    }

    explicit operator bool() const noexcept { return gate_ != nullptr; }
    std::uint64_t bytes() const noexcept { return bytes_; }
    // For memory that is filled bit by bit: the share has at least |bytes| afterwards. Throws Problem and keeps what it has. Not
    // for an empty share.
    void grow_to(std::uint64_t bytes);
    // Gives back what is beyond |bytes|.
    void shrink_to(std::uint64_t bytes) noexcept;

   private:
    friend class MemoryGate;
    Share(MemoryGate* gate, Holder* holder, std::uint64_t bytes) : gate_(gate), holder_(holder), bytes_(bytes) {}
    MemoryGate* gate_ = nullptr;
    Holder* holder_ = nullptr;
    std::uint64_t bytes_ = 0;
  };

  // |client_limit| 0: a quarter of |limit|.
  explicit MemoryGate(std::uint64_t limit, std::uint64_t client_limit = 0);
  MemoryGate(const MemoryGate&) = delete;
  MemoryGate& operator=(const MemoryGate&) = delete;

  // Throws Problem: 413 for more than a client may ever have, 429 while this client has too much, 503 while all together have.
  Share take(const std::string& client, std::uint64_t bytes);
  // Nothing where take() throws.
  std::optional<Share> try_take(const std::string& client, std::uint64_t bytes);

  std::uint64_t used() const;
  std::uint64_t used_by(const std::string& client) const;
  std::uint64_t limit() const noexcept { return limit_; }
  std::uint64_t client_limit() const noexcept { return client_limit_; }

 private:
  enum class Refusal : std::uint8_t { none, client, all };
  Holder& holder_of(const std::string& client);                      // with mutex_ held
  Refusal reserve(Holder& holder, std::uint64_t bytes);              // likewise
  [[noreturn]] void refuse(Refusal why, std::uint64_t bytes) const;  // |bytes|: of the whole share
  void drop(Holder& holder) noexcept;                                // with mutex_ held
  void release(Share& share) noexcept;

  const std::uint64_t limit_, client_limit_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Holder> holders_;  // those that have a share
  std::uint64_t used_ = 0;
};

// Why a limit of |bytes| for requests is too much for a process that may have |available|; "" if it is not.
std::string excessive_limit(std::uint64_t bytes, std::uint64_t available);

// The gate as one client sees it.
struct ClientMemory {
  MemoryGate& gate;
  std::string client;

  // An empty share below MemoryGate::kCounted. Throws Problem.
  MemoryGate::Share take(std::uint64_t bytes) const;
  std::optional<MemoryGate::Share> try_take(std::uint64_t bytes) const;
};

// Memory that adds up from many small pieces: takes a share from kCounted bytes on.
class MemoryTally {
 public:
  explicit MemoryTally(ClientMemory memory) : memory_(std::move(memory)) {}

  // Before the memory is taken. Throws Problem and counts nothing.
  void add(std::uint64_t bytes) { grow_to(bytes_ + bytes); }
  void grow_to(std::uint64_t bytes);
  std::uint64_t bytes() const noexcept { return bytes_; }
  // The share, empty below kCounted; the tally starts again at 0.
  MemoryGate::Share take_share() noexcept;

 private:
  ClientMemory memory_;
  std::uint64_t bytes_ = 0;
  MemoryGate::Share share_;
};

}  // namespace tenon::server

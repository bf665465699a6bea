// Accounts: who may use the server: passwords, tokens, sessions, and the lock after too many failures.
//
// A password file has lines "account:hash" (or a hash alone, for "admin") with argon2id hashes of tenon serve hash-password; a
// token file has lines "account:token" (or a token alone). '#' begins a comment. Both must not be readable by everybody.
//
// Failures are counted for an account together with where they came from: the address (an IPv6 network of 64 bits), or the
// browser where it has logged in before. So nobody can lock out somebody else, not even behind one proxy. Sessions are in memory:
// they end with the server. Thread safety: all calls may run side by side; login() takes a tenth of a second.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "server/http/message.h"

namespace tenon::server {

// Whether this build can check passwords (libsodium); tokens always work.
bool has_passwords() noexcept;
// A line for the password file. Throws unimplemented without libsodium, invalid_argument for a password below 8 characters.
std::string hash_password(const std::string& password);

class Accounts {
 public:
  using Time = std::chrono::steady_clock::time_point;
  struct Options {
    std::string password_file, token_file;
    std::chrono::seconds idle{1800}, total{12 * 3600}, lockout{900};
    int attempts = 5;           // for one account from one place
    int network_attempts = 20;  // of strangers from one network, for any accounts
    std::function<Time()> now = std::chrono::steady_clock::now;
  };
  // Throws not_found, invalid_argument naming file and line, permission_denied for a file everybody may read.
  explicit Accounts(Options options);

  bool is_required() const noexcept { return is_required_; }

  // The account a request's cookie or token stands for. |renews| keeps its session alive.
  std::optional<std::string> account_of(const Request& request, bool renews);

  struct Login {
    std::string session, client;  // values of the cookies
    std::string account;
  };
  // Throws Problem 401 with the attempts that remain, 429 while locked, 503 when too many try at once.
  Login login(const std::string& account, const std::string& password, const std::string& address, const Request& request);
  void logout(const Request& request);

  struct Standing {
    std::optional<std::string> account;
    double expires_in_seconds = 0;
    double locked_for_seconds = 0;
    int remaining_attempts = 5;
  };
  Standing standing(const Request& request, const std::string& account, const std::string& address);

  std::chrono::seconds idle() const noexcept { return options_.idle; }
  std::size_t sessions() const;
  std::uint64_t failures() const;
  // Forgets what has expired.
  void expire();

  static constexpr std::string_view kSessionCookie = "tenon_session";
  static constexpr std::string_view kClientCookie = "tenon_client";

 private:
  struct Session {
    std::string account;
    Time begun, used;
  };
  struct Failures {
    int count = 0;
    Time last, locked_until;
  };
  // Strangers of one network: those without the cookie of an earlier login.
  struct Network {
    int failures = 0;
    int waiting = 0;
    Time last;
  };
  struct Attempt {
    std::string lock, network;  // keys of locks_ and networks_; no network for a browser that has logged in before
    std::string hash;           // "" for an unknown account
  };
  Attempt begin_attempt(const std::string& account, const std::string& address, const Request& request);
  void end_attempt(const Attempt& attempt, bool is_right);
  std::string lock_key(const std::string& account, const std::string& address, const Request& request) const;
  Session* find_session(const Request& request);
  void read_passwords();
  void read_tokens();

  Options options_;
  bool is_required_ = false;
  std::map<std::string, std::string> hashes_;                // account -> hash
  std::vector<std::pair<std::string, std::string>> tokens_;  // token, account
  mutable std::mutex mutex_;
  std::mutex hashing_;  // 64 MiB each: one at a time
  int waiting_logins_ = 0;
  std::unordered_map<std::string, Session> sessions_;
  std::unordered_map<std::string, std::string> clients_;  // cookie -> account it logged in to
  std::unordered_map<std::string, Failures> locks_;
  std::unordered_map<std::string, Network> networks_;
  std::uint64_t failure_count_ = 0;
};

// The value of a cookie; "" for none.
std::string_view cookie(const Request& request, std::string_view name) noexcept;
// What failures from this address are counted by: itself, or the first 64 bits of an IPv6 address.
std::string network_of(const std::string& address);

}  // namespace tenon::server

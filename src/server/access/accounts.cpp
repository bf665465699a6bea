#include "server/access/accounts.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <sstream>

#include "base/log.h"
#include "base/system/file_descriptor.h"
#include "base/text/printable.h"
#include "server/compute/uploads.h"
#include "server/http/problem.h"

#ifdef TENON_HAS_SODIUM
#include <sodium.h>
#endif

namespace tenon::server {
namespace {

constexpr std::size_t kMaxEntries = 10'000;
constexpr int kMaxWaitingLogins = 16;
constexpr int kMaxWaitingStrangers = 12;  // the rest is kept for browsers that have logged in before
constexpr int kMaxWaitingOfNetwork = 2;
constexpr std::size_t kMinTokenLength = 16;

double seconds(std::chrono::steady_clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

bool equal_in_constant_time(std::string_view a, std::string_view b) noexcept {
  if (a.size() != b.size()) return false;
  volatile unsigned char difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference = static_cast<unsigned char>(difference | (static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i])));
  return difference == 0;
}

bool verify(const std::string& hash, const std::string& password) {
#ifdef TENON_HAS_SODIUM
  return crypto_pwhash_str_verify(hash.c_str(), password.data(), password.size()) == 0;
#else
  (void)hash, (void)password;
  return false;
#endif
}

// So that an account that does not exist takes as long to refuse.
const std::string& nobodys_hash() {
  static const std::string hash = has_passwords() ? hash_password(random_id("")) : std::string();
  return hash;
}

struct Line {
  std::string account, secret;
  int number = 0;
};

// Only root and whoever runs the server may have written it. Root may let a group read it, so that a service of that group can.
std::string read_secret_file(const std::string& file, const char* option) {
  const FileDescriptor fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status{};
  if (!fd && errno == ENOENT) throw Error(ErrorCode::not_found, fmt::format("{} {}: the file does not exist", option, file));
  if (!fd || fstat(fd.get(), &status) != 0)
    throw Error(ErrorCode::permission_denied, fmt::format("{} {}: the file cannot be read", option, file));
  if (status.st_uid != 0 && status.st_uid != geteuid())
    throw Error(ErrorCode::permission_denied, fmt::format("{} {}: the file belongs to user {}", option, file, status.st_uid),
                "it must belong to root or to the user that runs the server");
  const mode_t foreign = S_IRWXO | S_IWGRP | (status.st_uid == 0 ? 0 : S_IRGRP);
  if ((status.st_mode & foreign) != 0)
    throw Error(ErrorCode::permission_denied, fmt::format("{} {}: other users can read or change the file", option, file),
                fmt::format("chmod 600 {}", file));
  std::string text;
  char part[4096];
  for (ssize_t size; (size = read(fd.get(), part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(size));
  return text;
}

std::vector<Line> read_lines(const std::string& file, const char* option, const std::string& anonymous, char secret_begin) {
  std::istringstream in(read_secret_file(file, option));
  std::vector<Line> lines;
  std::string text;
  for (int number = 1; std::getline(in, text); ++number) {
    while (!text.empty() && (text.back() == '\r' || text.back() == ' ' || text.back() == '\t')) text.pop_back();
    if (text.empty() || text[0] == '#') continue;
    const std::size_t colon = text.find(':');
    const bool is_named = colon != std::string::npos && colon > 0 && (secret_begin == '\0' || text[0] != secret_begin);
    lines.push_back({is_named ? text.substr(0, colon) : anonymous, is_named ? text.substr(colon + 1) : text, number});
    if (lines.back().account.size() > 64)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} line {}: the name of an account may have at most 64 characters", file, number));
  }
  if (lines.empty()) throw Error(ErrorCode::invalid_argument, fmt::format("{} {}: the file is empty", option, file));
  return lines;
}

}  // namespace

bool has_passwords() noexcept {
#ifdef TENON_HAS_SODIUM
  static const bool is_ready = sodium_init() >= 0;
  return is_ready;
#else
  return false;
#endif
}

std::string hash_password(const std::string& password) {
  if (!has_passwords())
    throw Error(ErrorCode::unimplemented, "this build does not support passwords", "build with libsodium, or use --token-file");
  if (password.size() < 8) throw Error(ErrorCode::invalid_argument, "a password must have at least 8 characters");
#ifdef TENON_HAS_SODIUM
  char hash[crypto_pwhash_STRBYTES];
  if (crypto_pwhash_str(hash, password.data(), password.size(), crypto_pwhash_OPSLIMIT_INTERACTIVE,
                        crypto_pwhash_MEMLIMIT_INTERACTIVE) != 0)
    throw Error(ErrorCode::resource_exhausted, "not enough memory to hash a password");
  return hash;
#else
  return {};
#endif
}

std::string_view cookie(const Request& request, std::string_view name) noexcept {
  for (const Field& field : request.fields) {
    if (!equal_ignoring_case(field.name, "Cookie")) continue;
    std::string_view rest = field.value;
    while (!rest.empty()) {
      const std::size_t end = rest.find(';');
      std::string_view pair = rest.substr(0, end);
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
      while (!pair.empty() && pair.front() == ' ') pair.remove_prefix(1);
      if (pair.size() > name.size() && pair.starts_with(name) && pair[name.size()] == '=') return pair.substr(name.size() + 1);
    }
  }
  return {};
}

std::string network_of(const std::string& address) {
  in6_addr bytes{};
  if (address.find(':') == std::string::npos || inet_pton(AF_INET6, address.c_str(), &bytes) != 1) return address;
  if (IN6_IS_ADDR_V4MAPPED(&bytes)) return address;
  std::string text;
  for (int i = 0; i < 8; ++i) text += fmt::format("{:02x}", bytes.s6_addr[i]);
  return text + "/64";
}

Accounts::Accounts(Options options) : options_(std::move(options)) {
  if (!options_.password_file.empty()) read_passwords();
  if (!options_.token_file.empty()) read_tokens();
  is_required_ = !hashes_.empty() || !tokens_.empty();
  if (!hashes_.empty()) nobodys_hash();
}

void Accounts::read_passwords() {
  if (!has_passwords())
    throw Error(ErrorCode::unimplemented, "this build does not support passwords", "build with libsodium, or use --token-file");
  for (const Line& line : read_lines(options_.password_file, "--password-file", "admin", '$')) {
    if (!line.secret.starts_with("$argon2id$"))
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} line {}: not an argon2id hash", options_.password_file, line.number),
                  "tenon serve hash-password prints one");
    if (!hashes_.emplace(line.account, line.secret).second)
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} line {}: account '{}' appears twice", options_.password_file, line.number, line.account));
  }
}

void Accounts::read_tokens() {
  for (const Line& line : read_lines(options_.token_file, "--token-file", "token", '\0')) {
    if (line.secret.size() < kMinTokenLength)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{} line {}: a token must have at least {} characters", options_.token_file, line.number, kMinTokenLength),
          "create one with openssl rand -hex 32");
    tokens_.emplace_back(line.secret, line.account);
  }
}

Accounts::Session* Accounts::find_session(const Request& request) {
  const std::string_view id = cookie(request, kSessionCookie);
  if (id.empty()) return nullptr;
  const auto found = sessions_.find(std::string(id));
  if (found == sessions_.end()) return nullptr;
  const Time now = options_.now();
  if (now - found->second.used >= options_.idle || now - found->second.begun >= options_.total) {
    sessions_.erase(found);
    return nullptr;
  }
  return &found->second;
}

std::optional<std::string> Accounts::account_of(const Request& request, bool renews) {
  if (const std::string_view field = request.field("Authorization"); !field.empty()) {
    if (field.size() <= 7 || !equal_ignoring_case(field.substr(0, 7), "Bearer ")) return std::nullopt;
    std::optional<std::string> account;
    for (const auto& [token, owner] : tokens_)
      if (equal_in_constant_time(token, field.substr(7))) account = owner;
    return account;
  }
  const std::lock_guard lock(mutex_);
  Session* session = find_session(request);
  if (session == nullptr) return std::nullopt;
  if (renews) session->used = options_.now();
  return session->account;
}

std::string Accounts::lock_key(const std::string& account, const std::string& address, const Request& request) const {
  const std::string client(cookie(request, kClientCookie));
  const auto known = clients_.find(client);
  if (known != clients_.end() && known->second == account) return account + "\nclient " + client;
  return account + "\naddress " + network_of(address);
}

// Throws while the account is locked for this client, while its network has failed too often under any names, and when too many
// wait for their password to be checked. One network's strangers wait in few places, so that a flood from there leaves room for
// others.
Accounts::Attempt Accounts::begin_attempt(const std::string& account, const std::string& address, const Request& request) {
  const auto refuse = [](double left) {
    const int whole = static_cast<int>(left) + 1;
    throw Problem(429, "resource_exhausted", "too many failed logins from this address", "wait, or log in from another address")
        .with_retry(whole)
        .with("locked_for_seconds", std::to_string(whole))
        .with("remaining_attempts", "0");
  };
  const std::lock_guard lock(mutex_);
  const Time now = options_.now();
  Attempt attempt{.lock = lock_key(account, address, request)};
  const bool is_stranger = attempt.lock.find("\naddress ") != std::string::npos;
  if (is_stranger) attempt.network = network_of(address);
  Failures& failures = locks_[attempt.lock];
  if (now < failures.locked_until) refuse(seconds(failures.locked_until - now));
  if (now - failures.last >= options_.lockout) failures.count = 0;
  if (waiting_logins_ >= (is_stranger ? kMaxWaitingStrangers : kMaxWaitingLogins))
    throw Problem(503, "overloaded", "too many logins at the same time").with_retry(2);
  if (is_stranger) {
    Network& network = networks_[attempt.network];
    if (now - network.last >= options_.lockout) network.failures = 0;
    if (network.failures >= options_.network_attempts) refuse(seconds(network.last + options_.lockout - now));
    if (network.waiting >= kMaxWaitingOfNetwork)
      throw Problem(503, "overloaded", "too many people log in from here at this moment").with_retry(2);
    ++network.waiting;
  }
  ++waiting_logins_;
  // Counted before it is checked, so that many at once are not more attempts than one after another.
  ++failures.count;
  failures.last = now;
  if (failures.count >= options_.attempts) failures.locked_until = now + options_.lockout;
  if (const auto found = hashes_.find(account); found != hashes_.end()) attempt.hash = found->second;
  return attempt;
}

// Under the lock.
void Accounts::end_attempt(const Attempt& attempt, bool is_right) {
  --waiting_logins_;
  Network* network = attempt.network.empty() ? nullptr : &networks_[attempt.network];
  if (network != nullptr) --network->waiting;
  if (is_right) {
    locks_.erase(attempt.lock);
    return;
  }
  ++failure_count_;
  if (network != nullptr) {
    ++network->failures;
    network->last = options_.now();
  }
  const int remaining = std::max(0, options_.attempts - locks_[attempt.lock].count);
  throw Problem(401, "unauthenticated", "the account or the password is wrong",
                remaining > 0 ? "" : "no further attempts are allowed for 15 minutes")
      .with("remaining_attempts", std::to_string(remaining))
      .with("locked_for_seconds", std::to_string(remaining > 0 ? 0 : options_.lockout.count()));
}

Accounts::Login Accounts::login(const std::string& account, const std::string& password, const std::string& address,
                                const Request& request) {
  if (account.size() > 64 || password.size() > 1024)
    throw Problem(400, "invalid_argument", "the account or the password is too long");
  const Attempt attempt = begin_attempt(account, address, request);
  bool is_right = false;
  {
    const std::lock_guard one_at_a_time(hashing_);
    is_right =
        !hashes_.empty() && verify(attempt.hash.empty() ? nobodys_hash() : attempt.hash, password) && !attempt.hash.empty();
  }
  if (!is_right) logging::warn("failed login of account '{}' from {}", printable(account), address);
  const std::lock_guard lock(mutex_);
  end_attempt(attempt, is_right);
  Login login{random_id("") + random_id(""), std::string(cookie(request, kClientCookie)), account};
  if (clients_.find(login.client) == clients_.end()) login.client = random_id("");
  if (clients_.size() >= kMaxEntries) clients_.clear();
  clients_[login.client] = account;
  if (sessions_.size() >= kMaxEntries)
    sessions_.erase(std::min_element(sessions_.begin(), sessions_.end(),
                                     [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  const Time now = options_.now();
  sessions_[login.session] = {account, now, now};
  return login;
}

void Accounts::logout(const Request& request) {
  const std::lock_guard lock(mutex_);
  sessions_.erase(std::string(cookie(request, kSessionCookie)));
}

Accounts::Standing Accounts::standing(const Request& request, const std::string& account, const std::string& address) {
  Standing standing;
  standing.remaining_attempts = options_.attempts;
  if (!request.field("Authorization").empty()) {
    standing.account = account_of(request, false);
    standing.expires_in_seconds = standing.account ? seconds(options_.total) : 0;
    return standing;
  }
  const std::lock_guard lock(mutex_);
  const Time now = options_.now();
  if (const Session* session = find_session(request)) {
    standing.account = session->account;
    standing.expires_in_seconds = seconds(std::min(session->used + options_.idle, session->begun + options_.total) - now);
  }
  if (const auto found = locks_.find(lock_key(account, address, request)); found != locks_.end()) {
    const bool is_old = now - found->second.last >= options_.lockout;
    standing.locked_for_seconds = std::max(0.0, seconds(found->second.locked_until - now));
    standing.remaining_attempts = is_old ? options_.attempts : std::max(0, options_.attempts - found->second.count);
  }
  return standing;
}

std::size_t Accounts::sessions() const {
  const std::lock_guard lock(mutex_);
  return sessions_.size();
}

std::uint64_t Accounts::failures() const {
  const std::lock_guard lock(mutex_);
  return failure_count_;
}

void Accounts::expire() {
  const std::lock_guard lock(mutex_);
  const Time now = options_.now();
  std::erase_if(sessions_, [&](const auto& entry) {
    return now - entry.second.used >= options_.idle || now - entry.second.begun >= options_.total;
  });
  std::erase_if(
      locks_, [&](const auto& entry) { return now >= entry.second.locked_until && now - entry.second.last >= options_.lockout; });
  std::erase_if(networks_,
                [&](const auto& entry) { return entry.second.waiting == 0 && now - entry.second.last >= options_.lockout; });
  // Many addresses at once: memory is bounded, and each guess still costs a slow hash. The older half goes.
  if (locks_.size() <= kMaxEntries * 10) return;
  std::vector<Time> times;
  for (const auto& [key, failures] : locks_) times.push_back(failures.last);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  std::erase_if(locks_, [&](const auto& entry) { return entry.second.last < *middle; });
}

}  // namespace tenon::server

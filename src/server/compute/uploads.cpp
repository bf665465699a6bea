#include "server/compute/uploads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>

#include <algorithm>
#include <cstring>

#include "array/io/numpy/npz.h"
#include "ops/names.h"
#include "server/compute/program/estimates.h"
#include "server/http/problem.h"

namespace tenon::server {

std::string random_id(std::string_view prefix) {
  std::uint64_t bits[2];
  if (getrandom(bits, sizeof bits, 0) != sizeof bits)
    throw Error(ErrorCode::unavailable, "the system provides no random numbers");
  return fmt::format("{}{:016x}{:016x}", prefix, bits[0], bits[1]);
}

namespace {

constexpr std::uint64_t kUploadBytes = 1024;  // of the store itself

bool is_npy(std::string_view bytes) { return bytes.starts_with("\x93NUMPY"); }

std::string_view safetensors_header(std::string_view bytes) {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  return bytes.substr(sizeof length, std::min<std::uint64_t>(length, bytes.size()));
}

// An upper bound of the tensors in a safetensors file: each has a member "data_offsets" in the header.
std::size_t count_tensors(std::string_view header) {
  std::size_t count = 0;
  for (std::size_t at = header.find("data_offsets"); at != std::string_view::npos; at = header.find("data_offsets", at + 1))
    ++count;
  return count;
}

FileSize measure(std::string_view bytes) {
  const auto span = std::as_bytes(std::span(bytes.data(), bytes.size()));
  if (is_npy(bytes)) return {bytes.size(), 0, 1};
  if (bytes.starts_with("PK")) {
    const NpzContents contents = npz_contents(span);
    return {contents.bytes, contents.bytes, contents.files};
  }
  if (bytes.size() > 8 && bytes[8] == '{') {
    const std::string_view header = safetensors_header(bytes);
    const std::size_t tensors = count_tensors(header);
    // Elements of 8 bits, which are floats, become 16. The header is read once more on the way.
    const std::size_t growth = header.find("F8_") != std::string_view::npos ? 2 : 1;
    return {growth * bytes.size(), tensors * FileSize::kTensorBytes, tensors};
  }
  // Text: a number of two characters is eight bytes, and sixteen while it is read.
  return {4 * bytes.size(), 12 * bytes.size(), 1};
}

std::shared_ptr<const ArrayFile> read_file(std::string_view bytes) {
  const auto span = std::as_bytes(std::span(bytes.data(), bytes.size()));
  return std::make_shared<const ArrayFile>(parse_arrays(span));
}

}  // namespace

FileSize FileSize::of(std::string_view bytes) {
  const FileSize size = measure(bytes);
  if (size.tensors > kMaxTensors)
    throw Problem(413, "too_large", fmt::format("the file has more than {} tensors", kMaxTensors), "split it into several files");
  return size;
}

void UploadStore::reserve(const std::string& client, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const auto found = totals_.find(client);
  const Total used = found == totals_.end() ? Total{} : found->second;
  if (used.bytes + bytes > quota_bytes_)
    throw Problem(429, "resource_exhausted",
                  fmt::format("{} bytes are uploaded, more than the limit of {}", used.bytes, quota_bytes_),
                  "delete an upload, or wait until one expires")
        .with_retry(60);
  if (used.count >= kMaxOfOwner)
    throw Problem(429, "resource_exhausted", fmt::format("this client already has {} uploads", used.count),
                  "delete an upload, or put several tensors into one safetensors file")
        .with_retry(60);
  if (bytes_ + bytes > gate_.limit() / 2)
    throw Problem(503, "overloaded", "the uploads of all clients together use too much memory", "try again later").with_retry(60);
  Total& total = totals_[client];
  total.bytes += bytes;
  ++total.count;
  bytes_ += bytes;
}

void UploadStore::forget(const std::string& client, std::uint64_t bytes) noexcept {
  const auto found = totals_.find(client);
  found->second.bytes -= bytes;
  bytes_ -= bytes;
  if (--found->second.count == 0) totals_.erase(found);
}

Upload UploadStore::add(const std::string& owner, const ClientMemory& memory, const std::string& name, std::string_view bytes) {
  const FileSize size = FileSize::of(bytes);
  reserve(memory.client, size.bytes);
  try {
    Entry entry;
    entry.memory = std::make_shared<const MemoryGate::Share>(
        memory.gate.take(memory.client, size.bytes + kUploadBytes + size.tensors * FileSize::kTensorBytes));
    {
      const MemoryGate::Share reading = memory.take(size.reading_bytes);
      entry.upload.file = read_file(bytes);
    }
    entry.upload.id = random_id("u_");
    entry.upload.name = name.substr(0, 200);
    entry.upload.owner = owner;
    entry.client = memory.client;
    entry.reserved_bytes = size.bytes;
    entry.upload.bytes = bytes.size();
    entry.upload.used = Clock::now();
    const std::lock_guard lock(mutex_);
    Upload shown = entry.upload;
    uploads_.emplace(shown.id, std::move(entry));
    return shown;
  } catch (...) {
    const std::lock_guard lock(mutex_);
    forget(memory.client, size.bytes);
    throw;
  }
}

UploadStore::Entry& UploadStore::find(const std::string& id) {
  const auto found = uploads_.find(id);
  if (found == uploads_.end()) throw Error(ErrorCode::not_found, "unknown upload", "it may have expired; upload the file again");
  found->second.upload.used = Clock::now();
  return found->second;
}

Upload UploadStore::get(const std::string& id) {
  const std::lock_guard lock(mutex_);
  return find(id).upload;
}

UploadStore::Loaded UploadStore::load(const std::string& id, const std::string& tensor) {
  std::shared_ptr<const ArrayFile> file;
  Loaded loaded;
  {
    const std::lock_guard lock(mutex_);
    const Entry& entry = find(id);
    file = entry.upload.file;
    loaded.memory = entry.memory;
  }
  const auto& arrays = file->arrays;
  const auto found = tensor.empty() && arrays.size() == 1 ? arrays.begin() : arrays.find(tensor);
  if (found != arrays.end()) {
    loaded.array = found->second;
    return loaded;
  }
  if (tensor.empty()) {
    constexpr std::size_t kShown = 20;
    std::vector<std::string_view> names;
    for (auto at = arrays.begin(); at != arrays.end() && names.size() < kShown; ++at)
      names.push_back(std::string_view(at->first).substr(0, 100));
    throw Error(ErrorCode::invalid_argument, fmt::format("the upload contains {} tensors", arrays.size()),
                fmt::format("select one with 'tensor': {}{}", fmt::join(names, ", "), arrays.size() > kShown ? " ..." : ""));
  }
  std::vector<std::string_view> names;
  for (const auto& entry : arrays) names.push_back(entry.first);
  const std::string near = nearest(tensor, names);
  throw Error(ErrorCode::not_found, fmt::format("the upload has no tensor '{}'", tensor.substr(0, 200)),
              near.empty() ? "" : fmt::format("did you mean '{}'?", near));
}

void UploadStore::remove(const std::string& id) {
  Entry dropped;  // freed outside the lock
  const std::lock_guard lock(mutex_);
  dropped = std::move(find(id));
  forget(dropped.client, dropped.reserved_bytes);
  uploads_.erase(id);
}

std::vector<Upload> UploadStore::of_owner(const std::string& owner) const {
  const std::lock_guard lock(mutex_);
  std::vector<Upload> found;
  for (const auto& [id, entry] : uploads_)
    if (entry.upload.owner == owner) found.push_back(entry.upload);
  return found;
}

double UploadStore::seconds_left(const Upload& upload) const {
  return std::max(0.0, std::chrono::duration<double>(upload.used + lifetime_ - Clock::now()).count());
}

void UploadStore::expire(Clock::time_point now) {
  std::vector<Entry> dropped;  // freed outside the lock
  const std::lock_guard lock(mutex_);
  for (auto at = uploads_.begin(); at != uploads_.end();) {
    if (now - at->second.upload.used < lifetime_) {
      ++at;
      continue;
    }
    forget(at->second.client, at->second.reserved_bytes);
    dropped.push_back(std::move(at->second));
    at = uploads_.erase(at);
  }
}

ResultStore::ResultStore(MemoryGate& gate, std::chrono::seconds lifetime)
    : gate_(gate),
      lifetime_(lifetime),
      held_(std::min(gate.limit() / 8, kMaxBytes), kMaxResults) {}

void ResultStore::erase(const std::string& id) {
  held_.remove(id);
  results_.erase(id);
}

std::string ResultStore::keep(const std::string& client, KeptResults results) {
  const std::uint64_t bytes = result_bytes(results.arrays);
  if (bytes > held_.max_bytes() / 4) return {};
  std::string id = random_id("r_");
  const std::lock_guard lock(mutex_);
  while (const std::optional<std::string> excess = held_.excess(bytes)) erase(*excess);
  std::optional<MemoryGate::Share> memory = gate_.try_take(client, bytes);
  while (!memory) {
    const std::optional<std::string> oldest = held_.oldest_of(client);
    if (!oldest) return {};
    erase(*oldest);
    memory = gate_.try_take(client, bytes);
  }
  results_.emplace(id, Entry{std::move(results), std::move(*memory), Clock::now()});
  held_.add(id, client, bytes);
  return id;
}

KeptResults ResultStore::get(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = results_.find(id);
  if (found == results_.end())
    throw Error(ErrorCode::not_found, "unknown result", "results are kept for at most 10 minutes; compute it again");
  return found->second.results;
}

void ResultStore::expire(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  for (auto at = results_.begin(); at != results_.end();) {
    if (now - at->second.made < lifetime_) {
      ++at;
      continue;
    }
    held_.remove(at->first);
    at = results_.erase(at);
  }
}

}  // namespace tenon::server

#include "server/compute/uploads.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>

#include <algorithm>

#include "ops/names.h"
#include "server/http/problem.h"

namespace tenon::server {

std::string random_id(std::string_view prefix) {
  std::uint64_t bits[2];
  if (getrandom(bits, sizeof bits, 0) != sizeof bits)
    throw Error(ErrorCode::unavailable, "the system provides no random numbers");
  return fmt::format("{}{:016x}{:016x}", prefix, bits[0], bits[1]);
}

Upload UploadStore::add(const std::string& owner, const std::string& name, std::string_view bytes) {
  const auto span = std::as_bytes(std::span(bytes.data(), bytes.size()));
  Entry entry;
  entry.memory = gate_.take(bytes.size());
  if (bytes.starts_with("\x93NUMPY")) {
    entry.upload.file.arrays.emplace("", parse_npy(span));
  } else if (bytes.size() > 8 && bytes[8] == '{') {
    entry.upload.file = parse_safetensors(span);
  } else {
    throw Error(ErrorCode::invalid_argument, "the file is neither .npy nor safetensors", "numpy.save writes .npy files");
  }
  entry.upload.id = random_id("u_");
  entry.upload.name = name.substr(0, 200);
  entry.upload.owner = owner;
  entry.upload.bytes = bytes.size();
  entry.upload.used = Clock::now();
  const std::lock_guard lock(mutex_);
  std::uint64_t used = 0;
  for (const auto& [id, other] : uploads_)
    if (other.upload.owner == owner) used += other.upload.bytes;
  if (used + bytes.size() > quota_bytes_)
    throw Problem(429, "resource_exhausted", fmt::format("{} bytes are uploaded, more than the limit of {}", used, quota_bytes_),
                  "delete an upload, or wait until one expires")
        .with_retry(60);
  Upload shown = entry.upload;
  uploads_.emplace(shown.id, std::move(entry));
  return shown;
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

HostArray UploadStore::load(const std::string& id, const std::string& tensor) {
  const std::lock_guard lock(mutex_);
  const auto& arrays = find(id).upload.file.arrays;
  if (tensor.empty() && arrays.size() == 1) return arrays.begin()->second;
  if (const auto found = arrays.find(tensor); found != arrays.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& entry : arrays) names.push_back(entry.first);
  if (tensor.empty())
    throw Error(ErrorCode::invalid_argument, fmt::format("the upload contains {} tensors", names.size()),
                fmt::format("select one with 'tensor': {}", fmt::join(names, ", ")));
  const std::string near = nearest(tensor, names);
  throw Error(ErrorCode::not_found, fmt::format("the upload has no tensor '{}'", tensor),
              near.empty() ? "" : fmt::format("did you mean '{}'?", near));
}

void UploadStore::remove(const std::string& id) {
  const std::lock_guard lock(mutex_);
  find(id);
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
    dropped.push_back(std::move(at->second));
    at = uploads_.erase(at);
  }
}

std::string ResultStore::keep(KeptResults results, MemoryGate::Share memory) {
  Entry entry{std::move(results), 0, std::move(memory), Clock::now()};
  for (const HostArray& array : entry.results.arrays) entry.bytes += array.bytes();
  if (entry.bytes > kMaxBytes / 4) return {};
  std::string id = random_id("r_");
  const std::lock_guard lock(mutex_);
  bytes_ += entry.bytes;
  results_.emplace(id, std::move(entry));
  while (bytes_ > kMaxBytes || results_.size() > 1000) {
    const auto oldest = std::min_element(results_.begin(), results_.end(),
                                         [](const auto& a, const auto& b) { return a.second.made < b.second.made; });
    bytes_ -= oldest->second.bytes;
    results_.erase(oldest);
  }
  return id;
}

KeptResults ResultStore::get(const std::string& id) const {
  const std::lock_guard lock(mutex_);
  const auto found = results_.find(id);
  if (found == results_.end())
    throw Error(ErrorCode::not_found, "unknown result", "results are kept for 10 minutes; compute it again");
  return found->second.results;
}

void ResultStore::expire(Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  for (auto at = results_.begin(); at != results_.end();) {
    if (now - at->second.made < lifetime_) {
      ++at;
      continue;
    }
    bytes_ -= at->second.bytes;
    at = results_.erase(at);
  }
}

}  // namespace tenon::server

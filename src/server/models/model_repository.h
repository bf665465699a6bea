// ModelRepository: the models that the server offers, by name and version.
//
// Models come from the folder of `tenon serve --models`, and from clients that send one to try it. They are in memory only while
// they are used, or for as long as the keep-open policy says; who needs memory takes it from the model that was not used for
// longest. Thread safety: all calls may run concurrently; load() blocks and computes.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/models/served_model.h"

namespace tenon::server {

struct Services;

class ModelRepository {
 public:
  using Versions = std::map<std::int64_t, std::shared_ptr<ServedModel>>;

  // |folder| "": no models. Throws what scan_models() throws.
  ModelRepository(Services& services, std::filesystem::path folder);

  bool has_folder() const noexcept { return !folder_.empty(); }
  // |version| "": the newest. Throws not_found naming what there is.
  std::shared_ptr<ServedModel> find(const std::string& name, const std::string& version = "") const;
  std::vector<std::string> versions(const std::string& name) const;
  // Those of the folder.
  std::vector<std::shared_ptr<ServedModel>> all() const;

  // Reads the model's files again, so that new versions and changed configurations count, then loads every version.
  void load(const std::string& name, const std::stop_token& cancel);
  void unload(const std::string& name);

  // A model that a client sends: an ONNX file without files beside it. It is loaded at once, under a name that nobody can guess,
  // and forgotten when it was not used for a while. Throws what loading throws, and Problem 429 for too many of one owner.
  // Memory and threads are those of |quota|; the operator's models stay where they are.
  std::shared_ptr<ServedModel> add(const std::string& name, const std::string& owner, const std::string& quota,
                                   std::shared_ptr<const Body> body, const std::stop_token& cancel);
  // Throws not_found for a model that is not one of these.
  void remove(const std::string& name);
  // Those of the folder, and those that |owner| sent.
  std::vector<std::shared_ptr<ServedModel>> visible_to(const std::string& owner) const;

  // A share of the server's memory, from idle models if it must. Throws Problem 413 for more than the server has, 503 while
  // models in use have it. |asking| is not asked to give its own.
  MemoryGate::Share make_room(std::uint64_t bytes, const ServedModel* asking);
  // Releases the model that |owner| sent and that was idle for longest, but |asking|; false if there is none.
  bool release_sent(const std::string& owner, const ServedModel* asking);

  // Once a second: drops what waits too long, releases what is idle.
  void tick(std::chrono::steady_clock::time_point now);
  void cancel_all();

 private:
  std::vector<std::shared_ptr<ServedModel>> everything() const;
  static bool release_idlest(std::vector<std::shared_ptr<ServedModel>> models, const ServedModel* asking);
  void read_folder(const std::string& only);

  Services& services_;
  const std::filesystem::path folder_;
  mutable std::mutex mutex_;
  std::map<std::string, Versions> models_;
  std::map<std::string, std::shared_ptr<ServedModel>> sent_;
  std::map<std::string, std::size_t> arriving_;  // models that are being loaded to join sent_, by owner
};

}  // namespace tenon::server

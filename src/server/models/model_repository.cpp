#include "server/models/model_repository.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/printable.h"
#include "base/text/units.h"
#include "server/http/problem.h"
#include "server/services.h"
#include "tenon/error.h"

namespace tenon::server {
namespace {

constexpr std::size_t kMaxSent = 8;  // by one owner

}  // namespace

ModelRepository::ModelRepository(Services& services, std::filesystem::path folder)
    : services_(services),
      folder_(std::move(folder)) {
  if (has_folder()) read_folder("");
}

void ModelRepository::read_folder(const std::string& only) {
  std::map<std::string, Versions> found;
  for (ModelSource& source : scan_models(folder_)) {
    if (!only.empty() && source.name != only) continue;
    const std::string name = source.name;
    const std::int64_t version = source.version;
    found[name].emplace(version, std::make_shared<ServedModel>(services_, std::move(source)));
  }
  const std::lock_guard lock(mutex_);
  if (!only.empty() && !found.contains(only)) models_.erase(only);
  for (auto& [name, versions] : found) models_.insert_or_assign(name, std::move(versions));
}

std::shared_ptr<ServedModel> ModelRepository::find(const std::string& name, const std::string& version) const {
  const std::lock_guard lock(mutex_);
  if (const auto sent = sent_.find(name); sent != sent_.end()) return sent->second;
  const auto model = models_.find(name);
  if (model == models_.end()) {
    std::string names;
    for (const auto& [each, versions] : models_)
      if (names.size() < 400) names += (names.empty() ? "" : ", ") + each;
    throw Error(ErrorCode::not_found, fmt::format("unknown model '{}'", printable(name.substr(0, 128))),
                !has_folder()   ? "start the server with --models DIR; ops are named op.<name>, e.g. op.softmax"
                : names.empty() ? "the folder of models is empty; ops are named op.<name>, e.g. op.softmax"
                                : fmt::format("models: {}; ops are named op.<name>", names));
  }
  if (version.empty()) return model->second.rbegin()->second;
  for (const auto& [number, each] : model->second)
    if (std::to_string(number) == version) return each;
  std::string numbers;
  for (const auto& [number, each] : model->second) numbers += fmt::format("{}{}", numbers.empty() ? "" : ", ", number);
  throw Error(ErrorCode::not_found, fmt::format("model {} has no version '{}'", name, printable(version.substr(0, 32))),
              fmt::format("versions that are served: {}", numbers));
}

std::vector<std::string> ModelRepository::versions(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> out;
  if (const auto model = models_.find(name); model != models_.end())
    for (const auto& [number, each] : model->second) out.push_back(std::to_string(number));
  return out;
}

std::vector<std::shared_ptr<ServedModel>> ModelRepository::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<ServedModel>> out;
  for (const auto& [name, versions] : models_)
    for (const auto& [number, model] : versions) out.push_back(model);
  return out;
}

std::vector<std::shared_ptr<ServedModel>> ModelRepository::visible_to(const std::string& owner) const {
  std::vector<std::shared_ptr<ServedModel>> out = all();
  const std::lock_guard lock(mutex_);
  for (const auto& [name, model] : sent_)
    if (model->source().owner == owner) out.push_back(model);
  return out;
}

std::vector<std::shared_ptr<ServedModel>> ModelRepository::everything() const {
  std::vector<std::shared_ptr<ServedModel>> out = all();
  const std::lock_guard lock(mutex_);
  for (const auto& [name, model] : sent_) out.push_back(model);
  return out;
}

std::shared_ptr<ServedModel> ModelRepository::add(const std::string& name, const std::string& owner, const std::string& quota,
                                                  std::shared_ptr<const Body> body, const std::stop_token& cancel) {
  // A place is taken before anything is loaded.
  class Place {
   public:
    Place(ModelRepository& models, const std::string& who) : models_(models), owner_(who) {
      const std::lock_guard lock(models_.mutex_);
      const auto sent = static_cast<std::size_t>(std::count_if(
          models_.sent_.begin(), models_.sent_.end(), [&](const auto& each) { return each.second->source().owner == owner_; }));
      std::size_t& arriving = models_.arriving_[owner_];
      if (sent + arriving >= kMaxSent)
        throw Problem(429, "resource_exhausted", fmt::format("this client has sent {} models already", sent + arriving),
                      "delete one with DELETE /api/models/NAME");
      ++arriving;
    }
    ~Place() {
      const std::lock_guard lock(models_.mutex_);
      if (--models_.arriving_[owner_] == 0) models_.arriving_.erase(owner_);
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    ModelRepository& models_;
    const std::string owner_;
  };
  const Place place(*this, owner);
  ModelSource source;
  for (const char c : name.substr(0, 60)) {
    const bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    if (c == '.') break;
    source.name += fits ? c : '_';
  }
  source.name = random_id(source.name + "-");
  source.owner = owner;
  source.quota = quota;
  source.body = std::move(body);
  const auto model = std::make_shared<ServedModel>(services_, std::move(source));
  model->load(cancel);
  const std::lock_guard lock(mutex_);
  sent_.emplace(model->name(), model);
  return model;
}

void ModelRepository::remove(const std::string& name) {
  std::shared_ptr<ServedModel> model;
  {
    const std::lock_guard lock(mutex_);
    const auto found = sent_.find(name);
    if (found == sent_.end())
      throw Error(ErrorCode::not_found, fmt::format("no client has sent a model '{}'", printable(name.substr(0, 128))));
    model = found->second;
    sent_.erase(found);
  }
  model->stop();
}

void ModelRepository::load(const std::string& name, const std::stop_token& cancel) {
  Versions before;
  {
    const std::lock_guard lock(mutex_);
    if (const auto model = models_.find(name); model != models_.end()) before = model->second;
  }
  const auto is_ready = [](const auto& each) { return each.second->status().state == ServedModel::State::ready; };
  if (has_folder() && (before.empty() || !std::all_of(before.begin(), before.end(), is_ready))) read_folder(name);
  Versions versions;
  {
    const std::lock_guard lock(mutex_);
    if (const auto model = models_.find(name); model != models_.end()) versions = model->second;
  }
  if (versions.empty()) versions.emplace(1, find(name));
  for (const auto& [number, model] : versions) model->load(cancel);
}

void ModelRepository::unload(const std::string& name) {
  Versions versions;
  {
    const std::lock_guard lock(mutex_);
    if (const auto model = models_.find(name); model != models_.end()) versions = model->second;
  }
  if (versions.empty()) versions.emplace(1, find(name));
  for (const auto& [number, model] : versions) model->stop();
}

bool ModelRepository::release_idlest(std::vector<std::shared_ptr<ServedModel>> models, const ServedModel* asking) {
  std::erase_if(models, [&](const auto& model) { return model.get() == asking || model->status().bytes == 0; });
  std::sort(models.begin(), models.end(),
            [](const auto& a, const auto& b) { return a->status().idle_seconds > b->status().idle_seconds; });
  return std::any_of(models.begin(), models.end(), [](const auto& model) { return model->release(); });
}

bool ModelRepository::release_sent(const std::string& owner, const ServedModel* asking) {
  std::vector<std::shared_ptr<ServedModel>> models;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, model] : sent_)
      if (model->source().owner == owner) models.push_back(model);
  }
  return release_idlest(std::move(models), asking);
}

MemoryGate::Share ModelRepository::make_room(std::uint64_t bytes, const ServedModel* asking) {
  if (bytes > services_.memory.limit())
    throw Problem(413, "too_large",
                  fmt::format("the model needs about {} of memory; the server has {}", format_bytes(static_cast<double>(bytes)),
                              format_bytes(static_cast<double>(services_.memory.limit()))),
                  "raise the server's --max-memory");
  while (true) {
    if (std::optional<MemoryGate::Share> share = services_.memory.try_take(MemoryGate::kServer, bytes)) return std::move(*share);
    if (!release_idlest(everything(), asking))
      throw Problem(
          503, "overloaded",
          fmt::format("there is no memory for the model now: it needs about {}", format_bytes(static_cast<double>(bytes))),
          "try again when other requests have ended, or raise the server's --max-memory")
          .with_retry(2);
  }
}

void ModelRepository::tick(std::chrono::steady_clock::time_point now) {
  const double lifetime = std::chrono::duration<double>(services_.options.upload_lifetime).count();
  for (const std::shared_ptr<ServedModel>& model : everything()) {
    model->drop_dead();
    model->release_if_idle(now);
    if (model->source().body && model->status().idle_seconds > lifetime) {
      const std::lock_guard lock(mutex_);
      sent_.erase(model->name());
    }
  }
}

void ModelRepository::cancel_all() {
  for (const std::shared_ptr<ServedModel>& model : everything()) model->cancel_running();
}

}  // namespace tenon::server

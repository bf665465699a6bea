// What answers the Open Inference Protocol: the ops of the catalogue as models named op.<name>, and the models of the folder.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/json_writer.h"
#include "server/models/served_model.h"
#include "server/routes/routes.h"

namespace tenon::server {

struct Services;

// The ops. Thread safety: all calls may run concurrently.
class OpModels {
 public:
  static bool is_op(const std::string& model) { return model.starts_with("op."); }

  // The first argument of |call| is the model's name, the second its version. They throw not_found.
  static void check(const Call& call);
  static Response metadata(const Call& call);
  static Response config(const Call& call);
  static void write_index(JsonWriter& out);
  Response statistics(const Call& call) const;
  Response infer(Services& services, const Call& call);

 private:
  struct Count {
    std::uint64_t successes = 0, failures = 0, nanoseconds = 0;
  };
  void count(const std::string& op, bool is_success, double seconds);

  mutable std::mutex mutex_;
  std::map<std::string, Count> counts_;  // since the start
};

// The models of the folder. metadata() and config() load the model if it is not in memory.
std::shared_ptr<ServedModel> model_of(Services& services, const Call& call);
Response model_metadata(Services& services, const Call& call);
Response model_config(Services& services, const Call& call);
Response model_statistics(const std::vector<std::shared_ptr<ServedModel>>& models);
void write_model_index(JsonWriter& out, Services& services, bool only_ready);
void infer_with_model(Services& services, const Call& call, const Finish& finish);

// What a batch threw, as the client reads it.
[[noreturn]] void rethrow_from_run(const std::exception_ptr& error);
// "the results have ...": whether and how requests share batches.
void write_batching(JsonWriter& out, const ServedModel& model, const ServedModel::Status& status, const BatchStatistics& batches);

}  // namespace tenon::server

// What answers the Open Inference Protocol: the ops of the catalogue as models named op.<name>, and the models of the folder.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/text/json_writer.h"
#include "server/models/batching/op_batches.h"
#include "server/models/served_model.h"
#include "server/routes/routes.h"
#include "tenon/ops.h"

namespace tenon::server {

struct Services;
struct OpInference;

// The ops. Lifetime: by shared pointer. Thread safety: all calls may run concurrently.
class OpModels : public std::enable_shared_from_this<OpModels> {
 public:
  explicit OpModels(Services& services) : batches_(services) {}

  static bool is_op(const std::string& model) { return model.starts_with("op."); }

  // The first argument of |call| is the model's name, the second its version. They throw not_found.
  static void check(const Call& call);
  static Response metadata(const Call& call);
  static Response config(const Call& call);
  static void write_index(JsonWriter& out);
  Response statistics(const Call& call) const;
  // Alone, or with equal requests in one batch where an answer has the same bits then.
  void infer(Services& services, const Call& call, const Finish& finish);

 private:
  Response infer_alone(Services& services, const OpInfo& op, OpInference& inference);
  void infer_in_company(const OpInfo& op, const Call& call, const std::shared_ptr<OpInference>& inference, const Finish& finish);
  void add_answer(const std::string& op, bool is_success, double seconds);
  void add_execution(const std::string& op, std::size_t requests, double seconds);

  mutable std::mutex mutex_;
  std::map<std::string, BatchStatistics> statistics_;  // since the start
  OpBatches batches_;
};

// The models of the folder. metadata() and config() load the model if it is not in memory.
std::shared_ptr<ServedModel> model_of(Services& services, const Call& call);
Response model_metadata(Services& services, const Call& call);
Response model_config(Services& services, const Call& call);
Response model_statistics(const std::vector<std::shared_ptr<ServedModel>>& models);
void write_model_index(JsonWriter& out, Services& services, bool only_ready);
void infer_with_model(Services& services, const Call& call, const Finish& finish);

// From "name" to "batch_stats", as Triton has them.
void write_inference_statistics(JsonWriter& out, const std::string& name, const std::string& version,
                                const BatchStatistics& batches);
// Of a level of the protocol: 1 is the highest, 5 that of requests that name none.
int priority_of(std::uint64_t level);

// What a batch threw, as the client reads it.
[[noreturn]] void rethrow_from_run(const std::exception_ptr& error);
// "the results have ...": whether and how requests share batches.
void write_batching(JsonWriter& out, const ServedModel& model, const ServedModel::Status& status, const BatchStatistics& batches);

}  // namespace tenon::server

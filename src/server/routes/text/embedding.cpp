#include "server/routes/text/embedding.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>

#include "server/http/problem.h"
#include "server/services.h"
#include "tenon/error.h"

namespace tenon::server {
namespace {

// In the queue at one time, of one request.
constexpr std::size_t kPart = 64;

class EmbeddingTask : public std::enable_shared_from_this<EmbeddingTask> {
 public:
  EmbeddingTask(const Call& call, EmbeddingRequest request, std::vector<Tokens> tokens, MemoryGate::Share memory,
                std::function<void(Embedded)> done)
      : request_(std::move(request)),
        tokens_(std::move(tokens)),
        client_(call.client.quota),
        cancel_(call.cancel),
        memory_(std::move(memory)),
        done_(std::move(done)),
        order_(tokens_.size()) {
    result_.vectors.resize(tokens_.size());
    for (const Tokens& each : tokens_) result_.tokens += each.ids.size();
    // Texts of one length class go together.
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(tokens_[a].ids.size(), a) < std::pair(tokens_[b].ids.size(), b);
    });
  }

  // Joins the queue with as many texts as may be there. Throws Problem for a full queue.
  void submit_more() {
    std::vector<BatchItem> items;
    {
      const std::lock_guard lock(mutex_);
      if (has_ended_ || waiting_ > kPart / 2) return;
      while (waiting_ < kPart && next_ < order_.size()) {
        items.push_back(item_of(order_[next_++]));
        ++waiting_;
      }
    }
    if (!items.empty()) request_.model->submit(std::move(items));
  }

 private:
  BatchItem item_of(std::size_t index) {
    BatchItem item;
    item.input = std::move(tokens_[index]);
    request_.model->describe(item, *request_.loaded);
    item.client = client_;
    item.cancel = cancel_;
    item.done = [self = shared_from_this(), index](BatchOutcome outcome) { self->finished(index, std::move(outcome)); };
    return item;
  }

  void finished(std::size_t index, BatchOutcome outcome) {
    bool is_last = false;
    {
      const std::lock_guard lock(mutex_);
      --waiting_;
      ++finished_;
      if (has_ended_) return;
      if (outcome.error)
        result_.error = outcome.error;
      else
        result_.vectors[index] = outcome.outputs.at("embedding");
      is_last = outcome.error || finished_ == order_.size();
      has_ended_ = is_last;
    }
    if (is_last) return done_(std::move(result_));
    try {
      submit_more();
    } catch (const std::exception&) {
      {
        const std::lock_guard lock(mutex_);
        if (std::exchange(has_ended_, true)) return;
        result_.error = std::current_exception();
      }
      done_(std::move(result_));
    }
  }

  const EmbeddingRequest request_;
  std::vector<Tokens> tokens_;
  const std::string client_;
  const std::stop_token cancel_;
  const MemoryGate::Share memory_;
  const std::function<void(Embedded)> done_;
  std::mutex mutex_;
  std::vector<std::size_t> order_;
  std::size_t next_ = 0, waiting_ = 0, finished_ = 0;
  bool has_ended_ = false;
  Embedded result_;
};

std::shared_ptr<ServedModel> only_encoder(Services& services) {
  std::vector<std::shared_ptr<ServedModel>> found;
  std::string names;
  for (const std::shared_ptr<ServedModel>& model : services.models.all()) {
    if (!model->source().tokenizer || model->is_generator() || !model->is_servable()) continue;
    if (!found.empty() && found.back()->name() == model->name()) found.pop_back();  // the newest version
    found.push_back(model);
    if (names.size() < 300) names += (names.empty() ? "" : ", ") + model->name();
  }
  if (found.size() == 1) return found.front();
  throw Error(ErrorCode::invalid_argument, found.empty() ? "no model with a tokenizer is served" : "'model' is required",
              found.empty() ? "start the server with --models DIR, with a folder that has model.onnx and tokenizer.json"
                            : "models for texts: " + names);
}

}  // namespace

EmbeddingRequest begin_embedding(Services& services, const Call& call, const std::string& name) {
  EmbeddingRequest request;
  request.model = name.empty() ? only_encoder(services) : services.models.find(name);
  request.loaded = request.model->acquire(call.cancel);
  if (request.loaded->generator)
    throw Error(ErrorCode::invalid_argument, fmt::format("model {} generates text; it gives no vectors", request.model->name()),
                "POST /v1/chat/completions");
  if (!request.loaded->encoder)
    throw Error(ErrorCode::invalid_argument,
                request.loaded->encoder_problem.empty()
                    ? fmt::format("model {} has no tokenizer: it takes tensors, not texts", request.model->name())
                    : fmt::format("model {} does not take texts: {}", request.model->name(), request.loaded->encoder_problem),
                fmt::format("put a tokenizer.json beside the model, or POST /v2/models/{}/infer", request.model->name()));
  return request;
}

void embed(Services& services, const Call& call, EmbeddingRequest request, std::function<void(Embedded)> done) {
  const Encoder& encoder = *request.loaded->encoder;
  const auto most = static_cast<std::size_t>(encoder.options().max_tokens);
  std::vector<Tokens> tokens;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < request.texts.size(); ++i) {
    if (call.cancel.stop_requested()) throw Error(ErrorCode::cancelled, "the client has gone");
    const std::string& text = request.texts[i];
    Tokens each = encoder.tokenizer().encode(text);
    if (each.ids.size() > most && !request.truncates)
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("text {} has {} tokens; model {} takes at most {}", i, each.ids.size(), request.model->name(), most),
          "shorten or split it, or send \"truncate\": true");
    if (each.ids.size() > most) each = encoder.tokens(text);
    bytes += each.ids.size() * 2 * sizeof(std::int32_t) + sizeof(BatchItem) + sizeof(Tokens) + 4096;
    tokens.push_back(std::move(each));
  }
  if (tokens.empty()) return done({});
  MemoryGate::Share memory = services.memory_of(call).take(bytes);
  std::make_shared<EmbeddingTask>(call, std::move(request), std::move(tokens), std::move(memory), std::move(done))->submit_more();
}

}  // namespace tenon::server

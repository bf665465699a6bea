// Texts to vectors through the batches of a served model.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/http/message.h"
#include "server/models/served_model.h"

namespace tenon::server {

struct Services;

struct Embedded {
  std::vector<HostArray> vectors;  // f32 [width], in the order of the texts
  std::exception_ptr error;        // instead
  std::size_t tokens = 0;
};

struct EmbeddingRequest {
  std::shared_ptr<ServedModel> model;
  std::shared_ptr<const LoadedModel> loaded;  // with an encoder
  std::vector<std::string> texts;
  bool truncates = false;  // too long a text is cut instead of refused
};

inline constexpr std::size_t kMaxTexts = 2048;  // of one request

// The model of a request: |name|, or the only one with an encoder if it is "". Loads it. Throws not_found, and invalid_argument
// for a model without a tokenizer.
EmbeddingRequest begin_embedding(Services& services, const Call& call, const std::string& name);

// Calls |done| once, from any thread, when all vectors are there or one failed. Throws invalid_argument for a text of too many
// tokens, before anything runs. A long list joins the queue in parts, so it never fills it.
void embed(Services& services, const Call& call, EmbeddingRequest request, std::function<void(Embedded)> done);

}  // namespace tenon::server

#include "model/checkpoint/encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text/printable.h"
#include "model/checkpoint/encoder_families.h"
#include "tenon/error.h"

namespace tenon::checkpoint {
namespace {

struct Type {
  std::string_view name;
  WriteEncoder* write;
};
constexpr Type kTypes[] = {
    {"bert", write_bert},          {"roberta", write_bert},
    {"xlm-roberta", write_bert},   {"camembert", write_bert},
    {"electra", write_bert},       {"albert", write_bert},
    {"distilbert", write_bert},    {"mpnet", write_bert},
    {"deberta-v2", write_deberta}, {"modernbert", write_rotary},
    {"nomic_bert", write_rotary},  {"new", write_rotary},
    {"gte", write_rotary},         {"t5", write_t5},
};

}  // namespace

std::vector<std::byte> encoder_as_onnx(std::string_view config_json, const ArrayFile& weights) {
  const EncoderConfig config(config_json);
  const std::string name = config.text("model_type", "");
  const auto* const found = std::ranges::find(kTypes, name, &Type::name);
  if (found == std::end(kTypes)) {
    std::string known;
    for (const Type& each : kTypes) known += fmt::format("{}{}", known.empty() ? "" : ", ", each.name);
    throw Error(ErrorCode::unimplemented, fmt::format("checkpoints of type '{}' are not supported", printable(name)),
                fmt::format("supported are: {}; for others export the model as ONNX", known));
  }
  if (const std::string kind = config.text("position_embedding_type", "absolute"); kind != "absolute" && kind != "rope")
    throw Error(ErrorCode::unimplemented, fmt::format("positions of type '{}' are not supported", printable(kind)));
  return found->write(config, weights, name);
}

}  // namespace tenon::checkpoint

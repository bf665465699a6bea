// Small models for tests of serving, written field by field.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "model/onnx_writer.h"

namespace tenon::test_models {

using namespace onnx_writer;

inline constexpr int kFloat = 1, kInt64 = 7;

// A dim that is a text is any extent of that name.
struct Dim {
  Dim(int wanted) : extent(wanted) {}
  Dim(const char* wanted) : name(wanted) {}
  std::int64_t extent = -1;
  std::string name;
};
inline Message named_value(std::string_view name, int type, const std::vector<Dim>& dims) {
  Message shape;
  for (const Dim& dim : dims) shape.message(1, dim.extent < 0 ? Message().text(2, dim.name) : Message().integer(1, dim.extent));
  return Message().text(1, name).message(2, Message().message(1, Message().integer(1, type).message(2, shape)));
}

// y = x @ w for x [batch, 3] and a w of [3, 2], written as a sum: the bits of a product of matrices depend on the number of rows.
inline std::string linear_model(float scale = 1) {
  return model_of(graph_of({node("Unsqueeze", {"x", "last"}, {"x3"}), node("Mul", {"x3", "w"}, {"p"}),
                            node("ReduceSum", {"p", "middle"}, {"y"}, {attribute("keepdims", 0)})},
                           {named_value("x", kFloat, {"batch", 3})}, {named_value("y", kFloat, {"batch", 2})},
                           {tensor<float>("w", kFloat, {3, 2}, {scale, 2 * scale, 3 * scale, 4 * scale, 5 * scale, 6 * scale}),
                            tensor<std::int64_t>("last", kInt64, {1}, {2}), tensor<std::int64_t>("middle", kInt64, {1}, {1})}))
      .str();
}

// y = x - max(x): the maximum is taken over the whole batch, so a row's result depends on its neighbours.
inline std::string batch_dependent_model() {
  return model_of(graph_of({node("ReduceMax", {"x"}, {"m"}, {attribute("keepdims", 0)}), node("Sub", {"x", "m"}, {"y"})},
                           {named_value("x", kFloat, {"batch", 3})}, {named_value("y", kFloat, {"batch", 3})}))
      .str();
}

// A scalar input: there is no batch axis.
inline std::string scalar_model() {
  return model_of(graph_of({node("Mul", {"x", "s"}, {"y"})},
                           {named_value("x", kFloat, {"batch", 2}), named_value("s", kFloat, {})},
                           {named_value("y", kFloat, {"batch", 2})}))
      .str();
}

// Token states for ids [batch, length]: a table of 8 rows of 4, masked. The mask changes what padding contributes.
inline std::string encoder_model() {
  std::vector<float> table;
  for (int i = 0; i < 32; ++i) table.push_back(static_cast<float>((i * 7) % 11) - 5.0f);
  return model_of(graph_of({node("Gather", {"table", "input_ids"}, {"states"}),
                            node("Cast", {"attention_mask"}, {"m"}, {attribute("to", 1)}),
                            node("Unsqueeze", {"m", "axis"}, {"m3"}), node("Mul", {"states", "m3"}, {"last_hidden_state"})},
                           {named_value("input_ids", kInt64, {"batch", "length"}),
                            named_value("attention_mask", kInt64, {"batch", "length"})},
                           {named_value("last_hidden_state", kFloat, {"batch", "length", 4})},
                           {tensor<float>("table", kFloat, {8, 4}, table), tensor<std::int64_t>("axis", kInt64, {1}, {2})}))
      .str();
}

inline constexpr const char* kTokenizer =
    R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[{"id":0,"content":"[PAD]","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],)"
    R"("normalizer":null,"pre_tokenizer":{"type":"Whitespace"},"post_processor":null,"decoder":null,)"
    R"("model":{"type":"WordLevel","vocab":{"[PAD]":0,"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"[UNK]":7},"unk_token":"[UNK]"}})";

inline void write_file(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

}  // namespace tenon::test_models

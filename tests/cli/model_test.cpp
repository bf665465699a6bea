// tenon model: names of inputs as the model has them, made-up inputs, comparing.
#include <gtest/gtest.h>

#include <fstream>

#include "cli/cli_testing.h"
#include "cli/inputs/vector_file.h"
#include "model/onnx_writer.h"
#include "source_folder.h"
#include "tenon/array/io.h"

namespace tenon::cli::testing {
namespace {

using namespace onnx_writer;

constexpr int kFloat = 1;

// y = images:0 + images:0, of the shape [n, 2].
std::string doubling_model(const Folder& folder) {
  const std::string file = folder / "double.onnx";
  const Message model = model_of(graph_of({node("Add", {"images:0", "images:0"}, {"y=1"})}, {value("images:0", kFloat, {-1, 2})},
                                          {value("y=1", kFloat, {-1, 2})}));
  std::ofstream(file, std::ios::binary) << model.str();
  return file;
}

TEST(ModelCommand, InputsMayHaveAnyName) {
  const Folder folder;
  const std::string model = doubling_model(folder), out = folder / "y.npy";
  const Outcome outcome = tenon({"model", "run", model, "images:0=[[1, 2]]", "-o", out});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(load_npy(out).to_doubles(), (std::vector<double>{2, 4}));
  EXPECT_TRUE(contains(tenon({"model", "run", model, "images:1=[[1, 2]]"}).err, "is not an input"));
}

TEST(ModelCommand, ExtentsAreGivenByNameOrPlace) {
  const Folder folder;
  const std::string model = doubling_model(folder);
  for (const char* extent : {"n=3", "images:0[0]=3"})
    EXPECT_EQ(tenon({"model", "bench", model, "--extent", extent, "--seconds", "0.01"}).status, 0) << extent;
  const Outcome wrong = tenon({"model", "bench", model, "--extent", "batch=3"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_TRUE(contains(wrong.err, "its free extents are: n")) << wrong.err;
}

TEST(ModelCommand, ComparesWithRecordedValues) {
  const Folder folder;
  const std::string model = doubling_model(folder), file = folder / "case.safetensors";
  const auto record = [&](float value) {
    save_safetensors(file, {.arrays = {{"input.images:0", HostArray::from<float>({1, 2}, {1, 2})},
                                       {"output.y=1", HostArray::from<float>({1, 2}, {2, value})}}});
  };
  record(4);
  const Outcome same = tenon({"model", "compare", model, "--reference", file, "--json"});
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_EQ(same.json()["outputs"].at(0).at("agrees"), true);
  record(4.1f);
  const Outcome other = tenon({"model", "compare", model, "--reference", file});
  EXPECT_EQ(other.status, kExitMismatch);
  EXPECT_TRUE(contains(other.out, "too large")) << other.out;
  EXPECT_EQ(tenon({"model", "compare", model, "--reference", file, "--tolerance", "0.1"}).status, 0);
}

TEST(ModelCommand, ConvertsWeightsTo16Bits) {
  const Folder folder;
  const std::string file = folder / "linear.onnx", small = folder / "small.onnx", out = folder / "y.npy";
  std::vector<float> weights;
  for (int i = 0; i < 2048; ++i) weights.push_back(static_cast<float>(i % 7) - 3);
  const Message model =
      model_of(graph_of({node("MatMul", {"x", "w"}, {"y"})}, {value("x", kFloat, {-1, 32})}, {value("y", kFloat, {-1, 64})},
                        {onnx_writer::tensor<float>("w", kFloat, {32, 64}, weights)}));
  std::ofstream(file, std::ios::binary) << model.str();
  const Outcome converted = tenon({"model", "convert", file, small, "--dtype", "bfloat16"});
  ASSERT_EQ(converted.status, 0) << converted.err;
  EXPECT_LT(std::filesystem::file_size(small), 2048 * 2 + 512u);
  std::vector<double> results[2];
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(tenon({"model", "run", i == 0 ? file : small, "x=ones([3, 32])", "-o", out}).status, 0);
    results[i] = load_npy(out).to_doubles();
  }
  EXPECT_EQ(results[0], results[1]);  // small integers have no rounding
}

// An interrupted conversion must not cost the model, so the file is replaced as a whole: another name of the old one keeps its
// bytes.
TEST(ModelCommand, ConvertingAModelOverItselfReplacesTheFile) {
  const Folder folder;
  const std::string file = folder / "linear.onnx", other_name = folder / "linked.onnx";
  const Message model =
      model_of(graph_of({node("MatMul", {"x", "w"}, {"y"})}, {value("x", kFloat, {-1, 32})}, {value("y", kFloat, {-1, 64})},
                        {onnx_writer::tensor<float>("w", kFloat, {32, 64}, std::vector<float>(2048, 0.5f))}));
  const std::string bytes = model.str();
  std::ofstream(file, std::ios::binary) << bytes;
  std::filesystem::create_hard_link(file, other_name);
  const Outcome converted = tenon({"model", "convert", file, file, "--dtype", "bfloat16"});
  ASSERT_EQ(converted.status, 0) << converted.err;
  EXPECT_LT(std::filesystem::file_size(file), bytes.size() * 3 / 4);
  EXPECT_EQ(std::filesystem::file_size(other_name), bytes.size());
  EXPECT_EQ(tenon({"model", "run", file, "x=ones([1, 32])"}).status, 0);
}

TEST(EncodeCommand, TwoRunsDoNotWriteOneFile) {
  const Folder folder;
  const std::string model = (source_folder() / "tests/fixtures/models/words").string(), out = folder / "v.npy";
  const VectorFile other(out, "another run", 1);
  const Outcome outcome = tenon({"encode", "a b", "--model", model, "-o", out});
  EXPECT_EQ(outcome.status, 4) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "another process")) << outcome.err;
}

TEST(EncodeCommand, ContinuesWhereAnInterruptedRunEnded) {
  const Folder folder;
  const std::string model = (source_folder() / "tests/fixtures/models/words").string(), lines = folder / "lines.txt";
  {
    std::ofstream out(lines);
    for (int i = 0; i < 100; ++i) out << "a b c" << (i % 3 == 0 ? " a" : "") << (i % 7 == 0 ? " b b" : "") << '\n';
  }
  const std::string whole = folder / "whole.npy", cut = folder / "cut.npy";
  const auto encode = [&](const std::string& to) {
    return tenon({"encode", "--file", lines, "--model", model, "-o", to, "--batch", "2"});
  };
  ASSERT_EQ(encode(whole).status, 0) << encode(whole).err;
  EXPECT_FALSE(std::filesystem::exists(whole + ".part"));
  // As if a process had been killed while it wrote a row: the part ends within row 40.
  const auto width = load_npy(whole).shape()[1];
  const auto size = static_cast<std::uintmax_t>(128 + 40 * width * 4 + 5);
  std::filesystem::copy_file(whole, cut + ".part");
  std::filesystem::resize_file(cut + ".part", size);
  {
    // The origin that a killed run leaves behind: one that cannot finish, because its name is a folder, leaves it as well.
    const std::string blocked = folder / "blocked.npy";
    std::filesystem::create_directories(blocked + "/x");
    EXPECT_NE(encode(blocked).status, 0);
    std::filesystem::copy_file(blocked + ".part.from", cut + ".part.from");
  }
  const Outcome outcome = encode(cut);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "going on after 40 of 100 texts")) << outcome.err;
  const HostArray a = load_npy(whole), b = load_npy(cut);
  EXPECT_EQ(a.shape(), b.shape());
  EXPECT_TRUE(std::equal(a.data(), a.data() + a.bytes(), b.data()));
  // Other texts: the part is not used.
  std::filesystem::copy_file(whole, cut + ".part");
  std::ofstream(cut + ".part.from") << width << "\nanother origin\n";
  EXPECT_FALSE(contains(encode(cut).err, "going on"));
}

// The folder of a checkpoint has no model.onnx; its vectors depend on model.safetensors all the same.
TEST(EncodeCommand, AChangedCheckpointIsNotContinued) {
  const Folder folder;
  const std::string model = folder / "bert", lines = folder / "lines.txt", out = folder / "v.npy";
  std::filesystem::create_directories(model);
  for (const char* name : {"model.safetensors", "config.json"})
    std::filesystem::copy_file(source_folder() / "tests/model/bert" / name, std::filesystem::path(model) / name);
  std::filesystem::copy_file(source_folder() / "tests/fixtures/models/words/tokenizer.json", model + "/tokenizer.json");
  {
    std::ofstream text(lines);
    for (int i = 0; i < 40; ++i) text << "a b c\n";
  }
  const auto encode = [&](const std::string& to) { return tenon({"encode", "--file", lines, "--model", model, "-o", to}); };
  ASSERT_EQ(encode(out).status, 0) << encode(out).err;
  const std::string blocked = folder / "blocked.npy";
  std::filesystem::create_directories(blocked + "/x");
  EXPECT_NE(encode(blocked).status, 0);  // leaves its part behind
  const auto leave = [&] {
    std::filesystem::copy_file(out, out + ".part", std::filesystem::copy_options::overwrite_existing);
    std::filesystem::resize_file(out + ".part", 128 + 24 * 4 * 10);
    std::filesystem::copy_file(blocked + ".part.from", out + ".part.from", std::filesystem::copy_options::overwrite_existing);
  };
  leave();
  const Outcome same = encode(out);
  EXPECT_TRUE(contains(same.err, "going on after 10 of 40 texts")) << same.err;
  leave();
  std::filesystem::last_write_time(model + "/model.safetensors",
                                   std::filesystem::last_write_time(model + "/model.safetensors") + std::chrono::seconds(5));
  const Outcome changed = encode(out);
  EXPECT_FALSE(contains(changed.err, "going on")) << changed.err;
}

TEST(EncodeCommand, TellsProgramsTheRateAndTheTimeLeft) {
  const Folder folder;
  const std::string model = (source_folder() / "tests/fixtures/models/words").string(), lines = folder / "lines.txt";
  {
    std::ofstream text(lines);
    for (int i = 0; i < 40; ++i) text << "a b c\n";
  }
  const Outcome outcome =
      tenon({"--sim", "gpu,id=one,open=0,close=0", "--sim", "gpu,id=two,open=0,close=0", "encode", "--file", lines, "--model",
             model, "-o", folder / "v.npy", "--batch", "4", "--device", "one,two", "--progress=json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(load_npy(folder / "v.npy").shape()[0], 40);
  EXPECT_TRUE(contains(outcome.err, R"("stage":"counting","what":"texts","done":4,"total":40,"per_second":)")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, R"("done":40,"total":40)")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, R"("seconds_left":0)")) << outcome.err;
}

TEST(ModelCommand, SaysWhereItRunsAndWhy) {
  const Folder folder;
  const Outcome outcome = tenon({"model", "run", doubling_model(folder), "images:0=[[1, 2]]", "--device", "cpu", "--explain"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "cpu")) << outcome.out;
  const Outcome plain = tenon({"model", "run", doubling_model(folder), "images:0=[[1, 2]]", "--device", "cpu"});
  EXPECT_FALSE(contains(plain.out, "cpu")) << plain.out;
}

// Each run of the device takes 20 ms whatever its batch, so a larger batch is better.
TEST(ModelCommand, ASweepRecommendsABatch) {
  const Folder folder;
  const std::string file = folder / "linear.onnx";
  std::ofstream(file, std::ios::binary) << model_of(graph_of({node("MatMul", {"x", "w"}, {"y"})}, {value("x", kFloat, {-1, 2})},
                                                             {value("y", kFloat, {-1, 2})},
                                                             {onnx_writer::tensor<float>("w", kFloat, {2, 2}, {1, 2, 3, 4})}))
                                               .str();
  const Outcome outcome = tenon({"--sim", "gpu,id=one,open=0,close=0,compute=20ms", "model", "bench", file, "--sweep", "--device",
                                 "one", "--seconds", "5", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const boost::json::object found = outcome.json();
  const boost::json::array& points = found.at("points").as_array();
  ASSERT_GE(points.size(), 2u);
  EXPECT_EQ(points[1].at("batch").as_int64(), 2);
  EXPECT_GT(found.at("recommended_batch").as_int64(), 1);
  const std::string square = folder / "square.onnx";
  std::ofstream(square, std::ios::binary)
      << model_of(graph_of({node("Mul", {"x", "x"}, {"y"})}, {value("x", kFloat, {3})}, {value("y", kFloat, {3})})).str();
  const Outcome fixed = tenon({"model", "bench", square, "--sweep"});
  EXPECT_NE(fixed.status, 0);
  EXPECT_TRUE(contains(fixed.err, "fixed")) << fixed.err;
}

TEST(ModelCommand, ComputesProductsIn16Bits) {
  const Folder folder;
  const std::string file = folder / "linear.onnx", out = folder / "y.npy";
  std::ofstream(file, std::ios::binary) << model_of(graph_of({node("MatMul", {"x", "w"}, {"y"})}, {value("x", kFloat, {1, 2})},
                                                             {value("y", kFloat, {1, 1})},
                                                             {onnx_writer::tensor<float>("w", kFloat, {2, 1}, {1.0f, 0.001f})}))
                                               .str();
  for (const auto& [dtype, wanted] :
       {std::pair{"float32", 1.001f + 0.001f}, std::pair{"bfloat16", 1.0f + 0.00099945068359375f}}) {
    ASSERT_EQ(tenon({"model", "run", file, "x=[[1.001, 1]]", "--dtype", dtype, "-o", out}).status, 0);
    EXPECT_FLOAT_EQ(load_npy(out).view<float>()[0], wanted) << dtype;
  }
  EXPECT_EQ(tenon({"model", "run", file, "x=[[1, 1]]", "--dtype", "int8"}).status, 2);
}

TEST(ModelCommand, ComparesDevices) {
  const Folder folder;
  const std::string model = doubling_model(folder);
  const Outcome outcome = tenon({"--sim", "wormhole", "model", "compare", model, "--device", "cpu", "--device", "tenstorrent"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "tenstorrent  y=1: float32 [1, 2]: equal")) << outcome.out;
  EXPECT_TRUE(contains(tenon({"model", "compare", model}).err, "name two devices"));
}

}  // namespace
}  // namespace tenon::cli::testing

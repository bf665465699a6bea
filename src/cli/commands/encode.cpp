#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "base/siphash.h"
#include "base/text/units.h"
#include "cli/commands/commands.h"
#include "cli/inputs/vector_file.h"
#include "cli/json.h"
#include "cli/option_checks.h"
#include "cli/terminal/progress_talk.h"
#include "tenon/array/io.h"
#include "tenon/error.h"
#include "tenon/model.h"
#include "tenon/model/encoder.h"

namespace tenon::cli {
namespace {

struct EncodeArguments {
  std::vector<std::string> texts;
  std::string model, file, output, device = "auto", pooling, dtype = "float32", query, vectors, lines;
  std::int64_t batch = 0, max_tokens = 0, top = 10;
};

std::vector<std::string> lines_of(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw Error(ErrorCode::not_found, fmt::format("'{}' cannot be read", file));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

Encoder encoder_of(const EncodeArguments& arguments) {
  EncoderOptions options;
  if (!arguments.pooling.empty()) options.pooling = parse_pooling(arguments.pooling);
  options.batch = arguments.batch;
  options.max_tokens = arguments.max_tokens;
  options.model.products = parse_dtype(arguments.dtype);
  return Encoder::load(arguments.model, options);
}

RunOptions run_options(const EncodeArguments& arguments) {
  RunOptions options;
  options.device = arguments.device;
  return options;
}

// "cpu:0,cuda:0": a worker each.
std::vector<std::string> devices_of(const EncodeArguments& arguments) {
  std::vector<std::string> devices;
  std::istringstream list(arguments.device);
  for (std::string device; std::getline(list, device, ',');)
    if (!device.empty()) devices.push_back(device);
  if (devices.empty()) throw Error(ErrorCode::invalid_argument, "--device names no device");
  return devices;
}

// What vectors in a file depend on: the model's files, the settings, the texts.
std::string origin_of(const EncodeArguments& arguments, const std::vector<std::string>& texts) {
  const std::filesystem::path model = Model::file_in(arguments.model), folder = Encoder::folder(arguments.model);
  std::string all = fmt::format("{} {} {} {}", arguments.pooling, arguments.max_tokens, arguments.dtype, texts.size());
  for (const std::filesystem::path& file :
       {model, folder / "config.json", folder / "tokenizer.json", folder / "sentence_bert_config.json", folder / "modules.json",
        folder / "1_Pooling/config.json", folder / "2_Dense/model.safetensors"}) {
    std::error_code ignored;
    const auto size = std::filesystem::file_size(file, ignored);
    all += fmt::format(" {} {}", size, std::filesystem::last_write_time(file, ignored).time_since_epoch().count());
  }
  for (const std::string& text : texts) all += fmt::format("\n{} {}", text.size(), text);
  const SipHash::Digest digest = SipHash::of({}, all);
  return fmt::format("{:016x}{:016x}", digest.high, digest.low);
}

// Part by part, so that an interrupted run can be continued.
void encode_to_file(const EncodeArguments& arguments, const std::vector<std::string>& texts, const Encoder& encoder,
                    const Session& session) {
  const std::vector<std::string> devices = devices_of(arguments);
  const std::size_t part = static_cast<std::size_t>(arguments.batch > 0 ? arguments.batch : 32) * 8 * devices.size();
  VectorFile file(arguments.output, origin_of(arguments, texts), static_cast<std::int64_t>(texts.size()));
  const auto before = static_cast<std::size_t>(file.done());
  if (before > 0 && !session.quiet) session.console.err << fmt::format("going on after {} of {} texts\n", before, texts.size());
  ProgressTalk talk(session.console);
  const std::function<void(std::size_t)> progress = talk.counting("texts", before, texts.size());
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t begin = before; begin < texts.size(); begin += part) {
    const std::size_t count = std::min(part, texts.size() - begin);
    std::function<void(std::size_t)> here;
    if (progress) here = [&](std::size_t done) { progress(begin + done); };
    file.append(encoder.encode(std::span(texts).subspan(begin, count), devices, run_options(arguments), here));
  }
  file.finish();
  talk.clear();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!session.quiet)
    session.console.err << fmt::format("{} texts in {}, {}\n", texts.size() - before, format_seconds(seconds),
                                       format_rate(static_cast<double>(texts.size() - before) / seconds, "texts/s"));
}

int encode(const EncodeArguments& arguments, const Session& session) {
  std::vector<std::string> texts = arguments.texts;
  if (!arguments.file.empty())
    for (std::string& line : lines_of(arguments.file)) texts.push_back(std::move(line));
  if (texts.empty())
    throw Error(ErrorCode::invalid_argument, "there is nothing to encode", "give texts, or --file FILE with one text per line");
  const Encoder encoder = encoder_of(arguments);
  if (!arguments.output.empty()) {
    encode_to_file(arguments, texts, encoder, session);
    return 0;
  }
  const HostArray vectors = encoder.encode(texts, devices_of(arguments), run_options(arguments));
  print_document(session.console.out, 1, [&](JsonWriter& json) {
    json.key("vectors").begin_array();
    for (std::int64_t row = 0; row < vectors.shape()[0]; ++row) {
      json.begin_array();
      for (std::int64_t i = 0; i < vectors.shape()[1]; ++i)
        json.value(vectors.view<float>()[static_cast<std::size_t>(row * vectors.shape()[1] + i)]);
      json.end_array();
    }
    json.end_array();
  });
  return 0;
}

int similar(const EncodeArguments& arguments, const Session& session) {
  const HostArray vectors = load_npy(arguments.vectors);
  std::vector<std::string> lines;
  if (!arguments.lines.empty()) lines = lines_of(arguments.lines);
  const std::string query[] = {arguments.query};
  const HostArray one = encoder_of(arguments).encode(query, run_options(arguments));
  const std::vector<Match> matches = most_similar(vectors, one, arguments.top, run_options(arguments));
  const auto text_of = [&](std::int64_t row) {
    return static_cast<std::size_t>(row) < lines.size() ? lines[static_cast<std::size_t>(row)] : std::string();
  };
  if (session.json) {
    print_document(session.console.out, 1, [&](JsonWriter& json) {
      json.key("matches").begin_array();
      for (const Match& match : matches) {
        json.begin_object();
        json.member("row", match.row);
        json.member("score", match.score);
        if (!lines.empty()) json.member("text", text_of(match.row));
        json.end_object();
      }
      json.end_array();
    });
    return 0;
  }
  for (const Match& match : matches)
    session.console.out << fmt::format("{:.4f}  {:>6}  {}\n", match.score, match.row, text_of(match.row));
  return 0;
}

void add_model_options(Command& command, EncodeArguments& arguments) {
  command
      .add_option("--model", arguments.model,
                  "A folder with a model (model.onnx, model.safetensors or onnx/model.onnx) and tokenizer.json, or the model "
                  "file beside its tokenizer")
      ->required()
      ->type_name("PATH");
  command
      .add_option("--pooling", arguments.pooling,
                  "How token vectors become one: mean, the first or last token's, max, mean_sqrt_len, weighted_mean; by default "
                  "what the model's files say, else mean")
      ->check(one_of({"mean", "first", "last", "max", "mean_sqrt_len", "weighted_mean"}))
      ->type_name("HOW");
  command.add_option("--max-tokens", arguments.max_tokens, "Cut longer texts; by default what the model's files say, else 512")
      ->check(in_range<std::int64_t>(1, 1 << 20))
      ->type_name("N");
  command.add_option("--dtype", arguments.dtype, "Type of what enters products; the rest is computed in float32")
      ->check(one_of({"float32", "bfloat16", "float16"}))
      ->type_name("TYPE");
}

}  // namespace

void add_encode_command(Command& app, Session& session) {
  auto arguments = std::make_shared<EncodeArguments>();
  Command* command = app.add_subcommand("encode", "Turn texts into vectors with a model");
  command->add_option("texts", arguments->texts, "Texts to encode")->type_name("TEXT");
  command->add_option("--file", arguments->file, "A file with one text per line")->type_name("FILE");
  command
      ->add_option(
          "-o,--output", arguments->output,
          "Write the vectors to a .npy file instead of printing them as JSON; the same command continues an interrupted one")
      ->type_name("FILE");
  command->add_option("--batch", arguments->batch, "Texts of one run; by default what measured times recommend")
      ->check(in_range<std::int64_t>(1, 65536))
      ->type_name("N");
  command
      ->add_option("--device", arguments->device,
                   "Device to use: auto, a kind (cpu) or an id (cpu:0); several with commas between, which then share the texts")
      ->type_name("DEVICE");
  add_model_options(*command, *arguments);
  command->footer(
      "Examples:\n  tenon encode 'a sentence' --model minilm\n  tenon encode --file lines.txt --model minilm -o vectors.npy "
      "--device cuda:0,cuda:1");
  command->callback([arguments, &session] { session.action = [arguments, &session] { return encode(*arguments, session); }; });
}

void add_similar_command(Command& app, Session& session) {
  auto arguments = std::make_shared<EncodeArguments>();
  Command* command = app.add_subcommand("similar", "Find the vectors nearest to a text");
  command->add_option("query", arguments->query, "The text to compare with")->required()->type_name("TEXT");
  command->add_option("--in", arguments->vectors, "Vectors that tenon encode wrote")->required()->type_name("FILE.npy");
  command->add_option("--texts", arguments->lines, "The texts of the vectors, one per line, to print")->type_name("FILE");
  command->add_option("--top", arguments->top, "How many to show")->check(in_range<std::int64_t>(1, 1 << 20))->type_name("N");
  command->add_option("--device", arguments->device, "Device to use: auto, a kind (cpu) or an id (cpu:0)")->type_name("DEVICE");
  add_model_options(*command, *arguments);
  add_output_options(*command, session);
  command->footer("Example:\n  tenon similar 'a question' --in vectors.npy --texts lines.txt --model minilm --top 5");
  command->callback([arguments, &session] { session.action = [arguments, &session] { return similar(*arguments, session); }; });
}

}  // namespace tenon::cli

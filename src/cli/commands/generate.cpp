#include <fmt/format.h>

#include <iostream>
#include <iterator>
#include <memory>

#include "base/text/units.h"
#include "cli/commands/commands.h"
#include "cli/json.h"
#include "cli/option_checks.h"
#include "cli/terminal/interrupt.h"
#include "tenon/error.h"
#include "tenon/model/generator.h"

namespace tenon::cli {
namespace {

struct GenerateArguments {
  std::string prompt, model, device = "auto", system, weights = "auto";
  bool is_chat = false;
  SamplingOptions sampling;
};

// "-" reads the prompt from standard input. The line end of its last line, which echo and editors add, is not part of it: after
// it a model would begin something new.
std::string prompt_of(const GenerateArguments& arguments) {
  if (arguments.prompt != "-") return arguments.prompt;
  std::string prompt{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  if (prompt.ends_with('\n')) prompt.pop_back();
  return prompt;
}

std::string_view name(Generation::Finish finish) {
  switch (finish) {
    case Generation::Finish::stop: return "stop";
    case Generation::Finish::length: return "length";
    case Generation::Finish::cancelled: return "cancelled";
  }
  return "";
}

double per_second(std::int64_t tokens, double seconds) { return seconds > 0 ? static_cast<double>(tokens) / seconds : 0; }

// Tokens after the first, which belongs to the prompt's time.
std::int64_t later_tokens(const Generation& result) { return std::max<std::int64_t>(std::ssize(result.ids) - 1, 0); }

void write_json(const Generation& result, const Generator& generator, const Session& session) {
  print_document(session.console.out, 1, [&](JsonWriter& json) {
    json.member("text", result.text);
    json.member("finish", name(result.finish));
    json.member("device", generator.device());
    json.member("prompt_tokens", result.prompt_tokens);
    json.member("tokens", std::ssize(result.ids));
    json.key("ids").begin_array();
    for (const std::int32_t id : result.ids) json.value(id);
    json.end_array();
    json.member("prompt_seconds", result.prompt_seconds);
    json.member("seconds", result.seconds);
    json.member("prompt_tokens_per_second", per_second(result.prompt_tokens, result.prompt_seconds));
    json.member("tokens_per_second", per_second(later_tokens(result), result.seconds));
  });
}

void write_rates(const Generation& result, const Session& session) {
  if (session.quiet) return;
  session.console.err << fmt::format("{} prompt tokens, {}; {} tokens, {}\n", result.prompt_tokens,
                                     format_rate(per_second(result.prompt_tokens, result.prompt_seconds), "tokens/s"),
                                     result.ids.size(),
                                     format_rate(per_second(later_tokens(result), result.seconds), "tokens/s"));
}

int generate(const GenerateArguments& arguments, const Session& session) {
  const Interrupt interrupt;
  const std::string prompt = prompt_of(arguments);
  using Weights = GeneratorOptions::Weights;
  const Weights weights = arguments.weights == "float32"   ? Weights::float32
                          : arguments.weights == "float16" ? Weights::float16
                                                           : Weights::automatic;
  const Generator generator = Generator::load(arguments.model, {arguments.device, weights});
  std::vector<std::int32_t> ids;
  if (arguments.is_chat || !arguments.system.empty()) {
    std::vector<ChatMessage> messages;
    if (!arguments.system.empty()) messages.push_back({"system", arguments.system});
    messages.push_back({"user", prompt});
    ids = generator.chat_tokens(messages);
  } else {
    ids = generator.tokens(prompt);
  }
  RunOptions options;
  options.program = "generate";
  options.cancel = interrupt.token();
  const Generation result = generator.generate(ids, arguments.sampling, options, [&](const GeneratedPiece& piece) {
    if (!session.json) session.console.out << piece.text << std::flush;
    return true;
  });
  if (session.json)
    write_json(result, generator, session);
  else
    session.console.out << '\n' << std::flush;
  write_rates(result, session);
  return interrupt.exit_status();
}

}  // namespace

void add_generate_command(Command& app, Session& session) {
  auto arguments = std::make_shared<GenerateArguments>();
  SamplingOptions& sampling = arguments->sampling;
  Command* command = app.add_subcommand("generate", "Continue a text with a language model");
  command->add_option("prompt", arguments->prompt, "The text to continue; - reads it from standard input")
      ->required()
      ->type_name("PROMPT");
  command->add_option("--model", arguments->model, "A GGUF file, or a folder with config.json, safetensors and tokenizer.json")
      ->required()
      ->type_name("MODEL");
  command->add_flag("--chat", arguments->is_chat, "Send the prompt as a message, in the model's chat format");
  command->add_option("--system", arguments->system, "What the system says first; implies --chat")->type_name("TEXT");
  command->add_option("--max-tokens", sampling.max_tokens, "Tokens to generate at most")
      ->check(in_range<std::int64_t>(1, 1 << 20))
      ->type_name("N");
  command->add_option("--temperature", sampling.temperature, "0 takes the likeliest token each time; higher is more varied")
      ->check(in_range(0.0, 100.0))
      ->type_name("T");
  command->add_option("--top-k", sampling.top_k, "Choose among the K likeliest tokens; 0: among all")
      ->check(in_range<std::int64_t>(0, 1 << 20))
      ->type_name("K");
  command->add_option("--top-p", sampling.top_p, "Choose among the likeliest tokens that together have probability P")
      ->check(in_range(0.000001, 1.0))
      ->type_name("P");
  command->add_option("--repeat-penalty", sampling.repeat_penalty, "Above 1: make tokens of the last 64 less likely")
      ->check(in_range(0.01, 100.0))
      ->type_name("R");
  command->add_option("--seed", sampling.seed, "Equal seeds give equal texts")->type_name("N");
  command->add_option("--stop", sampling.stop, "End before this text; may be repeated")->may_repeat()->type_name("TEXT");
  command->add_option("--device", arguments->device, "Device to use: auto, a kind (cpu) or an id (cpu:0)")->type_name("DEVICE");
  command
      ->add_option("--weights", arguments->weights,
                   "How to keep matrices: auto (as in the file on CPUs and GPUs), float16 or float32")
      ->check(one_of({"auto", "float16", "float32"}))
      ->type_name("TYPE");
  add_output_options(*command, session);
  command->footer(
      "Examples:\n  tenon generate 'Once upon a time' --model smollm2.gguf --max-tokens 50\n  tenon generate 'What is a lease?' "
      "--chat --temperature 0.7 --seed 1 --model smollm2.gguf");
  command->callback([arguments, &session] { session.action = [arguments, &session] { return generate(*arguments, session); }; });
}

}  // namespace tenon::cli

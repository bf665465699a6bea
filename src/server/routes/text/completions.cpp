// /v1/completions and /v1/chat/completions as OpenAI's clients use them, answered at once or as events.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>

#include "base/text/json_writer.h"
#include "server/http/body/event_stream.h"
#include "server/http/body/json_reader.h"
#include "server/http/problem.h"
#include "server/routes/inference/inference.h"
#include "server/services.h"
#include "tenon/error.h"

namespace tenon::server {
namespace {

namespace json = boost::json;

constexpr std::int64_t kDefaultTokens = 1024;
constexpr std::size_t kMaxPrompts = 64;
constexpr std::size_t kMaxMessages = 1024;
constexpr std::size_t kMaxStops = 16;
// Beyond this many waiting events, texts are joined instead of adding more.
constexpr std::size_t kMaxWaitingEvents = 128;

// --- Reading ---

struct CompletionRequest {
  bool is_chat = false;
  std::shared_ptr<ServedModel> model;
  std::shared_ptr<const LoadedModel> loaded;
  std::vector<GenerationRequest> prompts;
  std::vector<MemoryGate::Share> memory;  // of each
  bool streams = false, includes_usage = false;
  int priority = 0;
  GenerationTask::Clock::time_point deadline = GenerationTask::Clock::time_point::max();
};

std::vector<std::string> strings_of(const json::value* value, std::string_view name, std::size_t most) {
  const auto fail = [&] {
    throw Error(ErrorCode::invalid_argument, fmt::format("'{}' must be a text or a list of at most {} texts", name, most));
  };
  if (value->is_string()) return {std::string(value->get_string())};
  if (!value->is_array() || value->get_array().size() > most) fail();
  std::vector<std::string> out;
  for (const json::value& each : value->get_array()) {
    if (each.is_number() || each.is_array())
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("'{}' has token ids, which belong to the client's tokenizer and not to this model's", name),
                  "send texts");
    if (!each.is_string()) fail();
    out.emplace_back(each.get_string());
  }
  return out;
}

// A text, or parts of which each is a text.
std::string content_of(const json::value* value, std::size_t message) {
  if (value == nullptr) return {};
  if (value->is_string()) return std::string(value->get_string());
  if (!value->is_array()) throw Error(ErrorCode::invalid_argument, fmt::format("'content' of message {} is not a text", message));
  std::string out;
  for (const json::value& each : value->get_array()) {
    const json::object* part = each.if_object();
    const json::value* text = part != nullptr ? part->if_contains("text") : nullptr;
    if (text == nullptr || !text->is_string())
      throw Error(ErrorCode::invalid_argument, fmt::format("message {} has a part that is not text", message),
                  "the model takes text only");
    out += std::string_view(text->get_string());
  }
  return out;
}

std::vector<ChatMessage> messages_of(Members& request) {
  const json::value* value = request.find("messages");
  if (value == nullptr || !value->is_array() || value->get_array().empty())
    request.fail("'messages' must be a list of messages", R"(send "messages": [{"role": "user", "content": "..."}])");
  if (value->get_array().size() > kMaxMessages) request.fail(fmt::format("'messages' has more than {} messages", kMaxMessages));
  std::vector<ChatMessage> out;
  for (const json::value& each : value->get_array()) {
    if (!each.is_object()) request.fail("a message is not an object");
    Members message(each.get_object(), fmt::format("message {}", out.size()));
    std::string role = message.text("role").value_or("");
    if (role == "developer") role = "system";  // its name in newer clients
    out.push_back({std::move(role), content_of(message.find("content"), out.size())});
  }
  return out;
}

// What would change the answer in a way that is not supported.
void refuse_unsupported(Members& request) {
  if (request.integer("n", 1, 128).value_or(1) != 1) request.fail("'n' must be 1", "send several requests; they run together");
  for (const char* name : {"tools", "functions", "logit_bias"})
    if (const json::value* value = request.find(name); value != nullptr && !(value->is_array() && value->get_array().empty()) &&
                                                       !(value->is_object() && value->get_object().empty()))
      request.fail(fmt::format("'{}' is not supported", name));
  for (const char* name : {"frequency_penalty", "presence_penalty"})
    if (request.number(name).value_or(0) != 0) request.fail(fmt::format("'{}' is not supported", name), "use 'repeat_penalty'");
  for (const char* name : {"logprobs", "echo"})
    if (const json::value* value = request.find(name); value != nullptr && !(value->is_bool() && !value->get_bool()))
      request.fail(fmt::format("'{}' is not supported", name));
  if (const json::value* value = request.find("response_format"); value != nullptr && value->is_object()) {
    Members format(value->get_object(), "response_format");
    if (format.text("type").value_or("text") != "text") request.fail("'response_format' must be of type text");
  }
}

SamplingOptions sampling_of(Members& request) {
  SamplingOptions sampling;
  constexpr std::int64_t kMost = 1 << 20;
  sampling.max_tokens = kDefaultTokens;
  if (const auto most = request.integer("max_tokens", 1, kMost)) sampling.max_tokens = *most;
  if (const auto most = request.integer("max_completion_tokens", 1, kMost)) sampling.max_tokens = *most;
  sampling.temperature = request.number("temperature").value_or(1);
  sampling.top_p = request.number("top_p").value_or(1);
  sampling.top_k = request.integer("top_k", 0, kMost).value_or(0);
  sampling.repeat_penalty = request.number("repeat_penalty").value_or(1);
  // Without a seed, texts differ.
  static std::atomic<std::uint64_t> counter{
      static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count())};
  const auto seed = request.integer("seed", std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max());
  sampling.seed = seed ? static_cast<std::uint64_t>(*seed) : counter++;
  if (const json::value* stop = request.find("stop")) sampling.stop = strings_of(stop, "stop", kMaxStops);
  return sampling;
}

std::shared_ptr<ServedModel> only_generator(Services& services) {
  std::shared_ptr<ServedModel> found;
  std::string names;
  int count = 0;
  for (const std::shared_ptr<ServedModel>& model : services.models.all()) {
    if (!model->is_generator() || !model->is_servable()) continue;
    if (!found || found->name() != model->name()) {
      ++count;
      if (names.size() < 300) names += (names.empty() ? "" : ", ") + model->name();
    }
    found = model;  // the newest version
  }
  if (count == 1) return found;
  throw Error(
      ErrorCode::invalid_argument, count == 0 ? "no language model is served" : "'model' is required",
      count == 0 ? "start the server with --models DIR, with a folder that has a language model" : "language models: " + names);
}

CompletionRequest read_request(Services& services, const Call& call, bool is_chat) {
  const MemoryGate::Share parsing = services.reader(call).parsing(call.request.text().size());
  const json::object object = parse_object(call.request.text());
  Members request(object, "");
  CompletionRequest out;
  out.is_chat = is_chat;
  refuse_unsupported(request);
  out.streams = request.boolean("stream").value_or(false);
  if (const json::value* options = request.find("stream_options"); options != nullptr && options->is_object()) {
    Members stream(options->get_object(), "stream_options");
    out.includes_usage = stream.boolean("include_usage").value_or(false);
  }
  const SamplingOptions sampling = sampling_of(request);
  out.priority = static_cast<int>(request.integer("priority", -10, 10).value_or(0));
  if (const std::optional<double> seconds = request.number("timeout_seconds")) {
    if (!(*seconds >= 0 && *seconds <= 86400)) request.fail("'timeout_seconds' must be a number from 0 to 86400");
    out.deadline = GenerationTask::Clock::now() + std::chrono::microseconds(static_cast<std::int64_t>(*seconds * 1e6));
  }
  std::vector<std::string> prompts;
  std::vector<ChatMessage> messages;
  if (is_chat) {
    messages = messages_of(request);
  } else {
    const json::value* value = request.find("prompt");
    if (value == nullptr) request.fail("'prompt' is required");
    prompts = strings_of(value, "prompt", kMaxPrompts);
    if (prompts.empty()) request.fail("'prompt' is empty");
  }
  const std::string name = request.text("model").value_or("");
  out.model = name.empty() ? only_generator(services) : services.models.find(name);
  out.loaded = out.model->acquire(call.cancel);
  if (!out.loaded->generator)
    throw Error(ErrorCode::invalid_argument, fmt::format("model {} does not generate text", out.model->name()),
                "use a language model, or POST /v1/embeddings");
  const Generator& generator = *out.loaded->generator;
  if (is_chat) out.prompts.push_back({generator.chat_tokens(messages), sampling});
  for (const std::string& prompt : prompts) out.prompts.push_back({generator.tokens(prompt), sampling});
  const GenerationBatch checker(generator, services.manager);
  for (GenerationRequest& each : out.prompts) {
    checker.check(each);
    const std::int64_t most = static_cast<std::int64_t>(each.prompt.size()) + each.sampling.max_tokens;
    out.memory.push_back(services.memory_of(call).take(generator.sequence_bytes(most)));
  }
  return out;
}

// --- Writing ---

// What all parts of an answer have in common.
struct Header {
  std::string id, model;
  std::int64_t created = 0;
  bool is_chat = false;

  void write(JsonWriter& out, bool is_chunk) const {
    out.member("id", id);
    out.member("object", !is_chat ? "text_completion" : is_chunk ? "chat.completion.chunk" : "chat.completion");
    out.member("created", created);
    out.member("model", model);
  }
};

Header header_of(const CompletionRequest& request, const std::string& id) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {(request.is_chat ? "chatcmpl-" : "cmpl-") + id, request.model->name(),
          std::chrono::duration_cast<std::chrono::seconds>(now).count(), request.is_chat};
}

std::string_view finish_name(Generation::Finish finish) { return finish == Generation::Finish::length ? "length" : "stop"; }

struct Usage {
  std::int64_t prompt = 0, completion = 0;
  void add(const Generation& result) {
    prompt += result.prompt_tokens;
    completion += std::ssize(result.ids);
  }
  void write(JsonWriter& out) const {
    out.key("usage").begin_object();
    out.member("prompt_tokens", prompt);
    out.member("completion_tokens", completion);
    out.member("total_tokens", prompt + completion);
    out.end_object();
  }
};

Response whole_answer(const Header& header, const std::vector<Generation>& results) {
  Response response;
  JsonWriter out(response.body);
  Usage usage;
  out.begin_object();
  header.write(out, false);
  out.key("choices").begin_array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    usage.add(results[i]);
    out.begin_object();
    out.member("index", i);
    if (header.is_chat) {
      out.key("message").begin_object();
      out.member("role", "assistant");
      out.member("content", results[i].text);
      out.end_object();
    } else {
      out.member("text", results[i].text);
    }
    out.key("logprobs").null();
    out.member("finish_reason", finish_name(results[i].finish));
    out.end_object();
  }
  out.end_array();
  usage.write(out);
  out.end_object();
  return response;
}

// |text| none: the end of a choice.
std::string chunk(const Header& header, std::size_t index, const std::optional<std::string>& text, std::string_view finish,
                  bool is_first) {
  std::string line;
  JsonWriter out(line);
  out.begin_object();
  header.write(out, true);
  out.key("choices").begin_array();
  out.begin_object();
  out.member("index", index);
  if (header.is_chat) {
    out.key("delta").begin_object();
    if (is_first) out.member("role", "assistant");
    if (text) out.member("content", *text);
    out.end_object();
  } else {
    out.member("text", text.value_or(""));
  }
  out.key("logprobs").null();
  if (finish.empty())
    out.key("finish_reason").null();
  else
    out.member("finish_reason", finish);
  out.end_object();
  out.end_array();
  out.end_object();
  return line;
}

// --- Running ---

// One task for each prompt, which is moved.
std::vector<GenerationTask> tasks_of(CompletionRequest& request, const std::string& client, const std::stop_token& cancel) {
  std::vector<GenerationTask> tasks;
  for (std::size_t i = 0; i < request.prompts.size(); ++i) {
    GenerationTask task{std::move(request.prompts[i]), client, cancel, std::move(request.memory[i])};
    task.priority = request.priority;
    task.deadline = request.deadline;
    tasks.push_back(std::move(task));
  }
  return tasks;
}

// An answer in one piece.
class Collector : public std::enable_shared_from_this<Collector> {
 public:
  Collector(Header header, std::size_t count, Finish finish)
      : header_(std::move(header)),
        finish_(std::move(finish)),
        results_(count),
        left_(count) {}

  void submit(CompletionRequest request, const Call& call) {
    std::vector<GenerationTask> tasks = tasks_of(request, call.client.quota, call.cancel);
    for (std::size_t i = 0; i < tasks.size(); ++i)
      tasks[i].done = [self = shared_from_this(), i](const Generation& result, const std::exception_ptr& error) {
        self->finished(i, result, error);
      };
    request.model->generate(std::move(tasks));
  }

 private:
  void finished(std::size_t index, const Generation& result, const std::exception_ptr& error) {
    {
      const std::lock_guard lock(mutex_);
      results_[index] = result;
      if (error && !error_) error_ = error;
      if (--left_ > 0) return;
    }
    finish_([this] {
      if (error_) rethrow_from_run(error_);
      return whole_answer(header_, results_);
    });
  }

  const Header header_;
  const Finish finish_;
  std::mutex mutex_;
  std::vector<Generation> results_;
  std::size_t left_;
  std::exception_ptr error_;
};

// An answer as events. Everything that touches the stream runs in the I/O thread.
class Streamer : public std::enable_shared_from_this<Streamer> {
 public:
  Streamer(Services& services, Header header, std::size_t count, bool includes_usage)
      : services_(services),
        header_(std::move(header)),
        includes_usage_(includes_usage),
        choices_(count),
        left_(count) {
    stream_->invites_again = false;
    stream_->on_gone = [gone = gone_]() mutable { gone.request_stop(); };
  }

  const std::shared_ptr<EventStream>& stream() const { return stream_; }

  void submit(CompletionRequest request, const std::string& client) {
    std::vector<GenerationTask> tasks = tasks_of(request, client, gone_.get_token());
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      tasks[i].piece = [self = shared_from_this(), i](const std::string& text) {
        self->services_.post([self, i, text] { self->send(i, text); });
      };
      tasks[i].done = [self = shared_from_this(), i](const Generation& result, const std::exception_ptr& error) {
        self->services_.post([self, i, result, error] { self->finished(i, result, error); });
      };
    }
    request.model->generate(std::move(tasks));
  }

 private:
  struct Choice {
    std::string held;  // text that waits until the client has read more
    bool has_begun = false;
  };

  void flush(std::size_t index) {
    Choice& choice = choices_[index];
    if (choice.held.empty() && choice.has_begun) return;
    stream_->send("", chunk(header_, index, choice.held, "", !choice.has_begun));
    choice.held.clear();
    choice.has_begun = true;
  }
  void send(std::size_t index, const std::string& text) {
    if (stream_->is_ended()) return;
    choices_[index].held += text;
    if (stream_->waiting() < kMaxWaitingEvents) flush(index);
  }
  void finished(std::size_t index, const Generation& result, const std::exception_ptr& error) {
    if (stream_->is_ended()) return;
    if (error) {
      try {
        rethrow_from_run(error);
      } catch (const std::exception& failure) {
        stream_->send("", Problem::of(failure, Stage::running).document(path_, ""));
      }
      return stream_->end();
    }
    usage_.add(result);
    flush(index);
    stream_->send("", chunk(header_, index, std::nullopt, finish_name(result.finish), false));
    if (--left_ > 0) return;
    if (includes_usage_) send_usage();
    stream_->send("", "[DONE]");
    stream_->end();
  }
  void send_usage() {
    std::string line;
    JsonWriter out(line);
    out.begin_object();
    header_.write(out, true);
    out.key("choices").begin_array();
    out.end_array();
    usage_.write(out);
    out.end_object();
    stream_->send("", line);
  }

  Services& services_;
  const Header header_;
  const std::string path_ = header_.is_chat ? "/v1/chat/completions" : "/v1/completions";
  const bool includes_usage_;
  const std::shared_ptr<EventStream> stream_ = std::make_shared<EventStream>();
  std::stop_source gone_;
  std::vector<Choice> choices_;
  std::size_t left_;
  Usage usage_;
};

void begin_completion(Services& services, const Call& call, const Finish& finish, bool is_chat) {
  CompletionRequest request = read_request(services, call, is_chat);
  Header header = header_of(request, call.id);
  const std::size_t count = request.prompts.size();
  if (!request.streams) return std::make_shared<Collector>(std::move(header), count, finish)->submit(std::move(request), call);
  const auto streamer = std::make_shared<Streamer>(services, std::move(header), count, request.includes_usage);
  // What is refused is refused with a status; the events of what is not wait for the connection.
  streamer->submit(std::move(request), call.client.quota);
  finish([&streamer] {
    Response response;
    response.content_type = "text/event-stream";
    response.stream = streamer->stream();
    return response;
  });
}

}  // namespace

void add_completion_routes(RouteTable& routes, Services& services) {
  constexpr const char* kSampling =
      R"("model":{"type":"string"},"max_tokens":{"type":"integer","minimum":1,"maximum":1048576},"max_completion_tokens":{"type":"integer","minimum":1,"maximum":1048576},"temperature":{"type":"number","minimum":0,"maximum":100},"top_p":{"type":"number","exclusiveMinimum":0,"maximum":1},"top_k":{"type":"integer","minimum":0,"maximum":1048576},"repeat_penalty":{"type":"number","exclusiveMinimum":0,"maximum":100},"seed":{"type":"integer","format":"int64"},"stop":{"oneOf":[{"type":"string","minLength":1},{"type":"array","items":{"type":"string","minLength":1},"maxItems":16}]},"stream":{"type":"boolean"},"stream_options":{"type":"object"},"timeout_seconds":{"type":"number","minimum":0,"maximum":86400},"priority":{"type":"integer","minimum":-10,"maximum":10},"n":{"const":1},"user":{"type":"string"})";
  const auto add = [&](const char* path, const char* summary, const std::string& own, const char* required, bool is_chat) {
    routes.add({.method = Method::post,
                .path = path,
                .tag = "text",
                .summary = summary,
                .runs = Runs::computing,
                .body = BodyKind::json,
                .request_schema =
                    fmt::format(R"({{"type":"object","required":["{}"],"properties":{{{},{}}}}})", required, own, kSampling),
                .response_schema = R"({"type":"object","required":["object","choices"]})",
                .failures = {404, 409, 413, 501, 504},
                .begin = [&services, is_chat](const Call& call, const Finish& finish) {
                  begin_completion(services, call, finish, is_chat);
                }});
  };
  add("/v1/completions", "Continue a text with a language model (OpenAI)",
      R"("prompt":{"oneOf":[{"type":"string","minLength":1},{"type":"array","items":{"type":"string","minLength":1},"minItems":1,"maxItems":64}]})",
      "prompt", false);
  add("/v1/chat/completions", "Answer a conversation with a language model (OpenAI)",
      R"("messages":{"type":"array","minItems":1,"maxItems":1024,"items":{"type":"object","required":["role","content"],"properties":{"role":{"enum":["system","user","assistant"]},"content":{"type":"string"}}}})",
      "messages", true);
}

}  // namespace tenon::server

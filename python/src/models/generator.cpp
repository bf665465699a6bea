#include "tenon/model/generator.h"

#include <nanobind/stl/string.h>

#include <atomic>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "arrays/convert.h"
#include "model/generate/batch.h"
#include "models/generator.h"
#include "models/model.h"
#include "runs/evaluation.h"
#include "tenon/error.h"
#include "tensor/node.h"

namespace tenon::python {
namespace {

GeneratorOptions::Weights weights_named(const std::string& name) {
  if (name == "auto") return GeneratorOptions::Weights::automatic;
  if (name == "float16") return GeneratorOptions::Weights::float16;
  if (name == "float32") return GeneratorOptions::Weights::float32;
  throw Error(ErrorCode::invalid_argument, "weights must be 'auto', 'float16' or 'float32', not '" + name + "'");
}

Generator load_generator(const std::string& path, const std::string& device, const std::string& weights) {
  const GeneratorOptions options{.device = device, .weights = weights_named(weights)};
  WithoutGil free;
  return Generator::load(path, options);
}

std::vector<std::int32_t> ids_in(nb::sequence given) {
  std::vector<std::int32_t> ids;
  for (nb::handle id : given) ids.push_back(nb::cast<std::int32_t>(nb::int_(id)));
  return ids;
}

nb::list ids_out(const std::vector<std::int32_t>& ids) {
  nb::list list;
  for (const std::int32_t id : ids) list.append(id);
  return list;
}

std::vector<std::int32_t> chat_tokens(const Generator& generator, nb::sequence messages) {
  std::vector<ChatMessage> chat;
  for (nb::handle message : messages) {
    const nb::sequence parts = nb::cast<nb::sequence>(message);
    chat.push_back({nb::cast<std::string>(parts[0]), nb::cast<std::string>(parts[1])});
  }
  WithoutGil free;
  return generator.chat_tokens(chat);
}

// (max_tokens, temperature, top_k, top_p, repeat_penalty, seed, stop)
SamplingOptions sampling_in(nb::tuple given) {
  SamplingOptions options;
  options.max_tokens = nb::cast<std::int64_t>(given[0]);
  options.temperature = nb::cast<double>(given[1]);
  options.top_k = nb::cast<std::int64_t>(given[2]);
  options.top_p = nb::cast<double>(given[3]);
  options.repeat_penalty = nb::cast<double>(given[4]);
  options.seed = nb::cast<std::uint64_t>(given[5]);
  for (nb::handle text : nb::cast<nb::sequence>(given[6])) options.stop.push_back(nb::cast<std::string>(text));
  return options;
}

// (text, ids, finish, prompt_tokens, prompt_seconds, seconds)
nb::object generation_tuple(const Generation& one) {
  static constexpr const char* kFinish[] = {"stop", "length", "cancelled"};
  return nb::make_tuple(one.text, ids_out(one.ids), kFinish[static_cast<int>(one.finish)], one.prompt_tokens, one.prompt_seconds,
                        one.seconds);
}

RunOptions on_device(RunOptions options, const Generator& generator) {
  if (options.device == "auto") options.device = generator.device();
  return options;
}

// A text that is generated as it is asked for: next() computes tokens until there is a piece of text. Nothing is computed, and
// no device is held, between two calls.
class GenerationStream {
 public:
  GenerationStream(const Generator& generator, GenerationRequest request, CallOptions options)
      : generator_(generator),
        request_(std::move(request)),
        options_(std::move(options)),
        batch_(std::in_place, generator_, current_manager()) {
    batch_->check(request_);
  }

  // None at the end. An error ends the stream.
  nb::object next() {
    const Turn turn(is_busy_);
    while (pieces_.empty() && batch_) {
      try {
        wait([this](Waiting& waiting) { advance(waiting); });
      } catch (...) {
        end();
        throw;
      }
    }
    if (pieces_.empty()) return nb::none();
    const nb::str piece(pieces_.front().c_str(), pieces_.front().size());
    pieces_.pop_front();
    return piece;
  }

  // Ends it and frees its keys and values. The pieces that were not asked for are dropped.
  void close() {
    const Turn turn(is_busy_);
    pieces_.clear();
    end();
  }

  nb::object result() const { return result_ ? generation_tuple(*result_) : nb::none(); }

 private:
  // One thread at a time.
  class Turn {
   public:
    explicit Turn(std::atomic<bool>& is_busy) : is_busy_(is_busy) {
      if (is_busy_.exchange(true))
        throw Error(ErrorCode::failed_precondition, "another thread is waiting for the next piece of this text",
                    "a stream is read by one thread or task at a time");
    }
    ~Turn() { is_busy_ = false; }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    std::atomic<bool>& is_busy_;
  };

  // What there is so far becomes the result.
  void end() {
    if (!batch_) return;
    WithoutGil free;
    batch_->cancel();
    batch_.reset();
  }

  // The prompt, or one token more. What is cancelled leaves the sequence as it was, and can be repeated.
  void advance(Waiting& waiting) {
    const Forward forward(options_.cancel, waiting);
    const RunOptions run = on_device(options_.with(waiting), generator_);
    if (is_begun_) {
      batch_->step(run);
    } else {
      const auto keep = [this](const std::string& text) {
        pieces_.push_back(text);
        return true;
      };
      batch_->add(request_, keep, [this](Generation done) { result_ = std::move(done); }, run);
      is_begun_ = true;
    }
    if (batch_->size() == 0) batch_.reset();
  }

  const Generator generator_;
  const GenerationRequest request_;
  const CallOptions options_;
  std::optional<GenerationBatch> batch_;  // until the text has ended
  bool is_begun_ = false;
  std::deque<std::string> pieces_;
  std::optional<Generation> result_;
  std::atomic<bool> is_busy_ = false;
};

nb::object generate_all(const Generator& generator, nb::sequence prompts, nb::tuple sampling, nb::handle timeout, int priority,
                        nb::handle on_progress, nb::handle cancel) {
  std::vector<GenerationRequest> requests;
  const SamplingOptions same = sampling_in(sampling);
  for (nb::handle prompt : prompts) requests.push_back({ids_in(nb::cast<nb::sequence>(prompt)), same});
  const CallOptions options = CallOptions::from(nb::none(), timeout, priority, on_progress, cancel);
  std::vector<Generation> results;
  wait([&](Waiting& waiting) {
    const Forward forward(options.cancel, waiting);
    results = generator.generate_all(requests, on_device(options.with(waiting), generator));
    if (waiting.token().stop_requested()) throw Error(ErrorCode::cancelled, "the generation was cancelled");
  });
  nb::list list;
  for (const Generation& one : results) list.append(generation_tuple(one));
  return list;
}

}  // namespace

void bind_generator(nb::module_& module) {
  nb::class_<GenerationStream>(module, "_GenerationStream")
      .def("next", &GenerationStream::next)
      .def("close", &GenerationStream::close)
      .def_prop_ro("result", &GenerationStream::result);
  nb::class_<Generator>(module, "_Generator")
      .def_static("load", &load_generator)
      .def_prop_ro("info", [](const Generator& self) { return model_info_dict(self.info()); })
      .def_prop_ro("tokenizer", [](const Generator& self) { return self.tokenizer(); })
      .def_prop_ro("context", &Generator::context)
      .def_prop_ro("device", &Generator::device)
      .def_prop_ro("weight_bytes", &Generator::weight_bytes)
      .def_prop_ro("chat_format", &Generator::chat_format)
      .def("sequence_bytes", &Generator::sequence_bytes)
      .def("tokens", [](const Generator& self, const std::string& text) { return ids_out(self.tokens(text)); })
      .def("chat_tokens", [](const Generator& self, nb::sequence messages) { return ids_out(chat_tokens(self, messages)); })
      .def(
          "stream",
          [](const Generator& self, nb::sequence prompt, nb::tuple sampling, nb::handle timeout, int priority,
             nb::handle on_progress, nb::handle cancel) {
            return new GenerationStream(self, {ids_in(prompt), sampling_in(sampling)},
                                        CallOptions::from(nb::none(), timeout, priority, on_progress, cancel));
          },
          nb::arg("prompt"), nb::arg("sampling"), nb::arg("timeout").none(), nb::arg("priority"), nb::arg("on_progress").none(),
          nb::arg("cancel").none())
      .def("generate_all", &generate_all, nb::arg("prompts"), nb::arg("sampling"), nb::arg("timeout").none(), nb::arg("priority"),
           nb::arg("on_progress").none(), nb::arg("cancel").none());
}

}  // namespace tenon::python

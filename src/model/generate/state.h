// GeneratorState: what the copies of a Generator share.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "model/decoder/sequences.h"
#include "model/generate/chat_template.h"
#include "tenon/model/generator.h"

namespace tenon {

struct GeneratorState {
  gguf::GgufFile file;
  ModelInfo info;
  Tokenizer tokenizer;
  std::optional<ChatTemplate> chat;
  std::string chat_reason;                 // why there is none
  std::set<std::int32_t> ends;             // tokens that end a text
  std::vector<std::string> control_texts;  // of control tokens
  DeviceInfo device;
  std::shared_ptr<decoder::Decoder> decoder;

  // Without control tokens; made when a message first contains the text of one.
  const Tokenizer& plain() const {
    std::call_once(once_, [this] { plain_.emplace(make_plain()); });
    return *plain_;
  }

 private:
  Tokenizer make_plain() const;
  mutable std::once_flag once_;
  mutable std::optional<Tokenizer> plain_;

 public:
  GeneratorState(gguf::GgufFile opened, ModelInfo description, Tokenizer words, DeviceInfo where,
                 std::shared_ptr<decoder::Decoder> made)
      : file(std::move(opened)),
        info(std::move(description)),
        tokenizer(std::move(words)),
        device(std::move(where)),
        decoder(std::move(made)) {}
};

}  // namespace tenon

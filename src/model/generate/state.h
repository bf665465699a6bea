// GeneratorState: what the copies of a Generator share.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "model/decoder/sequences.h"
#include "model/generate/chat_template.h"
#include "model/generate/model_files.h"
#include "tenon/model/generator.h"

namespace tenon {

struct GeneratorState {
  const ModelFiles files;
  const Tokenizer tokenizer;
  std::optional<ChatTemplate> chat;
  std::string chat_reason;  // why there is none
  const DeviceInfo device;
  const std::shared_ptr<decoder::Decoder> decoder;

  GeneratorState(ModelFiles opened, Tokenizer words, DeviceInfo where, std::shared_ptr<decoder::Decoder> made)
      : files(std::move(opened)),
        tokenizer(std::move(words)),
        device(std::move(where)),
        decoder(std::move(made)) {}

  // Without control tokens; made when a message first contains the text of one.
  const Tokenizer& plain() const {
    std::call_once(once_, [this] { plain_.emplace(Tokenizer::parse(files.tokenizer_json(false))); });
    return *plain_;
  }

 private:
  mutable std::once_flag once_;
  mutable std::optional<Tokenizer> plain_;
};

}  // namespace tenon

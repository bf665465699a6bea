// TextStream: tokens that arrive one by one, as text in pieces of whole characters, up to a stop text.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tenon/model/tokenizer.h"

namespace tenon {

class TextStream {
 public:
  // |prompt|: the tokens before; whether the first piece begins with a space depends on them.
  TextStream(Tokenizer tokenizer, std::vector<std::string> stop, std::span<const std::int32_t> prompt);

  // The text that is certain now. Nothing more comes after a stop text.
  std::string add(std::int32_t id);
  // What is left at the end.
  std::string finish();
  bool is_stopped() const noexcept { return is_stopped_; }

 private:
  std::string release(bool all);

  const Tokenizer tokenizer_;
  const std::vector<std::string> stop_;
  std::vector<std::int32_t> ids_;  // a few before, then those whose text is not certain
  std::size_t known_ = 0;          // of ids_, whose text is out
  std::string held_;               // text that a stop text may begin with
  bool is_stopped_ = false;
};

}  // namespace tenon

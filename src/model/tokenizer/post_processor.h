// Post-processors: the tokens that a file puts around one text or two.
#pragma once

#include <functional>
#include <vector>

#include "model/tokenizer/fields.h"
#include "model/tokenizer/vocabulary/vocabulary.h"
#include "tenon/model/tokenizer.h"

namespace tenon::tokenizer {

struct Template {
  struct Part {
    int text = -1;  // 0 or 1: that text; -1: |ids|
    std::vector<Id> ids;
    std::int32_t type = 0;
  };
  std::vector<Part> single, pair;
};

// |value| may be null: texts stand alone.
Template make_template(const boost::json::value& value, const std::string& where);

using Decoder = std::function<void(std::vector<std::string>& tokens)>;
// Changes the tokens of a text so that, put together, they are the text.
Decoder make_decoder(const boost::json::value& value, const std::string& where);

}  // namespace tenon::tokenizer

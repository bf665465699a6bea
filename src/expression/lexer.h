// The tokens of an expression.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/expression.h"

namespace tenon::expression {

// Bytes [begin, end) of the source.
struct Extent {
  std::uint32_t begin = 0, end = 0;
};

// The line and column of |extent|.
ExpressionError::Place locate(std::string_view source, Extent extent);
[[noreturn]] void fail(std::string_view source, Extent extent, const std::string& message, const std::string& hint = {},
                       ErrorCode code = ErrorCode::invalid_argument);

enum class TokenKind : std::uint8_t { integer, number, name, text, symbol, separator, end };

struct Token {
  TokenKind kind = TokenKind::end;
  Extent extent;
  std::string_view text;  // of the source; the content without quotes for text
  std::int64_t integer = 0;
  double number = 0;
};

// The tokens are views of |source|, which must outlive them. The last token is `end`. Newlines within brackets are omitted.
std::vector<Token> tokenize(std::string_view source);

// The name of a token in messages: "'+'", "the number 2", "the end of the expression".
std::string describe(const Token& token);

}  // namespace tenon::expression

// Texts as code points, and what Unicode says about them.
#pragma once

#include <string>
#include <string_view>

namespace tenon::tokenizer {

// Bytes that are not UTF-8 become U+FFFD.
std::u32string decode_utf8(std::string_view text);
void append_utf8(std::string& out, char32_t c);
std::string encode_utf8(std::u32string_view text);

enum class Form { nfc, nfd, nfkc, nfkd };
std::u32string normalized(std::u32string_view text, Form form);
std::u32string lower_case(std::u32string_view text);  // letter by letter
// The end of the user-perceived character that begins at |begin|.
std::size_t grapheme_end(std::u32string_view text, std::size_t begin);

bool is_letter(char32_t c);
bool is_number(char32_t c);
bool is_mark(char32_t c);             // M*
bool is_nonspacing_mark(char32_t c);  // Mn
bool is_punctuation(char32_t c);      // P*
bool is_space(char32_t c);            // White_Space
bool is_control(char32_t c);          // Cc, Cf, Co

}  // namespace tenon::tokenizer

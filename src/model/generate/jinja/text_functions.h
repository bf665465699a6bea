// The filters and methods of texts in templates.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "model/generate/jinja/builtins.h"

namespace tenon::jinja {

// nullopt for a name that is not known.
std::optional<Value> text_filter(Work& work, const std::string& name, const Text& text, const Arguments& arguments);
std::optional<Value> text_method(Work& work, const Text& text, const std::string& name, const Arguments& arguments);

Text joined(Work& work, const List& list, const Text& between);
Text without_spaces(const Text& text);  // at its ends

// As std::string's, but charge for the bytes they compare: 'aaab' is compared with 'aaaaaa' at every place.
std::size_t find(Work& work, const std::string& text, const std::string& part, std::size_t begin = 0);
std::size_t find_last(Work& work, const std::string& text, const std::string& part, std::size_t last = std::string::npos);

// An argument. Throws invalid_argument if it has another type; |of| is who takes it.
Text needed_text(const Work& work, const Value& value, std::string_view of);
std::int64_t integer_or(const Work& work, const Value& value, std::int64_t otherwise);

}  // namespace tenon::jinja

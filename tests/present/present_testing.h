// What a description writes, as text to compare.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "base/text/json_writer.h"

namespace tenon::present::testing {

// The JSON of one value.
template <class Write>
std::string json_of(const Write& write) {
  std::string text;
  JsonWriter json(text);
  write(json);
  return text;
}

// The JSON of an object with the members that |write| writes.
template <class Write>
std::string object_of(const Write& write) {
  return json_of([&](JsonWriter& json) {
    json.begin_object();
    write(json);
    json.end_object();
  });
}

}  // namespace tenon::present::testing

// What a call throws, as one text: the sentence and the hint.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tenon/error.h"

namespace tenon::test {

template <class Work>
std::string refusal(Work&& work, ErrorCode code = ErrorCode::invalid_argument) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return std::string(error.what()) + " | " + error.hint();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace tenon::test

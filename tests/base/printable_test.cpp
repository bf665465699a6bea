#include "base/text/printable.h"

#include <gtest/gtest.h>

namespace tenon {
namespace {

TEST(Printable, LeavesTextInAnyScriptAlone) {
  for (const char* text : {"", "python train.py --lr 0.1", "Köln", "東京", "🙂", "a\u00a0b"}) EXPECT_EQ(printable(text), text);
}

TEST(Printable, ReplacesControlCharacters) {
  EXPECT_EQ(printable("a\x1b[2Jb\n"), "a?[2Jb?");
  EXPECT_EQ(printable("a\x7f"), "a?");
  EXPECT_EQ(printable("a\u009b2Jb"), "a?2Jb") << "the C1 form of ESC [";
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a?b");
}

TEST(Printable, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(printable("\xff\xfe"), "??");
  EXPECT_EQ(printable("a\xc3"), "a?") << "cut short";
  EXPECT_EQ(printable("\xc0\xaf"), "??") << "an overlong slash";
  EXPECT_EQ(printable("\xed\xa0\x80"), "???") << "a surrogate";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "????") << "beyond Unicode";
}

}  // namespace
}  // namespace tenon

// tenon encode is killed again and again, as the kernel kills a process without memory, and its output is complete all the same.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "e2e/program.h"
#include "source_folder.h"
#include "temporary_folder.h"

namespace tenon::testing {
namespace {

std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class EncodeProgram : public ::testing::Test {
 protected:
  static constexpr int kTexts = 3000;
  static constexpr std::uintmax_t kHeader = 128, kRow = 4 * sizeof(float);  // of the fixture's model

  EncodeProgram() {
    std::ofstream out(lines_);
    std::mt19937 random(1);
    for (int i = 0; i < kTexts; ++i) {
      for (unsigned word = 0; word <= random() % 9; ++word) out << "abc"[random() % 3] << ' ';
      out << '\n';
    }
  }

  // Few texts in a part, so that a run has many places at which it can be killed.
  std::unique_ptr<Program> encode(const std::filesystem::path& to) const {
    return std::make_unique<Program>(
        std::vector<std::string>{TENON_PROGRAM, "encode", "--file", lines_.string(), "--model",
                                 (source_folder() / "tests/fixtures/models/words").string(), "-o", to.string(), "--device", "cpu",
                                 "--batch", "1"},
        std::vector<std::pair<std::string, std::string>>{{"TENON_RUN_DIR", folder_.path().string()},
                                                         {"TENON_STATE_DIR", folder_.path().string()}});
  }

  // Kills the program once the part has |rows| rows; false if it was complete before.
  static bool kill_at(Program& program, const std::filesystem::path& to, std::uintmax_t rows) {
    std::error_code missing;
    while (!std::filesystem::exists(to)) {
      const std::uintmax_t size = std::filesystem::file_size(to.string() + ".part", missing);
      if (!missing && size >= kHeader + rows * kRow) {
        program.send(SIGKILL);
        return true;
      }
      std::this_thread::yield();
    }
    return false;
  }

  test::TemporaryFolder folder_;
  const std::filesystem::path lines_ = folder_.path() / "lines.txt";
};

TEST_F(EncodeProgram, KilledAtRandomAndContinuedWritesEveryVector) {
  const std::filesystem::path whole = folder_.path() / "whole.npy", killed = folder_.path() / "killed.npy";
  {
    const auto program = encode(whole);
    const std::string talk = program->all_err();
    ASSERT_EQ(program->exit_status(), 0) << talk;
  }
  std::mt19937 random(7);
  int kills = 0;
  for (std::uintmax_t rows = 0; rows < kTexts; rows += random() % 600) {
    const auto program = encode(killed);
    if (!kill_at(*program, killed, rows)) break;
    EXPECT_EQ(program->exit_status(), 128 + SIGKILL);
    ++kills;
  }
  EXPECT_GT(kills, 2);
  if (!std::filesystem::exists(killed)) {
    const auto program = encode(killed);
    const std::string talk = program->all_err();
    ASSERT_EQ(program->exit_status(), 0) << talk;
    EXPECT_NE(talk.find("going on after"), std::string::npos) << talk;
  }
  EXPECT_EQ(bytes_of(whole).size(), kHeader + kTexts * kRow);
  EXPECT_TRUE(bytes_of(whole) == bytes_of(killed));
}

}  // namespace
}  // namespace tenon::testing

// Ctrl-C ends tenon generate in good order: the text so far is complete, and its speed is reported.
#include <gtest/gtest.h>

#include "e2e/program.h"
#include "source_folder.h"
#include "temporary_folder.h"

namespace tenon::testing {
namespace {

TEST(GenerateProgram, EndsCleanlyOnCtrlC) {
  const test::TemporaryFolder folder;
  Program program({TENON_PROGRAM, "generate", "hello", "--model", (source_folder() / "tests/model/gguf/llama_q4_1.gguf").string(),
                   "--device", "cpu", "--max-tokens", "1000", "--temperature", "5", "--seed", "3"},
                  {{"TENON_RUN_DIR", folder.path().string()}, {"TENON_STATE_DIR", folder.path().string()}});
  program.out_line();  // it has begun
  program.send(SIGINT);
  const std::string talk = program.all_err();
  const int status = program.exit_status();
  // It may be over before the signal comes; then it has ended by itself.
  EXPECT_TRUE(status == 130 || status == 0) << talk;
  EXPECT_NE(talk.find("tokens/s"), std::string::npos) << talk;
}

}  // namespace
}  // namespace tenon::testing

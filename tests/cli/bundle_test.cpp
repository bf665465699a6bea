#include "cli/diagnose/bundle.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "cli/cli_testing.h"
#include "cli/diagnose/redact.h"
#include "tenon/error.h"

namespace tenon::cli {
namespace {

using testing::contains;
using testing::Folder;

TEST(SecretNames, AreToldByTheirWords) {
  for (const char* name : {"HF_TOKEN", "token", "DB_PASSWORD", "apiKey", "API_KEY", "aws_secret_access_key", "--auth-token",
                           "GITHUB_PAT_TOKEN", "my.secret", "Authorization", "SSH_PRIVATE_KEY", "db_passwd", "SENTRY_DSN"})
    EXPECT_TRUE(is_secret_name(name)) << name;
  for (const char* name : {"key", "keep_open", "monkey", "PATH", "TENON_RUN_DIR", "author", "tokenizer", "compass", "passes",
                           "CUDA_VISIBLE_DEVICES"})
    EXPECT_FALSE(is_secret_name(name)) << name;
}

TEST(Redactor, TakesValuesOfSecretVariablesOutOfEveryText) {
  Redactor redactor;
  redactor.add_variable("HF_TOKEN", "planted-secret-1");
  redactor.add_variable("QUOTED_PASSWORD", "with \"quotes\" in it");
  redactor.add_variable("EDITOR", "vim-and-more");
  EXPECT_EQ(redactor.redact("train.py planted-secret-1 x"), "train.py [redacted] x");
  EXPECT_EQ(redactor.redact(R"({"command": "with \"quotes\" in it"})"), R"({"command": "[redacted]"})");
  EXPECT_EQ(redactor.redact("vim-and-more"), "vim-and-more");
}

TEST(Redactor, TakesOutWhatFollowsASecretsName) {
  const Redactor redactor;
  const auto check = [&](const std::string& text, const std::string& expected) { EXPECT_EQ(redactor.redact(text), expected); };
  check("password=hunter2&x=1", "password=[redacted]&x=1");
  check("api_key = \"abc def\" # mine", "api_key = \"[redacted]\" # mine");
  check(R"({"client_secret": "abc", "id": "cpu:0"})", R"({"client_secret": "[redacted]", "id": "cpu:0"})");
  check("train.py --token abc123 --epochs 3", "train.py --token [redacted] --epochs 3");
  check("train.py --auth-token=abc123", "train.py --auth-token=[redacted]");
  check("Authorization: Bearer abc.def", "Authorization: Bearer [redacted]");
  check("the password is wrong", "the password is wrong");
  check("token=", "token=");
  check("DB_PW=hunter2", "DB_PW=[redacted]");
  check("train.py --key=abc123", "train.py --key=[redacted]");
  check("sent Bearer abc123.def to it", "sent Bearer [redacted] to it");
  check("the Bearer token is missing", "the Bearer token is missing");
  check("PWD=/home/ada", "PWD=/home/ada");
  check("\"key\": \"cuda:0\"", "\"key\": \"cuda:0\"");
}

TEST(Redactor, TakesOutPasswordsInAddressesAndWellKnownKeys) {
  const Redactor redactor;
  EXPECT_EQ(redactor.redact("https://ada:hunter2@example.org/x"), "https://[redacted]@example.org/x");
  EXPECT_EQ(redactor.redact("https://example.org/a@b"), "https://example.org/a@b");
  EXPECT_EQ(redactor.redact("https://example.org:80/a@b"), "https://example.org:80/a@b");
  EXPECT_EQ(redactor.redact("https://ada:hun/ter@2@example.org/x"), "https://[redacted]@example.org/x");
  EXPECT_EQ(redactor.redact("x ghp_0123456789abcdef0123456789 y"), "x [redacted] y");
  EXPECT_EQ(redactor.redact("AKIA0123456789ABCDEF"), "[redacted]");
  EXPECT_EQ(redactor.redact("hf_hub"), "hf_hub");
  EXPECT_EQ(redactor.redact("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----"),
            "[redacted]-----END RSA PRIVATE KEY-----");
}

TEST(Redactor, WritesTheUsersFolderAsATilde) {
  Redactor redactor;
  redactor.set_home("/home/ada");
  EXPECT_EQ(redactor.redact("/home/ada/x /home/adam/y \"/home/ada\""), "~/x /home/adam/y \"~\"");
}

TEST(Redactor, TakesTextThatEndsAnywhere) {
  Redactor redactor;
  redactor.add_variable("HF_TOKEN", "planted-secret-1");
  const std::string text = R"(a --token "x\" y", api_key: 'z', https://u:p@h, \"secret\": \"v\" -----BEGIN PRIVATE KEY----- q)";
  for (std::size_t i = 0; i <= text.size(); ++i) EXPECT_NO_THROW((void)redactor.redact(text.substr(0, i)));
}

TEST(Environment, OnlyWhatHasToDoWithDevicesIsListed) {
  const Redactor redactor;
  const std::string text = relevant_environment({{"TENON_LOG", "info"},
                                                 {"CUDA_VISIBLE_DEVICES", "0"},
                                                 {"TENON_API_TOKEN", "planted"},
                                                 {"PRIVATE_NOTES", "planted"},
                                                 {"XLA_FLAGS", "--password=planted"}},
                                                redactor);
  EXPECT_EQ(text, "CUDA_VISIBLE_DEVICES=0\nTENON_API_TOKEN=[redacted]\nTENON_LOG=info\nXLA_FLAGS=--password=[redacted]\n");
}

TEST(Archive, IsReadByTar) {
  const Folder folder;
  const std::string large(300'000, 'x');
  std::ofstream(folder / "a.tar.gz", std::ios::binary)
      << make_tar_gz("box", {{"one.txt", "1\n"}, {"large", large}, {"empty", ""}}, 1'793'534'400);
  ASSERT_EQ(std::system(("tar -xzf '" + (folder / "a.tar.gz") + "' -C '" + (folder / "") + "'").c_str()), 0);
  const auto content = [&](const char* name) {
    std::ifstream file(folder / name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_EQ(content("box/one.txt"), "1\n");
  EXPECT_EQ(content("box/large"), large);
  EXPECT_EQ(content("box/empty"), "");
  EXPECT_LT(std::filesystem::file_size(folder / "a.tar.gz"), 10'000U) << "it is compressed";
}

TEST(Bundle, IsForThisUserAloneAndReplacesAnOlderOne) {
  const Folder folder;
  const std::string path = folder / "b.tar.gz";
  std::ofstream(path) << "older";
  EXPECT_GT(write_bundle(path, {{"a", "b"}}, {}), 20U);
  struct stat status{};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
  EXPECT_THROW(write_bundle(folder / "no/such/folder.tar.gz", {{"a", "b"}}, {}), Error);
}

// In a folder that others may write to, somebody may guess the name it is written under first.
TEST(Bundle, IsNotWrittenThroughALinkThatWasPlanted) {
  const Folder folder;
  const std::string path = folder / "b.tar.gz", victim = folder / "victim";
  std::ofstream(victim) << "precious";
  std::filesystem::create_symlink(victim, path + "." + std::to_string(getpid()));
  EXPECT_GT(write_bundle(path, {{"a", "b"}}, {}), 20U);
  std::string text;
  std::ifstream(victim) >> text;
  EXPECT_EQ(text, "precious");
}

}  // namespace
}  // namespace tenon::cli

// tenon doctor --bundle of the real program, with secrets planted wherever they could come from.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "e2e/program.h"
#include "temporary_folder.h"

namespace tenon {
namespace {

using testing::Program;

constexpr const char* kSecret = "planted-4f1c9a";

class BundleTest : public ::testing::Test {
 protected:
  std::string content(const std::string& name) const {
    std::ifstream file(folder / ("tenon-bundle/" + name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
  test::TemporaryFolder folder;
};

TEST_F(BundleTest, HasWhatIsNeededAndNoSecrets) {
  const std::string secret = kSecret, home = folder / "home-of-ada";
  std::filesystem::create_directories(home + "/.config/tenon");
  std::ofstream(home + "/.config/tenon/config.toml") << "prefer = \"cpu\"\n[environment]\nHF_TOKEN = \"" << secret << "-file\"\n"
                                                     << "XLA_FLAGS = \"--api_key=" << secret << "-flag\"\n";
  // Somebody with a secret on the command line holds a device.
  const std::vector<std::pair<std::string, std::string>> variables = {
      {"HOME", home},
      {"XDG_CONFIG_HOME", home + "/.config"},
      {"TENON_RUN_DIR", folder / "run"},
      {"TENON_STATE_DIR", folder / "state"},
      {"MY_API_TOKEN", secret + "-variable"},
      {"TENON_SERVER_PASSWORD", secret + "-server"},
      {"CUDA_CACHE_PATH", "https://ada:" + secret + "-url@host/x"},
      {"LD_PRELOAD", ""},
      {"CI_JOB_NOTES", secret + "-irrelevant"}};
  Program holder({TENON_PROGRAM, "exec", "--device", "cpu:0", "--", "sh", "-c", "echo ready; cat", "sh", "--password",
                  secret + "-argument", secret + "-variable"},
                 variables);
  ASSERT_EQ(holder.out_line(), "ready");
  Program doctor({TENON_PROGRAM, "doctor", "--device", "cpu:0", "--json", "--bundle", folder / "b.tar.gz"}, variables);
  doctor.end_input();
  const std::string out = doctor.all_out(), err = doctor.all_err();
  EXPECT_LE(doctor.exit_status(), 1) << out << err;
  EXPECT_NE(err.find("review it before you send it"), std::string::npos) << err;
  ASSERT_EQ(std::system(("tar -xzf '" + (folder / "b.tar.gz") + "' -C '" + folder.path().string() + "'").c_str()), 0);

  for (const char* name : {"doctor.json", "devices.json", "report.json", "config.json", "queue.json", "cost.json",
                           "environment.txt", "versions.txt", "os-release"})
    EXPECT_FALSE(content(name).empty()) << name;
  EXPECT_NE(content("doctor.json").find("cpu:0.matmul"), std::string::npos);
  EXPECT_NE(content("queue.json").find("--password"), std::string::npos) << "the holder is in it: " << content("queue.json");
  EXPECT_NE(content("config.json").find("HF_TOKEN=[redacted]"), std::string::npos) << content("config.json");
  EXPECT_NE(content("environment.txt").find("TENON_SERVER_PASSWORD=[redacted]"), std::string::npos);
  for (const auto& entry : std::filesystem::directory_iterator(folder / "tenon-bundle")) {
    const std::string text = content(entry.path().filename().string());
    EXPECT_EQ(text.find(secret), std::string::npos) << entry.path().filename() << '\n' << text;
    EXPECT_EQ(text.find("home-of-ada"), std::string::npos) << entry.path().filename() << '\n' << text;
  }
  holder.end_input();
  EXPECT_EQ(holder.exit_status(), 0);
}

}  // namespace
}  // namespace tenon

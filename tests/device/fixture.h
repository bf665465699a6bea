// The fixture machines of tests/fixtures, and one made of noise.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "source_folder.h"
#include "temporary_folder.h"
#include "tenon/device.h"

namespace tenon::testing {

inline std::filesystem::path fixtures() { return source_folder() / "tests/fixtures"; }

inline std::vector<std::string> machine_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fixtures()))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  return names;
}

// Its files, and what its machine.txt says of environment, denied nodes and affinity.
inline SystemRoot machine(const std::string& name) {
  SystemRoot::StandIn files{.root = fixtures() / name};
  std::ifstream settings(files.root / "machine.txt");
  for (std::string key, value; settings >> key && std::getline(settings >> std::ws, value);) {
    if (key == "env") files.environment[value.substr(0, value.find('='))] = value.substr(value.find('=') + 1);
    if (key == "denied") files.denied.push_back(value);
    if (key == "affinity") files.affinity = std::stoi(value);
  }
  return SystemRoot(std::move(files));
}

// Every file that any fixture machine has, full of random bytes, and every link leading nowhere; gone at the end of its life.
// |cards_make_sense| keeps what says that a card is there, so that the rest of its files is read.
class NoiseMachine {
 public:
  NoiseMachine(unsigned seed, bool cards_make_sense) : random_(seed) {
    for (const std::string& name : machine_names())
      for (const auto& entry : std::filesystem::recursive_directory_iterator(fixtures() / name))
        if (entry.is_symlink() || entry.is_regular_file())
          add(entry.path(), root_.path() / entry.path().lexically_relative(fixtures() / name), cards_make_sense);
  }

  SystemRoot root() const {
    return SystemRoot(
        {.root = root_.path(), .environment = {{"TPU_NAME", "\x01"}, {"PATH", "::/:/usr/bin"}, {"VIRTUAL_ENV", "/opt/env"}}});
  }

 private:
  void add(const std::filesystem::path& original, const std::filesystem::path& copy, bool cards_make_sense) {
    std::filesystem::create_directories(copy.parent_path());
    std::error_code exists;
    const std::string file = original.filename().string();
    const bool says_card =
        original.string().find("/pci/devices/") != std::string::npos &&
        (file == "vendor" || file == "device" || file == "class" || file == "driver" || file == "subsystem_device");
    if (cards_make_sense && says_card)
      return std::filesystem::copy(
          original, copy, std::filesystem::copy_options::skip_existing | std::filesystem::copy_options::copy_symlinks, exists);
    if (std::filesystem::is_symlink(original)) return std::filesystem::create_symlink(noise(12), copy, exists);
    std::ofstream(copy, std::ios::binary) << noise(std::vector<std::size_t>{0, 1, 7, 64, 300, 5000}[random_() % 6]);
  }
  std::string noise(std::size_t size) {
    std::string bytes(size, 'x');
    const bool digits = random_() % 3 == 0;  // numbers that are far too large are nonsense, too
    for (char& byte : bytes) byte = static_cast<char>(digits ? '0' + random_() % 10 : 1 + random_() % 255);
    return bytes;
  }

  std::mt19937 random_;
  test::TemporaryFolder root_;
};

}  // namespace tenon::testing

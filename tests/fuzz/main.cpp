// fuzz_<what> [count] [seed] [file or folder ...]: see fuzzer.h.
// fuzz_<what> --export FOLDER: writes the seeds into FOLDER/seeds and the words as libFuzzer's dictionary, FOLDER/words.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "fuzz/mutator.h"

namespace tenon::fuzz {
namespace {

namespace fs = std::filesystem;

struct Tally {
  std::uint64_t cases = 0, accepted = 0;
  double largest_share = 0;
};

// False for a failure, which is printed.
bool passes(const std::string& label, const std::string& text, Tally& tally) {
  // What was tried last is known even when the process dies of it.
  if (std::getenv("FUZZ_VERBOSE") != nullptr) fmt::print(stderr, "{}: {}\n", label, printable(text));
  const Outcome outcome = try_input(std::as_bytes(std::span(text)));
  ++tally.cases;
  tally.accepted += outcome.is_accepted;
  tally.largest_share = std::max(tally.largest_share, outcome.share_of_allowance);
  if (outcome.failure.empty()) return true;
  fmt::print(stderr, "{}: {} {}\n  {}\n", target().name, label, outcome.failure, printable(text));
  return false;
}

std::vector<fs::path> files_under(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

bool replay(const fs::path& path, Tally& tally) {
  for (const fs::path& file : files_under(path)) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) {
      fmt::print(stderr, "{}: cannot read {}\n", target().name, file.string());
      return false;
    }
    if (!passes(file.filename().string(), text.str(), tally)) return false;
  }
  return true;
}

int export_to(const fs::path& folder) {
  fs::create_directories(folder / "seeds");
  for (std::size_t i = 0; i < target().seeds.size(); ++i)
    std::ofstream(folder / "seeds" / fmt::format("seed_{}", i), std::ios::binary) << target().seeds[i];
  std::ofstream words(folder / "words");
  for (const std::string& word : target().words) words << printable(word) << "\n";
  return words ? 0 : 1;
}

int run(std::uint64_t count, std::uint64_t seed, std::span<char* const> files) {
  Tally replayed, tally;
  for (const char* file : files)
    if (!replay(file, replayed)) return 1;
  for (std::size_t i = 0; i < target().dense.size(); ++i)
    if (!passes(fmt::format("dense input {}", i), target().dense[i], replayed)) return 1;
  Mutator mutator(target(), seed);
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint64_t i = 0; i < count; ++i)
    if (!passes(fmt::format("case {} of seed {}", i, seed), mutator.next(), tally)) return 1;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  fmt::print("{}: {} replayed, {} cases of seed {}: {} accepted; at most {:.0f} % of the allowed memory; {:.0f} cases/s\n",
             target().name, replayed.cases, count, seed, tally.accepted,
             100 * std::max(tally.largest_share, replayed.largest_share), static_cast<double>(count) / seconds);
  if (count < 1000 || (tally.accepted > 0 && tally.accepted < count)) return 0;
  fmt::print(stderr, "{}: cases that are all accepted, or all refused, test nothing\n", target().name);
  return 1;
}

}  // namespace
}  // namespace tenon::fuzz

int main(int argc, char** argv) {
  if (argc == 3 && std::string_view(argv[1]) == "--export") return tenon::fuzz::export_to(argv[2]);
  const std::uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 20000;
  const std::uint64_t seed = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const std::span<char* const> rest(argv, static_cast<std::size_t>(argc));
  return tenon::fuzz::run(count, seed, rest.subspan(std::min<std::size_t>(3, rest.size())));
}

// tenon_tokenizer_cases [--list] FOLDER...: compares our ids with Hugging Face's, as make_tokenizers.py wrote them. Exit status 0
// if every line of every tokenizer is equal: ids, types, and the text that the ids decode to.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>

#include "tenon/error.h"
#include "tenon/model/tokenizer.h"

namespace tenon {
namespace {

namespace json = boost::json;

std::vector<std::int32_t> numbers(const json::value& list) {
  std::vector<std::int32_t> out;
  for (const json::value& each : list.as_array()) out.push_back(static_cast<std::int32_t>(each.as_int64()));
  return out;
}

std::string listed(const std::vector<std::int32_t>& ids) { return fmt::format("{}", fmt::join(ids, " ")); }

// How many of the lines differ.
int run(const std::filesystem::path& folder, bool lists) {
  const Tokenizer tokenizer = Tokenizer::load(folder / "tokenizer.json");
  std::ifstream in(folder / "lines.txt");
  std::string line;
  int total = 0, wrong = 0;
  while (std::getline(in, line)) {
    const json::value expected = json::parse(line);
    const std::string text(expected.at("text").as_string());
    const Tokens got = tokenizer.encode(text);
    const std::vector<std::int32_t> ids = numbers(expected.at("ids"));
    const std::string decoded = tokenizer.decode(ids);
    const bool same_ids = got.ids == ids && got.types == numbers(expected.at("types")),
               same_text = decoded == std::string_view(expected.at("decoded").as_string());
    ++total;
    wrong += !same_ids || !same_text;
    if (lists && !same_ids)
      fmt::print("{}: {}\n  got      {}\n  expected {}\n", folder.filename().string(), json::serialize(expected.at("text")),
                 listed(got.ids), listed(ids));
    if (lists && !same_text)
      fmt::print("{}: decoded {}\n  expected {}\n", folder.filename().string(), json::serialize(json::string(decoded)),
                 json::serialize(expected.at("decoded")));
  }
  fmt::print("{} ({}): {} of {} lines equal\n", folder.filename().string(), tokenizer.model(), total - wrong, total);
  return total == 0 ? 1 : wrong;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  int wrong = 0;
  bool lists = false;
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--list") {
      lists = true;
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      try {
        if (std::filesystem::exists(entry.path() / "tokenizer.json")) wrong += tenon::run(entry.path(), lists);
      } catch (const std::exception& error) {
        fmt::print("{}: {}\n", entry.path().string(), error.what());
        ++wrong;
      }
    }
  }
  return wrong == 0 ? 0 : 1;
}

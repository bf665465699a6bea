// tenon_chat_cases [--list] FILE: compares what chat templates write with what Jinja writes, as make_chats.py recorded it. Exit
// status 0 if every text is equal and every conversation that Jinja refuses is refused.
#include <fmt/format.h>

#include <boost/json.hpp>
#include <ctime>
#include <fstream>

#include "model/generate/chat_template.h"
#include "tenon/error.h"

namespace tenon {
namespace {

namespace json = boost::json;

const std::map<std::string, std::string> kSpecial{
    {"bos_token", "<|bos|>"}, {"eos_token", "<|eos|>"}, {"pad_token", "<|pad|>"}, {"unk_token", "<|unk|>"}};

// "<time FORMAT>" as the time is now.
std::string with_time(std::string text) {
  for (std::size_t at = text.find("<time "); at != std::string::npos; at = text.find("<time ", at + 1)) {
    const std::size_t end = text.find('>', at);
    const std::string format = text.substr(at + 6, end - at - 6);
    const std::time_t now = std::time(nullptr);
    char made[200] = {};
    std::strftime(made, sizeof made, format.c_str(), std::localtime(&now));
    text.replace(at, end + 1 - at, made);
  }
  return text;
}

// What is wrong with a case; "" if nothing is.
std::string problem(const std::string& jinja, const json::object& one) {
  std::vector<ChatMessage> messages;
  for (const json::value& each : one.at("messages").as_array())
    messages.push_back({std::string(each.at("role").as_string()), std::string(each.at("content").as_string())});
  std::string got;
  try {
    const ChatTemplate chat = ChatTemplate::parse(jinja, kSpecial);
    for (const ChatPart& part : chat.format(messages)) got += part.text;
  } catch (const Error& error) {
    const bool refuses = one.contains("error") && error.code() == ErrorCode::invalid_argument;
    return refuses ? "" : std::string(error.what());
  }
  if (one.contains("error"))
    return fmt::format("got {}, where Jinja says {}", json::serialize(json::string(got)), json::serialize(one.at("error")));
  const std::string wanted = with_time(std::string(one.at("text").as_string()));
  if (got == wanted) return {};
  return fmt::format("{}\n  got      {}\n  expected {}", json::serialize(one.at("messages")), json::serialize(json::string(got)),
                     json::serialize(json::string(wanted)));
}

int run(const char* path, bool lists) {
  std::ifstream in(path);
  int total = 0, wrong = 0;
  std::string jinja;
  for (std::string line; std::getline(in, line); ++total) {
    const json::value one = json::parse(line);
    if (const json::value* given = one.as_object().if_contains("template")) jinja = std::string(given->as_string());
    const std::string found = problem(jinja, one.as_object());
    wrong += !found.empty();
    if (lists && !found.empty()) fmt::print("{}: {}\n", std::string_view(one.at("name").as_string()), found);
  }
  fmt::print("{} of {} conversations equal\n", total - wrong, total);
  return total == 0 || wrong > 0;
}

}  // namespace
}  // namespace tenon

int main(int argc, char** argv) {
  const bool lists = argc > 1 && std::string_view(argv[1]) == "--list";
  if (argc != (lists ? 3 : 2)) {
    fmt::print(stderr, "usage: tenon_chat_cases [--list] FILE\n");
    return 2;
  }
  return tenon::run(argv[argc - 1], lists);
}

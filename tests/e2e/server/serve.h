// A server started for a test, in folders of its own, and a client of a few lines.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "e2e/program.h"
#include "temporary_folder.h"

namespace tenon::testing {

class Serve : public ::testing::Test {
 protected:
  Serve() { directory_.make_private("run"); }

  std::unique_ptr<Program> start(std::vector<std::string> arguments,
                                 std::vector<std::pair<std::string, std::string>> variables = {}) {
    std::vector<std::string> words{TENON_PROGRAM, "serve", "--port", "0"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return command(std::move(words), std::move(variables));
  }
  // Any program, with the same folders.
  std::unique_ptr<Program> command(std::vector<std::string> words,
                                   std::vector<std::pair<std::string, std::string>> variables = {}) {
    variables.emplace_back("TENON_RUN_DIR", directory_ / "run");
    variables.emplace_back("TENON_STATE_DIR", directory_ / "state");
    return std::make_unique<Program>(std::move(words), variables);
  }
  // From "Tenon serves on http://127.0.0.1:8080".
  static std::uint16_t port_of(Program& program) {
    const std::string line = program.out_line();
    EXPECT_TRUE(line.starts_with("Tenon serves on http://127.0.0.1:")) << line;
    return static_cast<std::uint16_t>(std::atoi(line.c_str() + line.rfind(':') + 1));
  }
  static std::string request(std::uint16_t port, const std::string& text) {
    const FileDescriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return "no connection";
    (void)!::send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL);
    std::string answer;
    char bytes[4096];
    ssize_t count = 0;
    while ((count = recv(socket.get(), bytes, sizeof bytes, 0)) > 0) answer.append(bytes, static_cast<std::size_t>(count));
    return answer;
  }
  static std::string get(std::uint16_t port, const std::string& path) {
    return request(port, "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  }
  static std::string post(std::uint16_t port, const std::string& path, const std::string& body) {
    return request(port, "POST " + path +
                             " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
                             "Content-Length: " +
                             std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  static std::string compute(std::uint16_t port, const std::string& device) {
    return post(port, "/api/execute",
                R"({"operation":"neg","inputs":[{"value":4}],"timeout_seconds":60,"device":")" + device + "\"}");
  }
  // What comes after the header.
  static std::string body_of(const std::string& answer) {
    const std::size_t end = answer.find("\r\n\r\n");
    return end == std::string::npos ? std::string() : answer.substr(end + 4);
  }

  test::TemporaryFolder directory_;
};

}  // namespace tenon::testing

// A small HTTP client over raw sockets, and a server in a thread: for tests that need to send what no library would.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "base/system/file_descriptor.h"
#include "server/http/server.h"
#include "temporary_folder.h"
#include "tenon/manager.h"
#include "tenon/manager/config.h"

namespace tenon::server {

struct Reply {
  int status = 0;
  std::map<std::string, std::string> fields;  // names in lower case; the last of several
  std::string head, body;

  boost::json::value json() const { return boost::json::parse(body); }
  std::string field(const std::string& name) const {
    const auto found = fields.find(name);
    return found == fields.end() ? std::string() : found->second;
  }
};

class TestClient {
 public:
  // |from|: an address of 127.0.0.0/8 that the server sees as the client's.
  explicit TestClient(std::uint16_t port, const char* from = nullptr)
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    if (from != nullptr && (inet_pton(AF_INET, from, &address.sin_addr) != 1 ||
                            bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0))
      throw std::runtime_error("cannot bind the client's address");
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
      throw std::runtime_error("cannot connect");
  }

  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;  // the server may have closed on us: what it answered is still to be read
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  // More bytes into the buffer; false at the end of the stream, or when nothing came for |wait|.
  bool fill(std::chrono::milliseconds wait = std::chrono::seconds(20)) {
    pollfd ready{socket_.get(), POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(wait.count())) <= 0) return false;
    char bytes[65536];
    const ssize_t count = recv(socket_.get(), bytes, sizeof bytes, 0);
    if (count <= 0) {
      is_closed_ = true;
      return false;
    }
    buffer_.append(bytes, static_cast<std::size_t>(count));
    return true;
  }

  // The next answer; status 0 when the connection ended before one.
  Reply read(bool is_head_request = false) {
    Reply reply;
    std::size_t end = 0;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos)
      if (!fill()) return reply;
    reply.head = buffer_.substr(0, end + 2);
    buffer_.erase(0, end + 4);
    reply.status = std::atoi(reply.head.c_str() + 9);
    std::size_t at = reply.head.find("\r\n") + 2;
    while (at < reply.head.size()) {
      const std::size_t line = reply.head.find("\r\n", at), colon = reply.head.find(": ", at);
      std::string name = reply.head.substr(at, colon - at);
      for (char& c : name) c = static_cast<char>(std::tolower(c));
      reply.fields[name] = reply.head.substr(colon + 2, line - colon - 2);
      at = line + 2;
    }
    if (reply.status == 100) return reply;
    const std::size_t length = static_cast<std::size_t>(std::atoll(reply.field("content-length").c_str()));
    if (is_head_request) return reply;
    while (buffer_.size() < length)
      if (!fill()) break;
    reply.body = buffer_.substr(0, length);
    buffer_.erase(0, std::min(length, buffer_.size()));
    return reply;
  }

  // The next server-sent event as {name, data}; empty at the end of the stream.
  std::pair<std::string, std::string> read_event() {
    while (true) {
      std::size_t end = 0;
      while ((end = buffer_.find("\n\n")) == std::string::npos)
        if (!fill()) return {};
      const std::string block = buffer_.substr(0, end + 1);
      buffer_.erase(0, end + 2);
      const std::size_t name = block.find("event: "), data = block.find("data: ");
      if (name == std::string::npos) continue;  // a comment, or retry
      return {block.substr(name + 7, block.find('\n', name) - name - 7),
              block.substr(data + 6, block.find('\n', data) - data - 6)};
    }
  }

  Reply request(std::string_view method, std::string_view path, std::string_view body = {}, std::string_view fields = {}) {
    std::string text(method);
    text += " ";
    text += path;
    text += " HTTP/1.1\r\nHost: localhost\r\n";
    text += fields;
    if (!body.empty() || method == "POST") {
      if (fields.find("Content-Type") == std::string_view::npos) text += "Content-Type: application/json\r\n";
      text += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    }
    text += "\r\n";
    text += body;
    send(text);
    return read(method == "HEAD");
  }

  // Whether the server has closed the connection, now or within |wait|.
  bool is_closed(std::chrono::milliseconds wait = std::chrono::seconds(20)) {
    while (!is_closed_ && fill(wait)) {
    }
    return is_closed_;
  }
  void finish_sending() const { shutdown(socket_.get(), SHUT_WR); }
  int fd() const { return socket_.get(); }
  const std::string& buffer() const { return buffer_; }

 private:
  FileDescriptor socket_;
  std::string buffer_;
  bool is_closed_ = false;
};

class TestDirectory : public test::TemporaryFolder {
 public:
  // A file only its owner may read.
  std::string write(std::string_view name, std::string_view text) const {
    const std::string file = TemporaryFolder::write(name, text);
    std::filesystem::permissions(file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
    return file;
  }
};

// A server on a free port, in a thread of its own, with a run directory of its own.
class TestServer {
 public:
  explicit TestServer(ServerOptions options = {}, Config config = {}) {
    setenv("TENON_RUN_DIR", directory_.make_private("run").c_str(), 1);
    config.ledger = false;
    options.port = 0;
    if (options.report_directory.empty()) options.report_directory = directory_.path() / "reports";
    manager_ = std::make_unique<DeviceManager>(config);
    server_ = std::make_unique<Server>(options, *manager_);
    server_->listen();
    thread_ = std::thread([this] { server_->run(); });
  }
  ~TestServer() {
    if (thread_.joinable()) stop();
  }
  // As a command would: false if something does not end.
  bool end() {
    stop();
    return server_->end();
  }

  std::uint16_t port() const { return server_->port(); }
  TestClient client(const char* source = "127.0.0.1") const { return TestClient(port(), source); }
  DeviceManager& manager() { return *manager_; }
  Server& server() { return *server_; }
  const std::filesystem::path& directory() const { return directory_.path(); }

  Reply get(std::string_view path, std::string_view fields = {}) const { return client().request("GET", path, {}, fields); }
  Reply post(std::string_view path, std::string_view body, std::string_view fields = {}) const {
    return client().request("POST", path, body, fields);
  }

 private:
  void stop() {
    server_->stop();
    server_->stop();  // the second ends what still runs
    thread_.join();
  }

  TestDirectory directory_;
  std::unique_ptr<DeviceManager> manager_;
  std::unique_ptr<Server> server_;
  std::thread thread_;
};

// A step into a document: a member's name or an index.
// Of this process, the server included.
inline std::size_t resident_bytes() {
  std::ifstream status("/proc/self/statm");
  std::size_t pages = 0;
  status >> pages >> pages;
  return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

struct Step {
  Step(std::string_view wanted) : name(wanted) {}
  Step(const char* wanted) : name(wanted) {}
  Step(int wanted) : index(wanted) {}
  std::string_view name;
  int index = -1;
};

// What lies deep inside a document: at(json, "results", 0, "shape"). Throws where there is nothing.
template <class... Steps>
const boost::json::value& at(const boost::json::value& document, Steps... steps) {
  const boost::json::value* value = &document;
  for (const Step& step : {Step(steps)...})
    value = step.index >= 0 ? &value->as_array().at(static_cast<std::size_t>(step.index)) : &value->as_object().at(step.name);
  return *value;
}

}  // namespace tenon::server

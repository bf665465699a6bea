#include <fmt/format.h>
#include <termios.h>
#include <unistd.h>

#include <iostream>
#include <memory>

#include "cli/commands/commands.h"
#include "cli/option_checks.h"
#include "server/access/accounts.h"
#include "server/compute/memory/freed_memory.h"
#include "server/http/server.h"
#include "tenon/error.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

constexpr const char* kNotes = R"(By default the server listens only on this machine; with another --host a login is required.
On SIGTERM and Ctrl-C running requests complete. Limits and routes: docs/http.md, GET /openapi.json.

Examples:
  tenon serve
  tenon serve --sim wormhole --port 0
  tenon serve --models models
  tenon serve hash-password > passwords && tenon serve --host 0.0.0.0 --password-file passwords)";

struct ServeArguments {
  server::ServerOptions options;
  double drain_seconds = 25;
  double run_seconds = 300;
};

// Typed characters are not shown while this lives.
class HiddenInput {
 public:
  HiddenInput() {
    is_terminal_ = isatty(STDIN_FILENO) != 0 && tcgetattr(STDIN_FILENO, &before_) == 0;
    if (!is_terminal_) return;
    termios hidden = before_;
    hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
  }
  ~HiddenInput() {
    if (is_terminal_) tcsetattr(STDIN_FILENO, TCSAFLUSH, &before_);
  }
  HiddenInput(const HiddenInput&) = delete;
  HiddenInput& operator=(const HiddenInput&) = delete;
  bool is_terminal() const noexcept { return is_terminal_; }

 private:
  termios before_{};
  bool is_terminal_ = false;
};

std::string ask(const Console& console, const char* question) {
  const HiddenInput hidden;
  if (hidden.is_terminal()) console.err << question << std::flush;
  std::string line;
  if (!std::getline(std::cin, line))
    throw Error(ErrorCode::invalid_argument, "a password is required", "type one, or pass it as a line on standard input");
  if (hidden.is_terminal()) console.err << '\n';
  return line;
}

// A line of the file is the account, a colon and the hash.
std::string check_account(const std::string& name) {
  const bool fits = !name.empty() && name.size() <= 64 && name.find_first_of(": \t\r\n#") == std::string::npos;
  return fits ? "" : fmt::format("must be a word of at most 64 characters without ':' and '#', not {}", name);
}

int print_hash(const std::string& account, const Session& session) {
  const std::string password = ask(session.console, "Password: ");
  if (isatty(STDIN_FILENO) != 0 && ask(session.console, "Again: ") != password)
    throw Error(ErrorCode::invalid_argument, "the two passwords differ");
  const std::string hash = server::hash_password(password);  // refused before anything is printed
  session.console.out << account << ':' << hash << '\n';
  return 0;
}

int serve(const ServeArguments& arguments, const Session& session) {
  server::FreedMemory::tame_heaps();
  server::ServerOptions options = arguments.options;
  options.max_run_time = std::chrono::milliseconds(static_cast<long long>(arguments.run_seconds * 1000));
  options.drain_timeout = std::chrono::milliseconds(static_cast<long long>(arguments.drain_seconds * 1000));
  DeviceManager& manager = process_manager();
  auto server = std::make_unique<server::Server>(options, manager);
  server->listen();
  server->stop_on_signals();
  session.console.out << fmt::format("Tenon serves on {}\n", server->address()) << std::flush;
  server->run();
  const bool has_ended = server->end();
  if (has_ended) server.reset();
  // What is open closes now, in order, and not with the process.
  manager.shut_down();
  if (has_ended) return 0;
  session.console.err << "tenon: a device does not answer; the server ends without it\n" << std::flush;
  // A thread that is stuck in a driver cannot be joined, and what it uses must not be destroyed.
  _exit(1);
}

void add_limits(Command& command, ServeArguments& arguments) {
  server::ServerOptions& options = arguments.options;
  const auto add_size = [&](const char* flag, auto& target, const char* text) {
    command.add_option(flag, target, text)->transform(size_in_bytes())->type_name("SIZE");
  };
  add_size("--max-json", options.max_json_bytes, "Maximum size of a JSON body (8 MiB)");
  add_size("--max-body", options.max_body_bytes, "Maximum size of a tensor body (256 MiB)");
  add_size("--max-request-memory", options.max_request_memory,
           "Maximum memory of one request (1 GiB, but at most a quarter of the machine's)");
  add_size("--max-memory", options.max_memory, "Maximum memory of all requests together (half of the available memory)");
  add_size("--max-client-memory", options.max_client_memory,
           "Maximum memory of one client's requests (a quarter of --max-memory)");
  command.add_option("--max-elements", options.max_elements, "Maximum number of elements of a tensor")
      ->check(in_range(std::int64_t{1}, kMaxElements))
      ->type_name("N");
  command
      .add_option("--max-operations", options.max_operations,
                  "Maximum number of arithmetic operations of one program, its repeats included")
      ->check(in_range(1.0, 1e30))
      ->type_name("N");
  command.add_option("--max-run-seconds", arguments.run_seconds, "Maximum time of one computation, from the grant of its device")
      ->capture_default_str()
      ->check(in_range(0.001, 86400.0))
      ->type_name("SECONDS");
  command.add_option("--max-waiting", options.max_waiting, "Maximum number of requests waiting for a worker thread")
      ->check(in_range(0, 1'000'000))
      ->type_name("N");
  command.add_option("--max-connections", options.max_connections, "Connections")->check(in_range(1, 1'000'000))->type_name("N");
  command.add_option("--threads", options.threads, "Threads that compute or wait for a device (64)")
      ->check(in_range(1, 4096))
      ->type_name("N");
  command.add_option("--rate-limit", options.rate_limit, "Maximum requests per second from one address; 0: no limit")
      ->check(in_range(0.0, 1e9))
      ->type_name("N");
  command.add_option("--drain-seconds", arguments.drain_seconds, "Seconds that running requests may take after SIGTERM")
      ->capture_default_str()
      ->check(in_range(0.0, 86400.0))
      ->type_name("SECONDS");
}

}  // namespace

void add_serve_command(Command& app, Session& session) {
  auto arguments = std::make_shared<ServeArguments>();
  server::ServerOptions& options = arguments->options;
  Command* command = app.add_subcommand("serve", "Serve the calculator: a web page and an HTTP interface");
  command->add_option("--host", options.host, "Address to listen on")->capture_default_str()->type_name("ADDRESS");
  command->add_option("--port", options.port, "Port, up to 65535; 0: any free port")
      ->capture_default_str()
      ->check(in_range(0, 65535))
      ->type_name("PORT");
  command
      ->add_option("--models", options.model_folder,
                   "Folder of models to serve: NAME.onnx, NAME/model.onnx, or NAME/VERSION/model.onnx as Triton has it")
      ->type_name("DIRECTORY");
  command->add_option("--password-file", options.password_file, "File of accounts with hashed passwords, one per line")
      ->type_name("FILE");
  command->add_option("--token-file", options.token_file, "File of bearer tokens, one per line")->type_name("FILE");
  command->add_option("--allow-host", options.allowed_hosts, "Additional host name that is accepted without a login")
      ->type_name("NAME");
  command->add_option("--trusted-proxy", options.trusted_proxy, "Address of a proxy whose X-Forwarded-For is trusted")
      ->type_name("ADDRESS");
  command->add_option("--report-dir", options.report_directory, "Folder for problem reports from users")->type_name("DIRECTORY");
  command->add_flag("--log-requests", options.log_requests, "Log one line per request (TENON_LOG_FORMAT=json for JSON)");
  add_limits(*command, *arguments);
  command->footer(kNotes);
  command->require_subcommand(0, 1);

  auto account = std::make_shared<std::string>("admin");
  Command* hash = command->add_subcommand("hash-password", "Ask for a password and print a line for --password-file");
  hash->add_option("--account", *account, "Account of the password")
      ->capture_default_str()
      ->check(check_account)
      ->type_name("NAME");
  hash->callback([account, &session] { session.action = [account, &session] { return print_hash(*account, session); }; });
  command->callback([command, arguments, &session] {
    if (!command->has_chosen_subcommand()) session.action = [arguments, &session] { return serve(*arguments, session); };
  });
}

}  // namespace tenon::cli

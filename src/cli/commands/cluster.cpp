// tenon cluster: Slurm places jobs, this gives it the words for devices. Slurm is used through its commands and never linked.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <sstream>

#include "base/system/child_output.h"
#include "cli/child_process.h"
#include "cli/commands/commands.h"
#include "cli/json.h"
#include "cli/option_checks.h"
#include "tenon/error.h"

namespace tenon::cli {
namespace {

constexpr const char* kNotes = R"(Needs Slurm's commands (Debian: slurm-client) and a cluster whose nodes declare their devices as
GRES, for example gpu:4. packaging/slurm has a prolog and an epilog that lease a job's devices on
its nodes.

  run     an expression on the devices of several nodes: an allocation, mpirun in it, and
          tenon run --mesh; inside an allocation (SLURM_JOB_ID) that allocation is used
  exec    a command on one or more nodes, with devices
  status  nodes, their devices, and jobs

Examples:
  tenon cluster status
  tenon cluster run --nodes 2 --per-node 4 -- 'x @ w' x=@x.npy w=@w.npy --mesh data=8 --shard x=data,-
  tenon cluster exec --nodes 1 --per-node 1 -- python train.py)";

struct ClusterArguments {
  int nodes = 1, per_node = 1;
  std::string kind = "gpu", partition, time;
};

[[noreturn]] void throw_no_slurm(const std::string& command) {
  throw Error(ErrorCode::unavailable, fmt::format("{} could not be run, or reported an error", command),
              "Slurm's commands are needed (Debian: slurm-client), and its controller must answer: try `scontrol ping`");
}

std::string output_of(const std::vector<std::string>& command) {
  constexpr std::chrono::seconds kLimit{20};
  const std::optional<std::string> text = child_output(command, kLimit);
  if (!text) throw_no_slurm(command[0]);
  return *text;
}

// "NodeName=a State=IDLE Gres=gpu:4 ...": the words of a line; values have no blanks where we look.
std::map<std::string, std::string> fields_of(const std::string& line) {
  std::map<std::string, std::string> fields;
  std::istringstream words(line);
  for (std::string word; words >> word;)
    if (const std::size_t equals = word.find('='); equals != std::string::npos)
      fields.emplace(word.substr(0, equals), word.substr(equals + 1));
  return fields;
}

// The number of devices in "gres/gpu=2" of "cpu=4,mem=1G,gres/gpu=2".
int allocated_devices(const std::string& resources) {
  int count = 0;
  for (std::size_t at = 0; (at = resources.find("gres/", at)) != std::string::npos; at += 5) {
    const std::size_t equals = resources.find('=', at), name_end = std::min(resources.find(',', at), resources.size());
    // Typed resources (gres/gpu:h100=2) repeat what the plain ones count.
    if (equals < name_end && resources.substr(at, equals - at).find(':') == std::string::npos)
      count += std::stoi(resources.substr(equals + 1));
  }
  return count;
}

int declared_devices(const std::string& gres) {
  int count = 0;
  std::istringstream parts(gres);
  for (std::string part; std::getline(parts, part, ',');) {
    part = part.substr(0, part.find('('));
    const std::size_t colon = part.rfind(':');
    if (colon == std::string::npos) continue;
    const std::string number = part.substr(colon + 1);
    count += !number.empty() && std::all_of(number.begin(), number.end(), [](char c) { return c >= '0' && c <= '9'; })
                 ? std::stoi(number)
                 : 1;
  }
  return count;
}

struct ClusterNode {
  std::string name, state, devices;
  int total = 0, used = 0;
};

struct ClusterJob {
  std::string id, user, state, time, nodes, name;
};

std::vector<ClusterNode> read_nodes() {
  std::vector<ClusterNode> nodes;
  std::istringstream lines(output_of({"scontrol", "show", "node", "-o"}));
  for (std::string line; std::getline(lines, line);) {
    auto fields = fields_of(line);
    if (!fields.contains("NodeName")) continue;
    const std::string gres = fields["Gres"] == "(null)" ? "" : fields["Gres"];
    std::string state = fields["State"];
    std::transform(state.begin(), state.end(), state.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    nodes.push_back({fields["NodeName"], state, gres, declared_devices(gres), allocated_devices(fields["AllocTRES"])});
  }
  return nodes;
}

std::vector<ClusterJob> read_jobs() {
  std::vector<ClusterJob> jobs;
  std::istringstream lines(output_of({"squeue", "-h", "-o", "%i|%u|%T|%M|%N|%j"}));
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> fields;
    std::istringstream parts(line);
    for (std::string part; std::getline(parts, part, '|');) fields.push_back(part);
    if (fields.size() < 5) continue;
    fields.resize(6);
    std::transform(fields[2].begin(), fields[2].end(), fields[2].begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    jobs.push_back({fields[0], fields[1], fields[2], fields[3], fields[4], fields[5]});
  }
  return jobs;
}

int status(const Session& session) {
  const std::vector<ClusterNode> nodes = read_nodes();
  const std::vector<ClusterJob> jobs = read_jobs();
  std::ostream& out = session.console.out;
  if (session.json) {
    print_document(out, 1, [&](JsonWriter& json) {
      json.key("nodes").begin_array();
      for (const ClusterNode& node : nodes) {
        json.begin_object();
        json.member("name", node.name);
        json.member("state", node.state);
        json.member("gres", node.devices);
        json.member("devices", std::int64_t{node.total});
        json.member("devices_in_use", std::int64_t{node.used});
        json.end_object();
      }
      json.end_array();
      json.key("jobs").begin_array();
      for (const ClusterJob& job : jobs) {
        json.begin_object();
        json.member("id", job.id);
        json.member("user", job.user);
        json.member("state", job.state);
        json.member("time", job.time);
        json.member("nodes", job.nodes);
        json.member("name", job.name);
        json.end_object();
      }
      json.end_array();
    });
    return 0;
  }
  out << session.console.bold(fmt::format("{:<20}{:<16}{:<20}{:>8}", "NODE", "STATE", "DEVICES", "IN USE")) << '\n';
  for (const ClusterNode& node : nodes)
    out << fmt::format("{:<20}{:<16}{:<20}{:>8}\n", node.name, node.state, node.devices.empty() ? "-" : node.devices,
                       fmt::format("{} of {}", node.used, node.total));
  if (jobs.empty()) {
    out << "no jobs\n";
    return 0;
  }
  out << '\n'
      << session.console.bold(fmt::format("{:<10}{:<12}{:<14}{:>10}  {:<20}{}", "JOB", "USER", "STATE", "TIME", "NODES", "NAME"))
      << '\n';
  for (const ClusterJob& job : jobs)
    out << fmt::format("{:<10}{:<12}{:<14}{:>10}  {:<20}{}\n", job.id, job.user, job.state, job.time, job.nodes, job.name);
  return 0;
}

std::vector<std::string> placement_options(const ClusterArguments& arguments) {
  std::vector<std::string> options{fmt::format("--nodes={}", arguments.nodes)};
  if (arguments.kind != "none") options.push_back(fmt::format("--gres={}:{}", arguments.kind, arguments.per_node));
  if (!arguments.partition.empty()) options.push_back("--partition=" + arguments.partition);
  if (!arguments.time.empty()) options.push_back("--time=" + arguments.time);
  return options;
}

int run_command(const std::vector<std::string>& command) {
  try {
    return run_child(command, {}).exit_status;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::not_found) throw_no_slurm(command[0]);
    throw;
  }
}

void need_words(const Session& session, const char* what, const char* example) {
  if (session.trailing.empty())
    throw Error(ErrorCode::invalid_argument, fmt::format("{} is required", what),
                fmt::format("put it after --, for example: {}", example));
}

int execute(const ClusterArguments& arguments, const Session& session) {
  need_words(session, "a command", "tenon cluster exec --nodes 1 -- nvidia-smi");
  std::vector<std::string> command{"srun", "--quiet", "--ntasks-per-node=1"};
  const std::vector<std::string> options = placement_options(arguments);
  command.insert(command.end(), options.begin(), options.end());
  command.insert(command.end(), session.trailing.begin(), session.trailing.end());
  return run_command(command);
}

int run(const ClusterArguments& arguments, const Session& session) {
  need_words(session, "an expression", "tenon cluster run --nodes 2 -- 'x @ w' x=@x.npy w=@w.npy --mesh data=2 --shard x=data,-");
  const int processes = arguments.nodes * arguments.per_node;
  std::vector<std::string> command;
  if (session.console.environment("SLURM_JOB_ID").empty()) {
    command = {"salloc", "--quiet", fmt::format("--ntasks-per-node={}", arguments.per_node)};
    const std::vector<std::string> options = placement_options(arguments);
    command.insert(command.end(), options.begin(), options.end());
  }
  const std::vector<std::string> inside{"mpirun", "-n", std::to_string(processes), "tenon", "run"};
  command.insert(command.end(), inside.begin(), inside.end());
  command.insert(command.end(), session.trailing.begin(), session.trailing.end());
  return run_command(command);
}

void add_placement_options(Command& command, ClusterArguments& arguments) {
  command.add_option("--nodes", arguments.nodes, "Number of nodes")
      ->check(in_range(1, 100'000))
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--per-node", arguments.per_node, "Devices per node")
      ->check(in_range(1, 1024))
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--kind", arguments.kind, "Slurm's name of the devices: gpu, gpu:h100, tt; none: no devices")
      ->type_name("GRES")
      ->capture_default_str();
  command.add_option("--partition", arguments.partition, "Slurm partition")->type_name("NAME");
  command.add_option("--time", arguments.time, "Time limit, as Slurm writes it: 10, 1:30:00")->type_name("TIME");
}

}  // namespace

void add_cluster_command(Command& app, Session& session) {
  auto arguments = std::make_shared<ClusterArguments>();
  Command* cluster = app.add_subcommand("cluster", "Run on the devices of a Slurm cluster");
  cluster->require_subcommand(1, 1);
  cluster->footer(kNotes);
  Command* status_command = cluster->add_subcommand("status", "Show nodes, their devices, and jobs");
  add_output_options(*status_command, session);
  status_command->callback([&session] { session.action = [&session] { return status(session); }; });
  Command* run_command =
      cluster->add_subcommand("run", "Compute an expression on a mesh over several nodes: tenon cluster run -- EXPR ...");
  add_placement_options(*run_command, *arguments);
  run_command->callback([arguments, &session] { session.action = [arguments, &session] { return run(*arguments, session); }; });
  Command* exec_command =
      cluster->add_subcommand("exec", "Run a command on nodes with devices: tenon cluster exec -- COMMAND...");
  add_placement_options(*exec_command, *arguments);
  exec_command->callback(
      [arguments, &session] { session.action = [arguments, &session] { return execute(*arguments, session); }; });
}

}  // namespace tenon::cli

// The subcommands. Each function adds one to the application, with its options and help; when the user chose it, |action| is set
// to what it does. Actions return the exit status and throw Error.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/terminal/console.h"
#include "manager/config/settings.h"

namespace tenon::cli {

using Action = std::function<int()>;

struct Session {
  Console& console;
  bool json = false;
  std::string colour = "auto";
  Action action;
  std::vector<std::string> trailing;  // what follows -- in tenon exec: another program's arguments, as they are
  // Options that every command has: --config, --set, --sim, --quiet and --progress.
  std::string config_file;
  std::vector<std::string> assignments, simulated;
  bool quiet = false;
  std::string progress = "auto";
  // Set while an MPI job runs: if that fails, the process ends without MPI's own clean-up, which would wait for the others.
  bool ends_at_once = false;

  // Where the configuration comes from: the flags above over the console's environment over the file.
  ConfigSources config_sources() const;
};

void add_run_command(Command& app, Session& session);
void add_bench_command(Command& app, Session& session);
void add_warm_command(Command& app, Session& session);
void add_pack_commands(Command& app, Session& session);
void add_profile_command(Command& app, Session& session);
void add_ops_command(Command& app, Session& session);
void add_devices_command(Command& app, Session& session);
void add_pick_command(Command& app, Session& session);
void add_reset_command(Command& app, Session& session);
void add_report_command(Command& app, Session& session);
void add_doctor_command(Command& app, Session& session);
void add_exec_command(Command& app, Session& session);
void add_queue_command(Command& app, Session& session);
void add_policy_command(Command& app, Session& session);
void add_tune_command(Command& app, Session& session);
void add_config_command(Command& app, Session& session);
void add_cluster_command(Command& app, Session& session);
void add_cost_command(Command& app, Session& session);
void add_simulate_command(Command& app, Session& session);
void add_model_command(Command& app, Session& session);
void add_encode_command(Command& app, Session& session);
void add_similar_command(Command& app, Session& session);
void add_generate_command(Command& app, Session& session);
void add_top_command(Command& app, Session& session);
void add_serve_command(Command& app, Session& session);
void add_completion_command(Command& app, Session& session);
void add_man_command(Command& app, Session& session);

// --json and --color, which every command that prints data has.
void add_output_options(Command& command, Session& session);

}  // namespace tenon::cli

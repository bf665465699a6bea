#include <fmt/format.h>

#include <memory>

#include "array/format_array.h"
#include "cli/commands/commands.h"
#include "cli/json.h"
#include "present/operation.h"
#include "tenon/expression.h"
#include "tenon/manager.h"

namespace tenon::cli {
namespace {

struct OpsArguments {
  std::string name;
  bool names = false;
};

std::string run_example(const OpInfo& op, int width) {
  if (op.example.empty()) return {};
  std::string text;
  const RunResult result = process_manager().run(parse_expression(op.example), {}, {.device = "cpu"});
  for (const HostArray& array : result.outputs) text += format_array(array, {.width = width - 2}) + '\n';
  return text;
}

int show_ops(const OpsArguments& arguments, const Session& session) {
  std::ostream& out = session.console.out;
  const OpInfo* one = arguments.name.empty() ? nullptr : &find_op(arguments.name);
  if (session.json) {
    print_document(out, 2, [&](JsonWriter& json) {
      json.key("ops").begin_array();
      for (const OpInfo& op : all_ops())
        if (one == nullptr || one == &op) present::write_operation(json, op);
      json.end_array();
    });
  } else if (arguments.names) {
    for (const OpInfo& op : all_ops()) out << op.name << '\n';
  } else if (one != nullptr) {
    out << present::op_page(*one, session.console.style(), run_example(*one, session.console.width));
  } else {
    out << present::op_list(session.console.style());
  }
  return 0;
}

}  // namespace

void add_ops_command(Command& app, Session& session) {
  auto arguments = std::make_shared<OpsArguments>();
  Command* command = app.add_subcommand("ops", "List the ops, or show one with formula, parameters, dtypes and example");
  command->add_option("name", arguments->name, "Name or alias of an op")->type_name("OP");
  command->add_flag("--names", arguments->names, "Print only the names, one per line");
  add_output_options(*command, session);
  command->footer("Examples:\n  tenon ops\n  tenon ops softmax\n  tenon ops --json");
  command->callback([arguments, &session] { session.action = [arguments, &session] { return show_ops(*arguments, session); }; });
}

}  // namespace tenon::cli

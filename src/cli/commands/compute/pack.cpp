#include <fmt/format.h>

#include <memory>

#include "base/text/units.h"
#include "cli/commands/commands.h"
#include "cli/json.h"
#include "present/tensor/encoding.h"
#include "tenon/array/codec.h"
#include "tenon/error.h"

namespace tenon::cli {
namespace {

constexpr const char* kPackNotes =
    R"(Reads .npy, .npz, .safetensors or CSV and writes safetensors with the encoded bytes; tenon unpack restores the
tensors in their dtypes. Without --output only the table of sizes and errors is printed.

Encodings: zstd (lossless, every dtype); bfloat16, float8_e4m3, float8_e5m2; int8 (a scale for each row);
bfloat8_b, bfloat4_b (Tenstorrent); mxfp8_e4m3, mxfp8_e5m2, mxfp6_e3m2, mxfp6_e2m3, mxfp4_e2m1 (OCP MX).

Examples:
  tenon pack weights.safetensors --as int8 -o small.safetensors
  tenon pack weights.npy --as all
  tenon unpack small.safetensors -o weights.npz)";

struct PackArguments {
  std::string file, encoding = "zstd", output;
};

std::vector<Encoding> encodings_of(const std::string& text) {
  if (text == "all") return {all_encodings().begin(), all_encodings().end()};
  return {present::encoding_named(text)};
}

int encode_file(const PackArguments& arguments, const Session& session) {
  const std::vector<Encoding> encodings = encodings_of(arguments.encoding);
  if (encodings.size() > 1 && !arguments.output.empty())
    throw Error(ErrorCode::invalid_argument, "--as all only compares; a file has one encoding", "choose one with --as");
  if (!arguments.output.empty() && !arguments.output.ends_with(".safetensors"))
    throw Error(ErrorCode::invalid_argument, "encoded tensors are written as safetensors",
                "use a name that ends in .safetensors");
  const ArrayFile file = load_arrays(arguments.file);
  std::vector<present::EncodedTensor> rows;
  std::map<std::string, Encoded, std::less<>> encoded;
  for (const auto& [array, tensor] : file.arrays)
    for (const Encoding encoding : encodings) {
      if (encodings.size() > 1 && encoding != Encoding::zstd && !is_float(tensor.dtype())) continue;
      Encoded one = encode(tensor, encoding);
      rows.push_back({array.empty() ? "tensor" : array, encoding, tensor.dtype(), tensor.shape(), report_of(tensor, one)});
      encoded.insert_or_assign(array.empty() ? "tensor" : array, std::move(one));
    }
  if (!arguments.output.empty()) save_safetensors(arguments.output, to_file(encoded));
  if (session.json)
    print_document(session.console.out, 1, [&](JsonWriter& json) { present::write_encodings(json, rows); });
  else
    session.console.out << present::encoding_table(rows, session.console.style());
  if (!arguments.output.empty() && !session.json) session.console.out << "saved to " << arguments.output << '\n';
  return 0;
}

int decode_file(const PackArguments& arguments, const Session& session) {
  const ArrayFile file = decoded_file(load_safetensors(arguments.file));
  save_arrays(arguments.output, file);
  if (session.json) {
    print_document(session.console.out, 1, [&](JsonWriter& json) {
      json.member("file", arguments.output);
      json.key("tensors").begin_array();
      for (const auto& entry : file.arrays) json.value(entry.first);
      json.end_array();
    });
    return 0;
  }
  for (const auto& [array, tensor] : file.arrays)
    session.console.out << fmt::format("{}  {} {}\n", array, name(tensor.dtype()), to_string(tensor.shape()));
  session.console.out << "saved to " << arguments.output << '\n';
  return 0;
}

}  // namespace

void add_pack_commands(Command& app, Session& session) {
  auto arguments = std::make_shared<PackArguments>();
  Command* pack = app.add_subcommand("pack", "Store tensors in fewer bytes; shows ratio and error");
  pack->add_option("file", arguments->file, "File of tensors")->required()->type_name("FILE");
  pack->add_option("--as", arguments->encoding, "The encoding, zstd by default; all: compare all of them")->type_name("ENCODING");
  pack->add_option("-o,--output", arguments->output, "Write the encoded tensors to this file")->type_name("FILE");
  add_output_options(*pack, session);
  pack->footer(kPackNotes);
  pack->callback([arguments, &session] { session.action = [arguments, &session] { return encode_file(*arguments, session); }; });

  auto decoding = std::make_shared<PackArguments>();
  Command* unpack = app.add_subcommand("unpack", "Restore tensors that tenon pack wrote");
  unpack->add_option("file", decoding->file, "File that tenon pack wrote")->required()->type_name("FILE");
  unpack->add_option("-o,--output", decoding->output, "Write the tensors to this .npy, .npz, .safetensors or .csv file")
      ->required()
      ->type_name("FILE");
  add_output_options(*unpack, session);
  unpack->footer("Examples:\n  tenon unpack small.safetensors -o weights.npz");
  unpack->callback([decoding, &session] { session.action = [decoding, &session] { return decode_file(*decoding, session); }; });
}

}  // namespace tenon::cli

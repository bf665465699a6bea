#include "emulated/kernel_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

#include "temporary_folder.h"
#include "tenon/error.h"

namespace tenon::emulated {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// The place after the bracket that closes the one at |open|.
std::size_t closing(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < text.size(); ++i) {
    if (text[i] == '"')
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && --depth == 0) return i + 1;
  }
  throw Error(ErrorCode::internal, "inline assembly without an end");
}

// Parts of |text| between |separator|s that stand in no brackets and no string.
std::vector<std::string> parts_of(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  int depth = 0;
  bool is_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && (i == 0 || text[i - 1] != '\\')) is_string = !is_string;
    if (!is_string && c == '(') ++depth;
    if (!is_string && c == ')') --depth;
    if (!is_string && depth == 0 && c == separator)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

// asm's text between its brackets, as a call.
std::string call_of(std::string_view assembly) {
  const std::vector<std::string> sections = parts_of(assembly, ':');
  std::string name = "ptx_";
  for (std::size_t i = sections[0].find('"') + 1; i < sections[0].size(); ++i) {
    const char c = sections[0][i];
    if (c == ' ' || c == ';' || c == '"') break;
    name += is_word(c) ? c : '_';
  }
  std::string operands;
  for (std::size_t s = 1; s < std::min<std::size_t>(sections.size(), 3); ++s)
    for (const std::string& operand : parts_of(sections[s], ','))
      if (const std::size_t open = operand.find('('); open != std::string::npos)
        operands += (operands.empty() ? "" : ", ") + operand.substr(open, closing(operand, open) - open);
  return fmt::format("{}({})", name, operands);
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t i = text.find(from); i != std::string::npos; i = text.find(from, i + to.size()))
    text.replace(i, from.size(), to);
}

const std::string& header() {
  static const std::string text = text_of(TENON_SOURCE_DIR "/tests/emulated/cuda_on_cpu.h");
  return text;
}

std::string first_missing(std::string_view text) {
  for (std::size_t i = text.find("ptx_"); i != std::string::npos; i = text.find("ptx_", i + 1)) {
    std::size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string name(text.substr(i, end - i));
    if (header().find(" " + name + "(") == std::string::npos) return name;
  }
  return "";
}

}  // namespace

std::string with_calls(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (!text.substr(i).starts_with("asm") || (i > 0 && is_word(text[i - 1])) || is_word(text[i + 3])) {
      out += text[i++];
      continue;
    }
    const std::size_t open = text.find('(', i), end = closing(text, open);
    out += call_of(text.substr(open + 1, end - open - 2));
    i = end;
  }
  return out;
}

std::string why_not() {
#if !defined(__x86_64__) && !defined(__aarch64__)
  return "there is no switch of stacks for this processor";
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return "sanitizers do not follow fibers";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
  return "sanitizers do not follow fibers";
#endif
#endif
  if (access(TENON_COMPILER, X_OK) != 0) return fmt::format("the compiler {} is not there", TENON_COMPILER);
  return "";
}

std::string what_is_missing(const Kernel& kernel) {
  KernelTarget target;
  target.dialect = Dialect::cuda;
  const Kernel* const one[] = {&kernel};
  return first_missing(with_calls(module_text(target, one)));
}

KernelLibrary::KernelLibrary(const KernelTarget& target, std::span<const Kernel* const> kernels) {
  const test::TemporaryFolder folder;
  std::string text = with_calls(module_text(target, kernels));
  // Unrolled, it takes long to compile.
  for (const char* unrolled : {"_Pragma(\"unroll\")", "_Pragma(#text)"}) replace_all(text, unrolled, "");
  for (const char* dynamic :
       {"extern __shared__ __align__(16) unsigned char memory[];", "extern __shared__ unsigned char memory[];"})
    replace_all(text, dynamic, "unsigned char* const memory = (unsigned char*)tenon_runner->dynamic;");
  for (const Kernel* kernel : kernels) {
    // Its local memory has a section, so that it can be filled before every launch.
    const std::string head = fmt::format(") {}(", kernel->entry);
    text.insert(
        text.rfind("KERNEL", text.find(head)),
        fmt::format("#undef __shared__\n#define __shared__ static __attribute__((section(\"local_of_{}\")))\n", kernel->entry));
    text += fmt::format("TENON_RUN({})\n", kernel->entry);
  }
  const std::string source = folder / "kernels.cpp", library = folder / "kernels.so", log = folder / "log";
  std::ofstream(source) << "#include \"emulated/cuda_on_cpu.h\"\n" << text;
  const std::string command = fmt::format(
      "{} -std=c++17 -O1 -w -shared -fPIC -fvisibility=hidden -fno-strict-aliasing -ffp-contract=off -march=native "
      "-fsanitize=bounds,alignment,integer-divide-by-zero -fsanitize-undefined-trap-on-error -I{} -o {} {} > {} 2>&1",
      TENON_COMPILER, TENON_SOURCE_DIR "/tests", library, source, log);
  if (std::system(command.c_str()) != 0)
    throw Error(ErrorCode::internal, fmt::format("kernels do not compile: {}", text_of(log).substr(0, 4000)));
  handle_ = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle_) throw Error(ErrorCode::internal, dlerror());
  for (const Kernel* kernel : kernels) {
    CompiledKernel& found = kernels_[kernel->entry];
    found.run = reinterpret_cast<decltype(found.run)>(dlsym(handle_, ("run_" + kernel->entry).c_str()));
    found.local = static_cast<char* const*>(dlsym(handle_, ("local_" + kernel->entry).c_str()));
  }
}

KernelLibrary::~KernelLibrary() {
  if (handle_) dlclose(handle_);
}

void KernelLibrary::set_runner(Runner& runner) { *static_cast<Runner**>(dlsym(handle_, "tenon_runner")) = &runner; }

}  // namespace tenon::emulated

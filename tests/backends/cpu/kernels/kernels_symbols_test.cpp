// The objects of the kernels, read as ELF files: a weak symbol in one of them could replace the same function, compiled for the
// baseline, everywhere in the program, and with it bring AVX-512 to CPUs that have none.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace {

std::vector<std::string> object_files() {
  // kernels.cmake writes the list into the build folder, where this program is.
  std::ifstream list(std::filesystem::read_symlink("/proc/self/exe").parent_path() / "cpu_kernel_objects.txt");
  std::vector<std::string> files;
  for (std::string line; std::getline(list, line);)
    if (!line.empty()) files.push_back(line);
  return files;
}

template <class T>
T read_at(const std::vector<char>& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// Symbols defined in the file that the linker merges with those of other files.
std::vector<std::string> shared_symbols(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
  if (bytes.size() < sizeof(Elf64_Ehdr)) return {"cannot read " + file};
  const auto header = read_at<Elf64_Ehdr>(bytes, 0);
  std::vector<std::string> found;
  for (int s = 0; s < header.e_shnum; ++s) {
    const auto section = read_at<Elf64_Shdr>(bytes, header.e_shoff + std::size_t(s) * header.e_shentsize);
    if (section.sh_type != SHT_SYMTAB) continue;
    const auto names = read_at<Elf64_Shdr>(bytes, header.e_shoff + std::size_t(section.sh_link) * header.e_shentsize);
    for (std::size_t at = 0; at < section.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = read_at<Elf64_Sym>(bytes, section.sh_offset + at);
      const int binding = ELF64_ST_BIND(symbol.st_info);
      const std::string name = bytes.data() + names.sh_offset + symbol.st_name;
      // The address of a library's function, the same wherever it is kept: sanitizers bring one.
      if (name.starts_with("DW.ref.")) continue;
      if (symbol.st_shndx != SHN_UNDEF && (binding == STB_WEAK || binding == STB_GNU_UNIQUE)) found.push_back(name);
    }
  }
  return found;
}

TEST(KernelObjects, ShareNoFunctionWithOtherObjects) {
  const std::vector<std::string> files = object_files();
  if (files.empty()) GTEST_SKIP() << "not run from the build folder";
  for (const std::string& file : files)
    for (const std::string& symbol : shared_symbols(file)) ADD_FAILURE() << symbol << " in " << file;
}

}  // namespace

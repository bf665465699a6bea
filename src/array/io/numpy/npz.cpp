#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#ifdef TENON_HAS_ZLIB
#include <zlib.h>
#endif

#include "array/io/byte_source.h"
#include "array/io/numpy/crc32.h"
#include "array/io/numpy/npz.h"
#include "base/text/printable.h"
#include "tenon/array/io.h"
#include "tenon/error.h"

namespace tenon {
namespace {

constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50;
constexpr std::uint32_t kEscape32 = 0xffffffff;
constexpr std::size_t kMaxEntries = 10'000, kMaxName = 1024;
constexpr std::uint64_t kEndBytes = 22, kLongestComment = 0xffff;

[[noreturn]] void refuse(const ByteSource& source, const std::string& why, std::string hint = {}) {
  throw Error(ErrorCode::invalid_argument, fmt::format("{}: {}", source.label(), why), std::move(hint));
}

template <class T>
T number_at(std::span<const std::byte> bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

struct Entry {
  std::string name;
  int method = 0;  // 0: stored, 8: deflated
  std::uint32_t crc = 0;
  std::uint64_t packed_bytes = 0, bytes = 0, header = 0;
};

std::vector<std::byte> read_part(const ByteSource& source, std::uint64_t at, std::uint64_t size) {
  if (at > source.size() || size > source.size() - at) refuse(source, "the archive is cut short");
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  source.read(at, bytes);
  return bytes;
}

struct Directory {
  std::uint64_t entries = 0, at = 0, bytes = 0;
};

Directory find_directory(const ByteSource& source) {
  if (source.size() < kEndBytes) refuse(source, "this is not a zip archive");
  const std::uint64_t tail = std::min(source.size(), kEndBytes + kLongestComment + 20);
  const std::vector<std::byte> end = read_part(source, source.size() - tail, tail);
  for (std::size_t at = end.size() - kEndBytes + 1; at-- > 0;) {
    if (number_at<std::uint32_t>(end, at) != kEnd) continue;
    Directory found{number_at<std::uint16_t>(end, at + 10), number_at<std::uint32_t>(end, at + 16),
                    number_at<std::uint32_t>(end, at + 12)};
    // Archives of more than 4 GiB have a second end record, which a locator of 20 bytes before this one points to.
    if (found.at == kEscape32 && at >= 20) {
      const auto place = number_at<std::uint64_t>(end, at - 12);
      const std::vector<std::byte> wide = read_part(source, place, 56);
      if (number_at<std::uint32_t>(wide, 0) != kEnd64) refuse(source, "the end of the archive is damaged");
      found = {number_at<std::uint64_t>(wide, 32), number_at<std::uint64_t>(wide, 48), number_at<std::uint64_t>(wide, 40)};
    }
    return found;
  }
  refuse(source, "this is not a zip archive, or it is cut short");
}

// Sizes of 4 GiB and more are in an extra field.
void read_wide_sizes(std::span<const std::byte> extra, Entry& entry) {
  for (std::size_t at = 0; at + 4 <= extra.size();) {
    const auto tag = number_at<std::uint16_t>(extra, at);
    const std::size_t size = number_at<std::uint16_t>(extra, at + 2), end = at + 4 + size;
    if (end > extra.size()) return;
    std::size_t next = at + 4;
    if (tag == 1)
      for (std::uint64_t* field : {&entry.bytes, &entry.packed_bytes, &entry.header})
        if (*field == kEscape32 && next + 8 <= end) {
          *field = number_at<std::uint64_t>(extra, next);
          next += 8;
        }
    at = end;
  }
}

std::vector<Entry> read_entries(const ByteSource& source) {
  const Directory directory = find_directory(source);
  if (directory.entries > kMaxEntries)
    refuse(source, fmt::format("the archive has {} files, more than the limit of {}", directory.entries, kMaxEntries));
  if (directory.bytes > (64u << 20)) refuse(source, "the list of the archive's files is too long");
  const std::vector<std::byte> list = read_part(source, directory.at, directory.bytes);
  std::vector<Entry> entries;
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    if (at + 46 > list.size() || number_at<std::uint32_t>(list, at) != kCentral) refuse(source, "the list of files is damaged");
    const std::span<const std::byte> record = std::span(list).subspan(at);
    const std::size_t name = number_at<std::uint16_t>(record, 28), extra = number_at<std::uint16_t>(record, 30),
                      comment = number_at<std::uint16_t>(record, 32);
    if (46 + name + extra + comment > record.size() || name > kMaxName) refuse(source, "the list of files is damaged");
    Entry entry;
    entry.method = number_at<std::uint16_t>(record, 10);
    entry.crc = number_at<std::uint32_t>(record, 16);
    entry.packed_bytes = number_at<std::uint32_t>(record, 20);
    entry.bytes = number_at<std::uint32_t>(record, 24);
    entry.header = number_at<std::uint32_t>(record, 42);
    entry.name.assign(reinterpret_cast<const char*>(record.data()) + 46, name);
    read_wide_sizes(record.subspan(46 + name, extra), entry);
    if ((number_at<std::uint16_t>(record, 8) & 1) != 0) refuse(source, fmt::format("'{}' is encrypted", printable(entry.name)));
    entries.push_back(std::move(entry));
    at += 46 + name + extra + comment;
  }
  return entries;
}

std::vector<std::byte> inflated(const ByteSource& source, const Entry& entry, const std::vector<std::byte>& packed) {
#ifdef TENON_HAS_ZLIB
  // Deflate packs to at best a thousandth: a file that claims more is a bomb.
  if (entry.bytes / 1100 > entry.packed_bytes)
    refuse(source, fmt::format("'{}' claims an impossible size", printable(entry.name)));
  std::vector<std::byte> bytes(static_cast<std::size_t>(entry.bytes));
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw Error(ErrorCode::resource_exhausted, "out of memory");
  std::uint64_t in = 0, out = 0;
  int state = Z_OK;
  while (state == Z_OK) {
    const auto piece = static_cast<uInt>(std::min<std::uint64_t>(1u << 30, packed.size() - in));
    const auto room = static_cast<uInt>(std::min<std::uint64_t>(1u << 30, bytes.size() - out));
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data() + in));
    stream.avail_in = piece;
    stream.next_out = reinterpret_cast<Bytef*>(bytes.data() + out);
    stream.avail_out = room;
    state = inflate(&stream, Z_NO_FLUSH);
    in += piece - stream.avail_in;
    out += room - stream.avail_out;
    if (state == Z_OK && piece == stream.avail_in && room == stream.avail_out) break;
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END || out != bytes.size()) refuse(source, fmt::format("'{}' is damaged", printable(entry.name)));
  return bytes;
#else
  static_cast<void>(packed);
  refuse(source, fmt::format("'{}' is compressed, and this build has no zlib", printable(entry.name)),
         "use numpy.savez without compression");
#endif
}

std::vector<std::byte> contents_of(const ByteSource& source, const Entry& entry) {
  const std::vector<std::byte> local = read_part(source, entry.header, 30);
  if (number_at<std::uint32_t>(local, 0) != kLocal) refuse(source, fmt::format("'{}' is damaged", printable(entry.name)));
  const std::uint64_t data = entry.header + 30 + number_at<std::uint16_t>(local, 26) + number_at<std::uint16_t>(local, 28);
  if (entry.method != 0 && entry.method != 8)
    refuse(source, fmt::format("'{}' is compressed with method {}", printable(entry.name), entry.method), "use numpy.savez");
  if (entry.method == 0 && entry.packed_bytes != entry.bytes)
    refuse(source, fmt::format("'{}' is damaged", printable(entry.name)));
  std::vector<std::byte> bytes = read_part(source, data, entry.packed_bytes);
  if (entry.method == 8) bytes = inflated(source, entry, bytes);
  if (crc32_of(bytes) != entry.crc) refuse(source, fmt::format("'{}' is damaged: its checksum differs", printable(entry.name)));
  return bytes;
}

ArrayFile read_npz(const ByteSource& source) {
  ArrayFile file;
  for (const Entry& entry : read_entries(source)) {
    if (!entry.name.ends_with(".npy"))
      refuse(source, fmt::format("'{}' is not a .npy file", printable(entry.name)), "numpy.savez writes archives of .npy files");
    std::string name = entry.name.substr(0, entry.name.size() - 4);
    try {
      file.arrays.insert_or_assign(std::move(name), parse_npy(contents_of(source, entry)));
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}: {}", printable(entry.name), error.what()), error.hint());
    }
  }
  return file;
}

template <class T>
void put(std::vector<std::byte>& out, T value) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

void put_sizes(std::vector<std::byte>& out, std::uint32_t crc, std::size_t bytes, std::size_t name, std::uint16_t extra) {
  put<std::uint32_t>(out, crc);
  put<std::uint32_t>(out, static_cast<std::uint32_t>(bytes));
  put<std::uint32_t>(out, static_cast<std::uint32_t>(bytes));
  put<std::uint16_t>(out, static_cast<std::uint16_t>(name));
  put<std::uint16_t>(out, extra);
}

void put_text(std::vector<std::byte>& out, const std::string& text) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
  out.insert(out.end(), bytes, bytes + text.size());
}

}  // namespace

NpzContents npz_contents(std::span<const std::byte> bytes) {
  NpzContents contents;
  for (const Entry& entry : read_entries(MemorySource(bytes, "npz data"))) {
    ++contents.files;
    contents.bytes += entry.bytes;
  }
  return contents;
}

ArrayFile load_npz(const std::filesystem::path& file) { return read_npz(*open_source(file)); }
ArrayFile parse_npz(std::span<const std::byte> bytes) { return read_npz(MemorySource(bytes, "npz data")); }

std::vector<std::byte> format_npz(const ArrayFile& contents) {
  std::vector<std::byte> out, directory;
  constexpr std::uint16_t kVersion = 20, kFirstOfJanuary = 0x21;
  for (const auto& [name, array] : contents.arrays) {
    const std::string file = (name.empty() ? "arr_0" : name) + ".npy";
    const std::vector<std::byte> bytes = format_npy(array);
    const std::size_t header = out.size();
    if (bytes.size() >= kEscape32 || header >= kEscape32)
      throw Error(ErrorCode::invalid_argument, "a .npz file of 4 GiB and more is not written", "use safetensors");
    const std::uint32_t crc = crc32_of(bytes);
    put(out, kLocal);
    for (const std::uint16_t field : {kVersion, std::uint16_t{0}, std::uint16_t{0}, std::uint16_t{0}, kFirstOfJanuary})
      put(out, field);
    put_sizes(out, crc, bytes.size(), file.size(), 0);
    put_text(out, file);
    out.insert(out.end(), bytes.begin(), bytes.end());
    put(directory, kCentral);
    for (const std::uint16_t field : {kVersion, kVersion, std::uint16_t{0}, std::uint16_t{0}, std::uint16_t{0}, kFirstOfJanuary})
      put(directory, field);
    put_sizes(directory, crc, bytes.size(), file.size(), 0);
    for (int i = 0; i < 3; ++i) put<std::uint16_t>(directory, 0);
    put<std::uint32_t>(directory, 0);
    put<std::uint32_t>(directory, static_cast<std::uint32_t>(header));
    put_text(directory, file);
  }
  const std::size_t at = out.size();
  out.insert(out.end(), directory.begin(), directory.end());
  put(out, kEnd);
  put<std::uint32_t>(out, 0);
  const auto count = static_cast<std::uint16_t>(contents.arrays.size());
  put(out, count);
  put(out, count);
  put<std::uint32_t>(out, static_cast<std::uint32_t>(directory.size()));
  put<std::uint32_t>(out, static_cast<std::uint32_t>(at));
  put<std::uint16_t>(out, 0);
  return out;
}

void save_npz(const std::filesystem::path& file, const ArrayFile& contents) {
  const std::vector<std::byte> bytes = format_npz(contents);
  const std::span<const std::byte> parts[] = {bytes};
  write_file(file, parts);
}

}  // namespace tenon

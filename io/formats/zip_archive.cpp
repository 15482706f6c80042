#include "io/formats/zip_archive.h"

#include <algorithm>

#include "base/text.h"

namespace zoo {
namespace {

constexpr size_t kEndSize = 22, kLocatorSize = 20, kWideEndSize = 56, kEntrySize = 46, kHeaderSize = 30;
constexpr uint64_t kMostDirectoryBytes = uint64_t{64} << 20;
constexpr size_t kMostEntries = 1 << 18;
constexpr uint64_t kInWideField = 0xFFFFFFFF;  // the number is in the ZIP64 field

struct Directory {
  uint64_t begin = 0, size = 0, n_entries = 0;
};

Directory find_directory(const FileBytes& file) {
  constexpr size_t longest_comment = 0xFFFF;
  const auto tail_size = static_cast<size_t>(std::min<uint64_t>(file.size(), kEndSize + longest_comment));
  const uint64_t tail_begin = file.size() - tail_size;
  const auto tail = file.read(tail_begin, tail_size);
  const size_t end = tail.rfind(std::string_view("PK\x05\x06"));
  if (end == tail.npos || tail.size() - end < kEndSize)
    file.fail("damaged: a ZIP archive without its directory at the end; was it cut?");
  Directory directory{.begin = little_endian_number(tail, end + 16, 4),
                      .size = little_endian_number(tail, end + 12, 4),
                      .n_entries = little_endian_number(tail, end + 10, 2)};
  const uint64_t locator = tail_begin + end - kLocatorSize;
  if (tail_begin + end < kLocatorSize) return directory;
  const auto where = file.read(locator, kLocatorSize);
  if (!where.starts_with("PK\x06\x07")) return directory;
  const auto wide = file.read(little_endian_number(where, 8, 8), kWideEndSize);
  if (!wide.starts_with("PK\x06\x06")) file.fail("damaged: no ZIP64 directory where there should be one");
  return {.begin = little_endian_number(wide, 48, 8),
          .size = little_endian_number(wide, 40, 8),
          .n_entries = little_endian_number(wide, 32, 8)};
}

}  // namespace

bool begins_as_zip(const FileBytes& file) {
  constexpr std::string_view magic = "PK\x03\x04";
  return file.size() >= magic.size() && file.read(0, magic.size()) == magic;
}

ZipArchive::ZipArchive(const FileBytes& file) : file_(file) {
  const auto directory = find_directory(file);
  if (!file.has(directory.begin, directory.size)) file.fail("damaged: its directory is not within the file");
  if (directory.size > kMostDirectoryBytes || directory.n_entries > kMostEntries)
    file.fail("its directory has {} entries in {} bytes; at most {} in {} are supported", directory.n_entries,
              directory.size, kMostEntries, kMostDirectoryBytes);
  const auto bytes = file.read(directory.begin, static_cast<size_t>(directory.size));
  std::string_view rest = bytes;
  for (uint64_t i = 0; i < directory.n_entries; ++i) {
    if (rest.size() < kEntrySize || !rest.starts_with("PK\x01\x02"))
      file.fail("damaged: its directory has {} entries, not {}", i, directory.n_entries);
    const size_t n_name = little_endian_number(rest, 28, 2), n_extra = little_endian_number(rest, 30, 2),
                 n_comment = little_endian_number(rest, 32, 2);
    if (rest.size() - kEntrySize < n_name + n_extra + n_comment)
      file.fail("damaged: entry {} of its directory goes past the end", i);
    add_entry(rest, std::string(rest.substr(kEntrySize, n_name)), rest.substr(kEntrySize + n_name, n_extra));
    rest.remove_prefix(kEntrySize + n_name + n_extra + n_comment);
  }
}

void ZipArchive::add_entry(std::string_view record, std::string name, std::string_view extra) {
  constexpr uint64_t encrypted = 1;
  const bool is_stored =
      little_endian_number(record, 10, 2) == 0 && (little_endian_number(record, 8, 2) & encrypted) == 0;
  uint64_t stored_size = little_endian_number(record, 20, 4), size = little_endian_number(record, 24, 4),
           header = little_endian_number(record, 42, 4);
  // Fields of the record that are too small for their numbers have them here, one after the other.
  while (extra.size() >= 4) {
    const auto id = little_endian_number(extra, 0, 2);
    const auto length = std::min<size_t>(little_endian_number(extra, 2, 2), extra.size() - 4);
    std::string_view field = extra.substr(4, length);
    extra.remove_prefix(4 + length);
    if (id != 1) continue;
    for (uint64_t* number : {&size, &stored_size, &header}) {
      if (*number != kInWideField || field.size() < 8) continue;
      *number = little_endian_number(field, 0, 8);
      field.remove_prefix(8);
    }
  }
  if (is_stored && stored_size != size)
    file_.fail("damaged: the sizes of '{}' in its directory differ", excerpt(name));
  const Entry entry{.header = header, .size = size, .is_stored = is_stored};
  if (const auto [at, is_new] = entries_.emplace(std::move(name), entry); !is_new)
    file_.fail("damaged: it has '{}' twice", excerpt(at->first));
}

ZipArchive::Range ZipArchive::member(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) file_.fail("damaged: it has no '{}'", excerpt(name));
  const auto& entry = found->second;
  if (!entry.is_stored)
    file_.fail(
        "'{}' in it is compressed or encrypted, which torch.save() never does: unpack it and save again",
        excerpt(name));
  const auto header = file_.read(entry.header, kHeaderSize);
  if (!header.starts_with("PK\x03\x04")) file_.fail("damaged: '{}' is not where it should be", excerpt(name));
  const uint64_t begin =
      entry.header + kHeaderSize + little_endian_number(header, 26, 2) + little_endian_number(header, 28, 2);
  if (!file_.has(begin, entry.size))
    file_.fail("damaged: '{}' goes past the end; was it cut?", excerpt(name));
  return {.begin = begin, .size = entry.size};
}

}  // namespace zoo

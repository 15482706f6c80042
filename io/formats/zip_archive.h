#pragma once
// A ZIP archive whose members are stored as they are, as torch.save() writes it (PKWARE's APPNOTE 6.3, with
// ZIP64).

#include <cstdint>
#include <map>
#include <string>

#include "io/formats/file_bytes.h"

namespace zoo {

/// Opening reads the directory at the end of the file, and checks it against the file's size.
class ZipArchive {
 public:
  /// `file` must outlive it. Throws CheckpointError: not an archive, damaged, a member is named twice.
  explicit ZipArchive(const FileBytes& file);

  struct Range {
    uint64_t begin, size;  // bytes in the file
  };
  /// Where the bytes of a member are. Throws CheckpointError: there is no such member, it is compressed or
  /// encrypted, or damaged.
  Range member(const std::string& name) const;
  bool contains(const std::string& name) const { return entries_.contains(name); }

  struct Entry {
    uint64_t header, size;
    bool is_stored;
  };
  const std::map<std::string, Entry>& entries() const { return entries_; }

 private:
  void add_entry(std::string_view record, std::string name, std::string_view extra);

  const FileBytes& file_;
  std::map<std::string, Entry> entries_;
};

/// Whether a file begins as a ZIP archive does.
bool begins_as_zip(const FileBytes& file);

}  // namespace zoo

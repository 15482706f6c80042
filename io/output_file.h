#pragma once
// A file for writing that reports every failure. std::ofstream cannot flush to the disk and gives no reasons
// for failures.

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "io/open_file.h"

namespace zoo {

/// Every member throws SystemError "cannot write 'path': reason".
class OutputFile {
 public:
  enum class Mode {
    kReplace,  // empties an existing file
    kCreate,   // fails on an existing file
    kAppend,   // writes after the end of an existing file
  };

  /// Throws CheckpointError, too, where the path leads to what is not to be followed (open_for_writing()).
  OutputFile(std::filesystem::path path, Mode mode, Follow follow = Follow::nothing);

  /// Writes all of `bytes`, unbuffered.
  void write(std::string_view bytes);
  /// Removes what comes after the first `size` bytes, if there is more.
  void truncate(uint64_t size);
  /// Waits until everything is on the disk.
  void sync();
  /// Some file systems report a full disk only here.
  void close();
  /// For a process that is to write into the file.
  int descriptor() const { return file_.get(); }

 private:
  std::filesystem::path path_;
  Descriptor file_;
};

/// Waits until a file, or the entries of a directory, are on the disk. Throws SystemError.
void sync_path(const std::filesystem::path& path);

}  // namespace zoo

#pragma once
// A file for writing that reports every failure. std::ofstream cannot flush to the disk and gives no reasons
// for failures.

#include <filesystem>
#include <string_view>

namespace zoo {

/// Every member throws SystemError "cannot write 'path': reason".
class OutputFile {
 public:
  enum class Mode {
    kReplace,  // empties an existing file
    kCreate,   // fails on an existing file
    kAppend,   // writes after the end of an existing file
  };

  OutputFile(std::filesystem::path path, Mode mode);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Writes all of `bytes`, unbuffered.
  void write(std::string_view bytes);
  /// Waits until everything is on the disk.
  void sync();
  /// Some file systems report a full disk only here.
  void close();

 private:
  std::filesystem::path path_;
  int fd_ = -1;
};

/// Waits until a file, or the entries of a directory, are on the disk. Throws SystemError.
void sync_path(const std::filesystem::path& path);

}  // namespace zoo

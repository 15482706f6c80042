#pragma once
// Images and recordings that a subcommand reads from its arguments or from standard input.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace zoo {

/// What files hold.
enum class FileKind { images, recordings };

/// Declares --image or --audio.
void add_files(CLI::App& command, FileKind kind, std::vector<std::filesystem::path>& files);

/// The files of --image or --audio, with those of their kind in its directories and below them in the order
/// of their paths; then the paths that the files of --input list, one a line. Without both, the paths on
/// standard input. At least one. Says on stderr how many files of other types its directories have. Throws
/// DataError.
std::vector<std::string> input_files(FileKind kind, const std::vector<std::filesystem::path>& files,
                                     const std::vector<std::filesystem::path>& lists);

/// What is done with a file that cannot be read.
enum class Unreadable { skip, fail };

/// Collects the files that cannot be read, and tells about them on stderr.
class UnreadableFiles {
 public:
  UnreadableFiles(FileKind kind, Unreadable what, int64_t n_inputs)
      : kind_(kind), what_(what), n_inputs_(n_inputs) {}
  /// For PredictOptions::on_unreadable; null where they fail, or if there is one input only.
  std::function<void(const std::string& problem)> listener();
  /// Says which were skipped, and why. Throws DataError if no file could be read.
  void finish() const;
  bool any() const { return !problems_.empty(); }

 private:
  FileKind kind_;
  Unreadable what_;
  int64_t n_inputs_;
  std::vector<std::string> problems_;
};

}  // namespace zoo

#pragma once
// Images that a subcommand reads from its arguments or from standard input.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace zoo {

/// Declares --image.
void add_images(CLI::App& command, std::vector<std::filesystem::path>& images);

/// The files of --image, with those in its directories and below them in the order of their paths; then the
/// paths that the files of --input list, one a line. Without both, the paths on standard input. At least one.
/// Says on stderr how many files of other types its directories have. Throws DataError.
std::vector<std::string> image_files(const std::vector<std::filesystem::path>& images,
                                     const std::vector<std::filesystem::path>& lists);

/// What is done with an image that cannot be read.
enum class Unreadable { skip, fail };

/// Collects the images that cannot be read, and tells about them on stderr.
class UnreadableImages {
 public:
  UnreadableImages(Unreadable what, int64_t n_inputs) : what_(what), n_inputs_(n_inputs) {}
  /// For PredictOptions::on_unreadable; null where they fail, or if there is one input only.
  std::function<void(const std::string& problem)> listener();
  /// Says which were skipped, and why. Throws DataError if no image could be read.
  void finish() const;
  bool any() const { return !problems_.empty(); }

 private:
  Unreadable what_;
  int64_t n_inputs_;
  std::vector<std::string> problems_;
};

}  // namespace zoo

#pragma once
// Images that a subcommand reads from its arguments or from standard input.

#include <filesystem>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace zoo {

/// Declares --image.
void add_images(CLI::App& command, std::vector<std::filesystem::path>& images);

/// The files of --image, with those in its directories in the order of their names; then the paths that the
/// files of --input list, one a line. Without both, the paths on standard input. At least one. Throws
/// DataError.
std::vector<std::string> image_files(const std::vector<std::filesystem::path>& images,
                                     const std::vector<std::filesystem::path>& lists);

}  // namespace zoo

#pragma once
// Directories of pictures that are divided into parts for training, validation and test.

#include <filesystem>
#include <optional>

namespace zoo {

/// Directories with a subdirectory for each class.
struct PictureParts {
  std::filesystem::path train;
  std::optional<std::filesystem::path> valid, test;
};

/// The parts of a directory whose subdirectories are called train (training), val (valid, validation, dev)
/// and test (testing), whatever the case of their letters. Nothing for a directory of classes, which may have
/// such names beside others. Throws DataError: a part is missing, twice there, without classes, or beside
/// something else.
std::optional<PictureParts> find_picture_parts(const std::filesystem::path& directory);

}  // namespace zoo

#pragma once
// What is fuzzed: each target reads one kind of file as the program does.

#include <functional>
#include <string>
#include <vector>

#include "tests/fuzz/mutation.h"
#include "tests/support/temp_dir.h"

namespace zoo::fuzz {

struct Target {
  std::string name;
  std::string doc;
  Mutate mutate;
  /// Reads an input. Throws what the library throws.
  std::function<void(const std::string& input)> read;
  /// Seeds besides the files of tests/fuzz/seeds/NAME.
  Seeds more_seeds = {};
};

/// `work` is a directory for the files that the targets read; `sources` is the repository.
std::vector<Target> file_targets(const testing::TempDir& work, const std::filesystem::path& sources);
/// Files of tokenizers of the Hub, joined.
Seeds hub_seeds();
std::vector<Target> template_targets();
std::vector<Target> constraint_targets();
std::vector<Target> request_targets();
std::vector<Target> run_targets(const testing::TempDir& work);
std::vector<Target> gguf_targets(const testing::TempDir& work);
std::vector<Target> hub_targets(const testing::TempDir& work, const std::filesystem::path& sources);

}  // namespace zoo::fuzz

#pragma once
// Texts that a subcommand reads from its arguments, from files or from standard input.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "data/data_config.h"

namespace zoo {

struct TextArguments {
  std::vector<std::string> texts;
  std::vector<std::filesystem::path> files;

  bool names_texts() const { return !texts.empty() || !files.empty(); }
};

/// Declares --text and --input.
void add_texts(CLI::App& command, TextArguments& arguments);

/// The texts of --text, then those of the files (see zoo::read_texts()); without both, the lines of standard
/// input. At least one. Throws DataError.
std::vector<std::string> read_texts(const TextArguments& arguments, const DataConfig& config);

/// The most that a person types as one text.
inline constexpr size_t kMostTypedBytes = 1 << 20;
/// A line that a person has typed, as one text, checked as those of a file. Throws DataError, also for a
/// blank line.
std::vector<std::string> typed_text(std::string line);

/// A function that shows on stderr how many inputs are done; `unit` is what they are, such as "texts". It
/// shows nothing if all are done at the first call.
std::function<void(int64_t done, int64_t all)> progress_over(std::string_view title, std::string_view unit);

/// Says on stderr that `n_cut` of `n` texts were cut, if there are any.
void note_cut_texts(int64_t n_cut, int64_t n, const DataConfig& config);

}  // namespace zoo

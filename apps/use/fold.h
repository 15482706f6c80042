#pragma once
// zoo predict of a run that folds proteins.

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "apps/console/texts.h"
#include "checkpoints/run.h"

namespace zoo {

/// The form of files of structures.
enum class StructureFormat { pdb, cif };
constexpr auto config_names(StructureFormat) { return std::to_array<std::string_view>({"pdb", "cif"}); }

struct FoldArguments {
  TextArguments texts;                       // sequences, and files that read_sequences() reads
  std::optional<std::filesystem::path> out;  // a directory; nothing: no files are written
  std::optional<StructureFormat> format;     // default: pdb
  /// A structure; each chain is compared with the one in it that is most like it.
  std::optional<std::filesystem::path> truth;
  std::optional<int64_t> recycles;   // passes after the first one; default: as configured
  bool json = false, pages = false;  // pages: also write NAME.html of each chain
};

/// Folds the sequences, prints a line for each, and writes their structures. Throws DataError, UsageError.
void fold_sequences(const FoldArguments& arguments, const Run& run);

}  // namespace zoo

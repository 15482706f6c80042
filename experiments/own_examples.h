#pragma once
// A configuration for examples with labels: what `zoo train table.tsv` and `zoo train pictures/` train.

#include <filesystem>
#include <optional>
#include <string>

#include "data/tables.h"
#include "experiments/own_text.h"

namespace zoo {

/// Whether `path` is a directory that is no run.
bool is_own_pictures(const std::filesystem::path& path);

/// A table whose rows are texts without labels, or conversations.
struct OwnRows {
  bool conversations = false;
  std::string text_column = {};

  bool operator==(const OwnRows&) const = default;
};

/// The kind of rows in a file of JSON lines or Parquet, which is `table`. Nothing for a table of texts and
/// labels, and for other files. Throws DataError.
std::optional<OwnRows> own_rows(Table& table, const std::filesystem::path& file);

/// A recipe for one table, which is `table`, with a column of texts or pictures and one of labels
/// (own_labels.h), or for one directory with a subdirectory of pictures for each class, or with parts for
/// training and test: a small encoder, or a small vision transformer. Its experiment is not set yet. nullopt
/// for other files. Throws DataError: the columns are not clear, there are no pictures.
std::optional<TextRecipe> recipe_for_examples(const std::filesystem::path& file, Table* table);

}  // namespace zoo

#pragma once
// A configuration for examples with labels: what `zoo train table.tsv` and `zoo train pictures/` train.

#include <filesystem>
#include <optional>
#include <vector>

#include "experiments/own_text.h"

namespace zoo {

/// Whether `path` is a directory that is no run.
bool is_own_pictures(const std::filesystem::path& path);

/// A recipe for one table with a column of texts and one of labels, or for one directory with a subdirectory
/// of pictures for each class: a small encoder, or a small vision transformer. Its experiment is not set yet.
/// nullopt for other files. Throws DataError: the columns are not clear, there are no pictures.
std::optional<TextRecipe> recipe_for_examples(const std::vector<std::filesystem::path>& files);

}  // namespace zoo

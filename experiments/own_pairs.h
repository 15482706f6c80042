#pragma once
// A configuration for two texts whose lines belong together: what `zoo train pairs.de pairs.en` trains.

#include <filesystem>
#include <optional>
#include <vector>

#include "experiments/own_text.h"

namespace zoo {

/// A translator for two files NAME.x and NAME.y, where x and y are no usual endings of texts: from the lines
/// of the first to those of the second. Its experiment is not set yet. nullopt for other files. Throws
/// DataError: the files have unequal numbers of lines, or too few.
std::optional<TextRecipe> recipe_for_pairs(const std::vector<std::filesystem::path>& files);

}  // namespace zoo

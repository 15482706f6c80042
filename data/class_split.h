#pragma once
// Training and validation rows of a table in which each row has a class.

#include <span>
#include <string>
#include <vector>

#include "data/data_config.h"
#include "data/splits.h"

namespace zoo {

/// A row as far as it decides to which split it belongs.
struct RowIdentity {
  std::string text;  // all that the model reads
  std::string label;
};

/// Whether each row belongs to `split`, if train and valid share files (is_shared()); else all do. A hash of
/// the text decides: about the share valid_fraction of each class is for valid, whatever the order of the
/// rows, and a row stays where it is when others are added. Equal texts are on the same side, unless most
/// rows repeat others. A class has at least one row for train, unless most rows have a class of their own.
std::vector<bool> rows_of_split(const DataConfig& config, Split split, std::span<const RowIdentity> rows);

}  // namespace zoo

#pragma once
// The three splits of a corpus, and the files that they are read from.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "data/data_config.h"

namespace zoo {

enum class Split { train, valid, test };
constexpr auto config_names(Split) { return std::to_array<std::string_view>({"train", "valid", "test"}); }

/// The files to read for `split`: those of the training data if `valid` names none. Throws DataError if there
/// are none.
const std::vector<ConfigPath>& files_to_read(const DataConfig& config, Split split);

/// Whether train and valid are two parts of the same files, and `split` is one of them.
bool is_shared(const DataConfig& config, Split split);

/// How many of `n` items belong to train if train and valid share files: the first int((1 -
/// valid_fraction)·n).
size_t train_part(const DataConfig& config, size_t n);

/// Keeps the rows that belong to `split`: a part if train and valid share files, else all.
template <class Row>
void keep_part(const DataConfig& config, Split split, std::vector<Row>& rows) {
  if (!is_shared(config, split)) return;
  const auto cut = rows.begin() + static_cast<std::ptrdiff_t>(train_part(config, rows.size()));
  split == Split::train ? rows.erase(cut, rows.end()) : rows.erase(rows.begin(), cut);
}

/// Throws DataError: the files of `split` have no `rows` ("documents").
[[noreturn]] void fail_empty(const DataConfig& config, Split split, std::string_view rows);

/// The numbers 0 … n - 1 in an order that depends on n alone.
std::vector<int64_t> random_order(int64_t n);

/// The examples of `split`, which is_shared(), among n, in their order: the share valid_fraction for valid,
/// the others for train. They are drawn at random, because images are often sorted by class, or take turns.
std::vector<int64_t> random_share(const DataConfig& config, Split split, int64_t n);

/// The files of `split` for error messages: "valid.txt", "a.txt, b.txt". For parallel texts, the prefixes.
std::string corpus_name(const DataConfig& config, Split split);

}  // namespace zoo

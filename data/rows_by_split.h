#pragma once
// The rows of a corpus by split. Files that train and valid share are read once.

#include <array>
#include <functional>
#include <optional>
#include <utility>

#include "data/splits.h"

namespace zoo {

/// How the rows of a split are read.
template <class Rows>
struct RowReader {
  /// All rows of the files of a split.
  std::function<Rows(Split split)> read;
  /// The part of the rows of shared files that belongs to a split. It may be empty.
  std::function<Rows(const Rows& all, Split split)> part;
  /// Throws DataError for rows of a split that cannot be used, such as none.
  std::function<void(const Rows& rows, Split split)> check;
};

/// The rows of each split of a corpus that fits into memory. A split is read when it is first asked for, and
/// kept until it is taken. If train and valid are parts of the same files, these are read for both.
///
///   auto rows = labelled_texts(config, problem);
///   learn_vocabulary(rows.of(Split::train));
///   make_batches(rows.take(Split::train));
///   make_batches(rows.take(Split::valid));  // no file is opened again
template <class Rows>
class RowsBySplit {
 public:
  RowsBySplit(const DataConfig& config, RowReader<Rows> reader)
      : shares_(is_shared(config, Split::valid)), reader_(std::move(reader)) {}

  /// Valid until take(). Throws DataError.
  const Rows& of(Split split) {
    auto& rows = at(split);
    if (!rows) read(split);
    reader_.check(*rows, split);
    return *rows;
  }
  /// The rows, which are not kept: the next call reads them again.
  Rows take(Split split) {
    of(split);
    return *std::exchange(at(split), std::nullopt);
  }

 private:
  std::optional<Rows>& at(Split split) { return rows_[static_cast<size_t>(split)]; }

  void read(Split split) {
    auto all = reader_.read(split);
    if (!shares_ || split == Split::test) {
      at(split) = std::move(all);
      return;
    }
    const auto other = split == Split::train ? Split::valid : Split::train;
    at(split) = reader_.part(all, split);
    // A split that is read once more is wanted alone.
    if (!std::exchange(has_read_both_, true)) at(other) = reader_.part(all, other);
  }

  bool shares_, has_read_both_ = false;
  RowReader<Rows> reader_;
  std::array<std::optional<Rows>, 3> rows_;  // by Split
};

}  // namespace zoo

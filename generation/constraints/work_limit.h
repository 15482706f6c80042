#pragma once

#include <algorithm>
#include <cstdint>

#include "base/error.h"

namespace zoo {

/// A bound on the work that texts of an expression take, in steps of some nanoseconds: places of an automaton
/// that are looked at, bytes that are read. Steps are counted, not timed, so that no machine refuses what
/// another one takes.
class WorkLimit {
 public:
  explicit WorkLimit(int64_t most) : most_(most), left_(most) {}
  /// Adds steps. No more than `most` are saved up.
  void grant(int64_t n) { left_ = std::min(most_, left_ + n); }
  /// Throws DataError if fewer are left.
  void spend(int64_t n) {
    left_ -= n;
    if (left_ < 0)
      throw DataError("the expression takes too much time: use smaller repetitions, or fewer alternatives");
  }

 private:
  int64_t most_, left_;
};

}  // namespace zoo

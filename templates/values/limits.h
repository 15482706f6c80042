#pragma once
// What a template may cost. Templates come with models of strangers: one that loops for ever must end with an
// error, soon and in little memory.

#include <cstddef>
#include <cstdint>

#include "base/error.h"

namespace zoo {

struct TemplateLimits {
  size_t source_bytes = size_t{256} << 10;
  /// One step is an expression, a statement, an item of a sequence, or 64 bytes of text that are read or
  /// written.
  int64_t steps = 4'000'000;
  /// Expressions and statements within each other, in the source.
  int64_t source_depth = 100;
  /// Nested expressions, statements and macro calls while a template runs.
  int64_t depth = 600;
  /// Lists and dictionaries within each other.
  int64_t value_depth = 200;
  size_t output_bytes = size_t{64} << 20;
  /// Bytes of all values that a rendering makes, freed ones included.
  size_t value_bytes = size_t{128} << 20;
  int64_t range_items = 100'000;
};

/// A template is wrong, is not supported, raised an exception, or costs more than it may. The message is one
/// line and has the line of the template.
class TemplateError : public DataError {
 public:
  using DataError::DataError;
};

namespace templates {

/// An error without its place, which the parser and the evaluator add.
class Problem : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a rendering may still spend.
class Budget {
 public:
  explicit Budget(const TemplateLimits& limits) : limits_(limits) {}

  void step(size_t n = 1) {
    steps_ += static_cast<int64_t>(n);
    if (steps_ > limits_.steps) throw Problem("the template takes too many steps");
  }
  /// Reads or compares so many bytes.
  void read(size_t bytes) { step(bytes / 64); }
  /// Makes values of so many bytes.
  void make(size_t bytes) {
    if (bytes > limits_.value_bytes || (bytes_ += bytes) > limits_.value_bytes)
      throw Problem("the template makes more text than it may");
    step(bytes / 64);
  }
  const TemplateLimits& limits() const { return limits_; }

 private:
  const TemplateLimits& limits_;
  int64_t steps_ = 0;
  size_t bytes_ = 0;
};

}  // namespace templates
}  // namespace zoo

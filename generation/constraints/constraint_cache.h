#pragma once
// Constraints that are used again: a server gets the same schema with many requests.

#include <atomic>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "generation/constraints/text_constraint.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// What a constraint of a vocabulary depends on.
struct ConstraintKey {
  enum class Form { regular_expression, json_schema, parts };
  Form form = Form::regular_expression;
  std::string text = {};
  TokenIds unused = {};  // tokens that are never allowed
  bool operator==(const ConstraintKey&) const = default;
};

/// Keeps the constraints that were asked for last. Threads may share an object.
class ConstraintCache {
 public:
  using Make = std::function<std::shared_ptr<const TextConstraint>()>;

  static constexpr int kMostMaking = 2;

  explicit ConstraintCache(size_t capacity) : capacity_(capacity) {}
  /// The constraint with this key; make() makes it if it is not kept. One is made at a time, at a low
  /// priority, because it may take a second. Throws what make() throws, and keeps nothing then; throws
  /// BusyError if kMostMaking callers make one or wait for that.
  std::shared_ptr<const TextConstraint> get(const ConstraintKey& key, const Make& make);

 private:
  struct Entry {
    ConstraintKey key;
    std::shared_ptr<const TextConstraint> constraint;
  };

  std::shared_ptr<const TextConstraint> find(const ConstraintKey& key);

  size_t capacity_;
  std::mutex making_;  // held by the caller that makes one
  std::atomic<int> n_making_ = 0;
  std::mutex mutex_;          // guards what follows
  std::list<Entry> entries_;  // the one that was used last comes first
};

}  // namespace zoo

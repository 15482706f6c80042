#pragma once
// Constraints that are used again: a server gets the same schema with many requests.

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

  explicit ConstraintCache(size_t capacity) : capacity_(capacity) {}
  /// The constraint with this key; make() makes it if it is not kept. Threads that ask for a new key at the
  /// same time may each make it. Throws what make() throws, and keeps nothing then.
  std::shared_ptr<const TextConstraint> get(const ConstraintKey& key, const Make& make);

 private:
  struct Entry {
    ConstraintKey key;
    std::shared_ptr<const TextConstraint> constraint;
  };

  std::shared_ptr<const TextConstraint> find(const ConstraintKey& key);

  size_t capacity_;
  std::mutex mutex_;          // guards what follows
  std::list<Entry> entries_;  // the one that was used last comes first
};

}  // namespace zoo

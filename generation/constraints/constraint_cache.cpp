#include "generation/constraints/constraint_cache.h"

#include <algorithm>

namespace zoo {

/// Null if there is none.
std::shared_ptr<const TextConstraint> ConstraintCache::find(const ConstraintKey& key) {
  const std::scoped_lock lock(mutex_);
  const auto found = std::ranges::find(entries_, key, &Entry::key);
  if (found == entries_.end()) return nullptr;
  entries_.splice(entries_.begin(), entries_, found);
  return entries_.front().constraint;
}

std::shared_ptr<const TextConstraint> ConstraintCache::get(const ConstraintKey& key, const Make& make) {
  if (auto kept = find(key)) return kept;
  auto made = make();  // without the lock, because it may take a second
  const std::scoped_lock lock(mutex_);
  entries_.push_front({.key = key, .constraint = made});
  if (entries_.size() > capacity_) entries_.pop_back();
  return made;
}

}  // namespace zoo

#include "generation/constraints/constraint_cache.h"

#include <algorithm>

#include "base/error.h"
#include "base/low_priority.h"

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
  const auto leave = [](std::atomic<int>* n) { --*n; };
  const std::unique_ptr<std::atomic<int>, decltype(leave)> place(&n_making_, leave);
  if (++n_making_ > kMostMaking)
    throw BusyError("other expressions and schemas are being prepared: ask again later");
  const std::scoped_lock making(making_);
  if (auto kept = find(key)) return kept;
  std::shared_ptr<const TextConstraint> made;
  run_at_low_priority([&] { made = make(); });
  const std::scoped_lock lock(mutex_);
  entries_.push_front({.key = key, .constraint = made});
  if (entries_.size() > capacity_) entries_.pop_back();
  return made;
}

}  // namespace zoo

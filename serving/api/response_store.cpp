#include "serving/api/response_store.h"

#include <algorithm>
#include <utility>

namespace zoo {

/// The lock is held. Forgets those that are too old.
ResponseStore::Place ResponseStore::place_of(const std::string& id, const std::string& owner) {
  const auto now = Clock::now();
  while (!entries_.empty() && now - entries_.front().since >= limits_.response_age) forget(entries_.begin());
  return std::ranges::find_if(entries_,
                              [&](const Entry& entry) { return entry.id == id && entry.owner == owner; });
}

void ResponseStore::forget(Place place) {
  n_bytes_ -= place->bytes();
  entries_.erase(place);
}

void ResponseStore::put(std::string id, std::string owner, StoredResponse response) {
  const std::scoped_lock lock(mutex_);
  entries_.push_back({std::move(id), std::move(owner), std::move(response), Clock::now()});
  n_bytes_ += entries_.back().bytes();
  while (!entries_.empty() && (entries_.size() > limits_.most_responses || n_bytes_ > limits_.response_bytes))
    forget(entries_.begin());
}

std::optional<StoredResponse> ResponseStore::find(const std::string& id, const std::string& owner) {
  const std::scoped_lock lock(mutex_);
  const auto place = place_of(id, owner);
  return place == entries_.end() ? std::nullopt : std::optional(place->response);
}

bool ResponseStore::erase(const std::string& id, const std::string& owner) {
  const std::scoped_lock lock(mutex_);
  const auto place = place_of(id, owner);
  const bool is_there = place != entries_.end();
  if (is_there) forget(place);
  return is_there;
}

}  // namespace zoo

#pragma once
// The responses that /v1/responses keeps, in memory: for requests that go on from them, and to be read again.

#include <chrono>
#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <string>

#include "serving/api/api_limits.h"

namespace zoo {

struct StoredResponse {
  std::string document;  // as it was sent
  std::string messages;  // a JSON list: the conversation with the answer, as templates read it
};

/// Bounded in number, bytes and age: the oldest ones are forgotten. Threads may share an object.
class ResponseStore {
 public:
  explicit ResponseStore(const ApiLimits& limits) : limits_(limits) {}

  /// owner: who may read it, such as the digest of a key.
  void put(std::string id, std::string owner, StoredResponse response);
  /// Nothing if there is none of this owner.
  std::optional<StoredResponse> find(const std::string& id, const std::string& owner);
  /// Whether there was one of this owner.
  bool erase(const std::string& id, const std::string& owner);

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::string id, owner;
    StoredResponse response;
    Clock::time_point since;
    size_t bytes() const { return response.document.size() + response.messages.size(); }
  };
  using Place = std::list<Entry>::iterator;

  Place place_of(const std::string& id, const std::string& owner);
  void forget(Place place);

  ApiLimits limits_;
  std::mutex mutex_;          // guards what follows
  std::list<Entry> entries_;  // the oldest comes first
  size_t n_bytes_ = 0;
};

}  // namespace zoo

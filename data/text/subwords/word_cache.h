#pragma once
// The ids of words that were cut before: most words of a text are frequent ones.

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "data/text/subwords/subword_model.h"

namespace zoo {

/// Threads may share a cache. One of them uses it at a time; the others work without it meanwhile, because
/// waiting for each word would take longer.
class WordCache {
 public:
  /// The right to use the cache, or not.
  class Access {
   public:
    explicit Access(WordCache& cache) : cache_(cache), lock_(cache.mutex_, std::try_to_lock) {}
    /// As model.append_ids().
    void append_ids(const SubwordModel& model, std::string_view word, std::vector<int64_t>& ids);

   private:
    WordCache& cache_;
    std::unique_lock<std::mutex> lock_;
  };

 private:
  struct Range {
    uint32_t begin, size;
  };

  std::mutex mutex_;
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view word) const { return std::hash<std::string_view>()(word); }
  };
  std::unordered_map<std::string, Range, Hash, std::equal_to<>> words_;
  std::vector<int64_t> ids_;
};

}  // namespace zoo

#pragma once
// The ids of words that were cut before: most words of a text are frequent ones.

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/subwords/subword_model.h"

namespace zoo {

/// One cache.
class WordCache {
 public:
  /// As model.append_ids().
  void append_ids(const SubwordModel& model, std::string_view word, std::vector<int64_t>& ids);

 private:
  struct Entry {
    uint64_t hash = 0;
    uint32_t begin = 0, size = 0;         // of the ids
    uint32_t text_begin = 0, length = 0;  // of the word; 0: no entry
  };
  void grow();
  void clear();

  std::vector<Entry> entries_;  // open addressing
  size_t n_entries_ = 0;
  std::string texts_;
  std::vector<int32_t> ids_;
};

/// Threads may share it: each takes a cache that no other one uses at the time. If there is none left, it
/// works without, because waiting for each word would take longer.
class WordCaches {
 public:
  /// The right to use a cache, or none.
  class Access {
   public:
    explicit Access(WordCaches& caches);
    void append_ids(const SubwordModel& model, std::string_view word, std::vector<int64_t>& ids) {
      cache_ ? cache_->append_ids(model, word, ids) : model.append_ids(word, ids);
    }

   private:
    WordCache* cache_ = nullptr;
    std::unique_lock<std::mutex> lock_;
  };

 private:
  struct Guarded {
    std::mutex mutex;
    WordCache cache;
  };
  std::array<Guarded, 64> caches_;
};

}  // namespace zoo

#include "data/text/subwords/word_cache.h"

namespace zoo {
namespace {

constexpr size_t most_cached_words = 100'000;
constexpr size_t longest_cached_word = 64;  // bytes

}  // namespace

void WordCache::Access::append_ids(const SubwordModel& model, std::string_view word,
                                   std::vector<int64_t>& ids) {
  if (!lock_.owns_lock() || word.size() > longest_cached_word) return model.append_ids(word, ids);
  if (const auto found = cache_.words_.find(word); found != cache_.words_.end()) {
    const auto begin = cache_.ids_.begin() + found->second.begin;
    ids.insert(ids.end(), begin, begin + found->second.size);
    return;
  }
  const size_t before = ids.size();
  model.append_ids(word, ids);
  if (cache_.words_.size() >= most_cached_words) {
    cache_.words_.clear();
    cache_.ids_.clear();
  }
  const auto begin = static_cast<uint32_t>(cache_.ids_.size());
  cache_.ids_.insert(cache_.ids_.end(), ids.begin() + static_cast<ptrdiff_t>(before), ids.end());
  cache_.words_.emplace(word, Range{begin, static_cast<uint32_t>(ids.size() - before)});
}

}  // namespace zoo

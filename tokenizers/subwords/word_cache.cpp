#include "tokenizers/subwords/word_cache.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

namespace zoo {
namespace {

constexpr size_t most_cached_words = 100'000;
constexpr size_t longest_cached_word = 64;  // bytes

}  // namespace

void WordCache::grow() {
  const auto old = std::exchange(entries_, std::vector<Entry>(std::max<size_t>(1024, 4 * entries_.size())));
  const size_t mask = entries_.size() - 1;
  for (const Entry& entry : old) {
    if (entry.length == 0) continue;
    size_t at = entry.hash & mask;
    while (entries_[at].length != 0) at = (at + 1) & mask;
    entries_[at] = entry;
  }
}

void WordCache::clear() {
  entries_.clear();
  texts_.clear();
  ids_.clear();
  n_entries_ = 0;
}

void WordCache::append_ids(const SubwordModel& model, std::string_view word, std::vector<int64_t>& ids) {
  if (word.empty() || word.size() > longest_cached_word) return model.append_ids(word, ids);
  if (2 * n_entries_ >= entries_.size()) grow();
  const uint64_t hash = std::hash<std::string_view>()(word);
  const size_t mask = entries_.size() - 1;
  size_t at = hash & mask;
  for (; entries_[at].length != 0; at = (at + 1) & mask) {
    const Entry& entry = entries_[at];
    if (entry.hash != hash || entry.length != word.size() ||
        std::memcmp(texts_.data() + entry.text_begin, word.data(), word.size()) != 0)
      continue;
    const auto begin = ids_.begin() + entry.begin;
    ids.insert(ids.end(), begin, begin + entry.size);
    return;
  }
  const size_t before = ids.size();
  model.append_ids(word, ids);
  entries_[at] = {.hash = hash,
                  .begin = static_cast<uint32_t>(ids_.size()),
                  .size = static_cast<uint32_t>(ids.size() - before),
                  .text_begin = static_cast<uint32_t>(texts_.size()),
                  .length = static_cast<uint32_t>(word.size())};
  texts_ += word;
  for (size_t i = before; i < ids.size(); ++i) ids_.push_back(static_cast<int32_t>(ids[i]));
  if (++n_entries_ >= most_cached_words) clear();
}

WordCaches::Access::Access(WordCaches& caches) {
  for (auto& [mutex, cache] : caches.caches_) {
    lock_ = std::unique_lock(mutex, std::try_to_lock);
    if (!lock_.owns_lock()) continue;
    cache_ = &cache;
    return;
  }
}

}  // namespace zoo

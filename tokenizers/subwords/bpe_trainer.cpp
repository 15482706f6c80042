#include "tokenizers/subwords/bpe_trainer.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_map>

#include "tokenizers/unicode/characters.h"

namespace zoo {
namespace {

using Pair = std::pair<int32_t, int32_t>;

struct PairHash {
  size_t operator()(const Pair& pair) const {
    const auto both = uint64_t{static_cast<uint32_t>(pair.first)} << 32 | static_cast<uint32_t>(pair.second);
    return static_cast<size_t>(both * 0x9E3779B97F4A7C15u >> 16);
  }
};

struct Word {
  std::vector<int32_t> symbols;
  int64_t count;
};

/// A pair that may be merged in some words. Its count may be old.
struct Candidate {
  Pair pair;
  int64_t count;
  std::vector<size_t> words;
};

/// Whether `b` is to be merged before `a`.
bool is_later(const Candidate& a, const Candidate& b) {
  return std::tie(a.count, b.pair) < std::tie(b.count, a.pair);
}

class Learning {
 public:
  Learning(const PieceCounts& counts, const BpeTraining& training) : training_(training) {
    for (const auto& token : training.special) id_of(token);
    add_alphabet(counts);
    for (const auto& [piece, count] : counts) words_.push_back({symbols_of(piece), count});
    for (size_t i = 0; i < words_.size(); ++i) count_pairs(i);
    push_new();
  }

  LearntBpe result() {
    while (tokens_.size() < training_.vocab_size && merge_next());
    LearntBpe result{.tokens = tokens_, .merges = {}};
    // A pair may have been merged twice, in different words. Its last place counts.
    std::set<Pair> seen;
    for (auto pair = merges_.rbegin(); pair != merges_.rend(); ++pair) {
      if (seen.insert(*pair).second) result.merges.emplace_back(token(pair->first), token(pair->second));
    }
    std::ranges::reverse(result.merges);
    return result;
  }

 private:
  const std::string& token(int32_t id) const { return tokens_[static_cast<size_t>(id)]; }

  int32_t id_of(const std::string& text) {
    const auto [found, is_new] = ids_.emplace(text, static_cast<int32_t>(tokens_.size()));
    if (is_new) tokens_.push_back(text);
    return found->second;
  }

  void add_alphabet(const PieceCounts& counts) {
    std::set<char32_t> characters;
    const auto add = [&](std::string_view text) {
      for (size_t at = 0; at < text.size();) characters.insert(next_code_point(text, at));
    };
    for (const auto& [piece, count] : counts) add(piece);
    for (const auto& character : training_.alphabet) add(character);
    for (const char32_t c : characters) {
      std::string text;
      append_utf8(c, text);
      id_of(text);
    }
  }

  std::vector<int32_t> symbols_of(std::string_view piece) {
    std::vector<int32_t> symbols;
    for (size_t at = 0; at < piece.size();) {
      const size_t begin = at;
      next_code_point(piece, at);
      std::string text(piece.substr(begin, at - begin));
      if (begin > 0) text.insert(0, training_.prefix);
      symbols.push_back(id_of(text));
    }
    return symbols;
  }

  void add_count(Pair pair, int64_t change, size_t word) {
    counts_[pair] += change;
    if (change <= 0) return;
    auto& words = new_words_[pair];
    if (words.empty() || words.back() != word) words.push_back(word);
  }

  void count_pairs(size_t word) {
    const auto& symbols = words_[word].symbols;
    for (size_t i = 0; i + 1 < symbols.size(); ++i)
      add_count({symbols[i], symbols[i + 1]}, words_[word].count, word);
  }

  /// Puts the pairs with new places into the queue, beside older entries of the same pairs.
  void push_new() {
    for (auto& [pair, words] : new_words_) {
      const int64_t count = counts_[pair];
      if (count > 0) push({pair, count, std::move(words)});
    }
    new_words_.clear();
  }

  void push(Candidate candidate) {
    queue_.push_back(std::move(candidate));
    std::ranges::push_heap(queue_, is_later);
  }

  Candidate pop() {
    std::ranges::pop_heap(queue_, is_later);
    Candidate top = std::move(queue_.back());
    queue_.pop_back();
    return top;
  }

  /// Whether there was a pair that is frequent enough.
  bool merge_next() {
    while (!queue_.empty()) {
      Candidate top = pop();
      if (const int64_t now = counts_[top.pair]; top.count != now) {
        top.count = now;
        push(std::move(top));
        continue;
      }
      if (top.count < std::max<int64_t>(1, training_.least_count)) return false;
      std::string_view right = token(top.pair.second);
      if (right.starts_with(training_.prefix)) right.remove_prefix(training_.prefix.size());
      const int32_t merged = id_of(token(top.pair.first) + std::string(right));
      merges_.push_back(top.pair);
      for (const size_t word : top.words) merge_in(word, top.pair, merged);
      push_new();
      return true;
    }
    return false;
  }

  void merge_in(size_t index, Pair pair, int32_t merged) {
    auto& [symbols, count] = words_[index];
    size_t to = 0;
    for (size_t from = 0; from < symbols.size(); ++to) {
      const bool is_pair =
          from + 1 < symbols.size() && symbols[from] == pair.first && symbols[from + 1] == pair.second;
      if (!is_pair) {
        symbols[to] = symbols[from++];
        continue;
      }
      from += 2;
      if (to > 0) {
        add_count({symbols[to - 1], pair.first}, -count, index);
        add_count({symbols[to - 1], merged}, count, index);
      }
      if (from < symbols.size()) {
        add_count({pair.second, symbols[from]}, -count, index);
        add_count({merged, symbols[from]}, count, index);
      }
      symbols[to] = merged;
    }
    symbols.resize(to);
  }

  const BpeTraining& training_;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int32_t> ids_;
  std::vector<Word> words_;
  std::unordered_map<Pair, int64_t, PairHash> counts_;
  std::unordered_map<Pair, std::vector<size_t>, PairHash> new_words_;
  std::vector<Candidate> queue_;  // a heap
  std::vector<Pair> merges_;
};

}  // namespace

LearntBpe learn_bpe(const PieceCounts& counts, const BpeTraining& training) {
  return Learning(counts, training).result();
}

}  // namespace zoo

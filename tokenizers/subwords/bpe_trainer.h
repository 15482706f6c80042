#pragma once
// Learning the merges of byte-pair encoding (Sennrich et al. 2016, https://arxiv.org/abs/1508.07909): the
// pair of neighbours that is most frequent becomes a token, again and again.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace zoo {

/// How often each piece of a corpus occurs, in the order of their bytes.
using PieceCounts = std::map<std::string, int64_t, std::less<>>;

struct BpeTraining {
  size_t vocab_size = 8000;
  int64_t least_count = 2;  // of a pair
  std::vector<std::string> special;
  /// Characters that are tokens whether they occur or not.
  std::vector<std::string> alphabet;
  /// Of characters that do not begin a piece; "##" for WordPiece.
  std::string prefix;
};

struct LearntBpe {
  std::vector<std::string> tokens;  // by id: special ones, characters in their order, merged ones
  std::vector<std::pair<std::string, std::string>> merges;
};

/// The merges of tokenizers' BpeTrainer. Of pairs that occur equally often the one with the smaller ids comes
/// first, so the result depends on the counts only. There are more tokens than vocab_size if there are so
/// many characters, fewer if there are not enough pairs.
LearntBpe learn_bpe(const PieceCounts& counts, const BpeTraining& training);

}  // namespace zoo

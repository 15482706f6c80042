#pragma once
// A model of SentencePiece of the type BPE has a score for each token, a tokenizer.json an ordered list of
// merges.

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace zoo {

/// A token of two parts.
using Merge = std::pair<std::string, std::string>;

/// What a file may ask for.
inline constexpr size_t kLongestMergedToken = 256;  // bytes
inline constexpr size_t kMostMerges = size_t{1} << 22;
inline constexpr size_t kMostMergeWork = size_t{1} << 30;  // the sum of the squares of the tokens' bytes

/// The merges in the order of transformers: higher scores first, then longer first and second parts.
/// `tokens`: with their scores, none longer than kLongestMergedToken. Nothing if it would take more than the
/// limits.
std::optional<std::vector<Merge>> merges_of_scores(const std::vector<std::string>& tokens,
                                                   const std::vector<float>& scores);

/// Scores for which merges_of_scores() gives these merges again, up to the order of merges to the same token;
/// nothing if there are none: merges to a token are missing, or do not follow each other.
std::optional<std::vector<float>> scores_of_merges(const std::vector<std::string>& tokens,
                                                   const std::vector<Merge>& merges);

}  // namespace zoo

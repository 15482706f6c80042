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

/// The merges in the order of transformers: higher scores first, then longer first and second parts.
/// `tokens`: those that are made of others, with their scores; none is longer than kLongestMergedToken.
std::vector<Merge> merges_of_scores(const std::vector<std::string>& tokens, const std::vector<float>& scores);
inline constexpr size_t kLongestMergedToken = 256;  // bytes

/// Scores for which merges_of_scores() gives these merges again, up to the order of merges to the same token;
/// nothing if there are none: merges to a token are missing, or do not follow each other.
std::optional<std::vector<float>> scores_of_merges(const std::vector<std::string>& tokens,
                                                   const std::vector<Merge>& merges);

}  // namespace zoo

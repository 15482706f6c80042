#pragma once
// How near written texts are to references: BLEU and chrF, equal to what sacreBLEU 2 gives by default.

#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// `references[r][i]` is the r-th reference of line i; at least one reference a line.
using ReferenceTexts = std::vector<std::vector<std::string>>;

/// BLEU of a corpus (Papineni et al. 2002), 0 … 100, as sacreBLEU (Post 2018) computes it by default: cased,
/// tokenised by tokenize_13a(), up to four words, exponential smoothing, no effective order; of several
/// references each line's n-grams count as often as in the one that has them most, and its length is compared
/// with the nearest. sacreBLEU's signature: case:mixed|eff:no|tok:13a|smooth:exp. Throws
/// std::invalid_argument where outputs and references do not correspond, DataError on text that is not UTF-8.
double corpus_bleu(const std::vector<std::string>& outputs, const ReferenceTexts& references);

/// chrF2 of a corpus (Popović 2015), 0 … 100, as sacreBLEU computes it by default: F-score of n-grams of one
/// to six characters, white space left out, recall weighted four times (beta 2), no words; of several
/// references each line is compared with the one that it is nearest to. Throws as corpus_bleu().
double corpus_chrf(const std::vector<std::string>& outputs, const ReferenceTexts& references);

/// The words of a line with one blank between them, as mteval-v13a of NIST takes them apart: symbols of ASCII
/// are words of their own, but not apostrophes, nor hyphens, points and commas within numbers and words that
/// they belong to. Throws DataError on text that is not UTF-8.
std::string tokenize_13a(std::string_view line);

}  // namespace zoo

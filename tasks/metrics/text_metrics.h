#pragma once
// BLEU and chrF: the similarity of written texts to references. Equal to the defaults of sacreBLEU 2.

#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// `references[r][i]` is the r-th reference of line i. Every line has at least one reference.
using ReferenceTexts = std::vector<std::vector<std::string>>;

/// BLEU of a corpus (Papineni et al. 2002), 0 … 100, as sacreBLEU (Post 2018) computes it by default: cased,
/// tokenised by tokenize_13a(), up to four words, exponential smoothing, no effective order. With several
/// references an n-gram of a line matches at most as often as it occurs in one reference, and the length of a
/// line is compared with the nearest reference. sacreBLEU's signature: case:mixed|eff:no|tok:13a|smooth:exp.
/// Throws std::invalid_argument if outputs and references do not correspond, DataError on text that is not
/// UTF-8.
double corpus_bleu(const std::vector<std::string>& outputs, const ReferenceTexts& references);

/// chrF2 of a corpus (Popović 2015), 0 … 100, as sacreBLEU computes it by default: F-score of n-grams of one
/// to six characters, without white space, recall weighted four times (beta 2), no words. With several
/// references each line is compared with the nearest. Throws the same as corpus_bleu().
double corpus_chrf(const std::vector<std::string>& outputs, const ReferenceTexts& references);

enum class TextMetric { bleu, chrf };

/// What a metric counts in a line. The score of a corpus follows from the sums over its lines.
using TextCounts = std::vector<int64_t>;
/// The counts of each line. Throws as corpus_bleu().
std::vector<TextCounts> text_counts(TextMetric metric, const std::vector<std::string>& outputs,
                                    const ReferenceTexts& references);
/// The score of lines whose counts have these sums.
double score_of_counts(TextMetric metric, const TextCounts& sums);
/// The score of lines with these counts.
double score_of_lines(TextMetric metric, const std::vector<TextCounts>& lines);

/// The words of a line with one blank between them, as NIST's mteval-v13a separates them. Symbols of ASCII
/// are words of their own, except apostrophes, and except hyphens, points and commas that belong to a number
/// or a word. Throws DataError on text that is not UTF-8.
std::string tokenize_13a(std::string_view line);

}  // namespace zoo

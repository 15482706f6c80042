#include "tasks/metrics/text_metrics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <unordered_map>

#include <fmt/format.h>

#include "base/text.h"
#include "tasks/metrics/white_space.h"

namespace zoo {
namespace {

constexpr size_t kWordOrder = 4, kCharacterOrder = 6;

/// How often each n-gram occurs. The keys are views of the text.
using Counts = std::unordered_map<std::u32string_view, int64_t>;

bool is_digit(char32_t c) { return c >= U'0' && c <= U'9'; }
bool is_point(char32_t c) { return c == U'.' || c == U','; }

/// The symbols of ASCII except ' , - . which may belong to a word or a number.
bool is_symbol(char32_t c) {
  return (c >= U' ' && c <= U'&') || (c >= U'(' && c <= U'+') || c == U'/' || (c >= U':' && c <= U'@') ||
         (c >= U'[' && c <= U'`') || (c >= U'{' && c <= U'~');
}

void replace_all(std::u32string& text, std::u32string_view from, std::u32string_view to) {
  for (size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// A regular expression's substitution: replaces each pair of neighbours a b for which `matches(a, b)` by
/// `before` a `between` b `after`, from left to right, without overlaps.
struct PairRule {
  bool (*matches)(char32_t a, char32_t b);
  std::u32string_view before, between, after;

  std::u32string apply(std::u32string_view text) const {
    std::u32string result;
    for (size_t i = 0; i < text.size(); ++i) {
      if (i + 1 == text.size() || !matches(text[i], text[i + 1])) {
        result += text[i];
        continue;
      }
      result.append(before).append(1, text[i]).append(between).append(1, text[i + 1]).append(after);
      ++i;
    }
    return result;
  }
};

// The order matters: each rule works on the result of the rule before it.
constexpr PairRule kPairRules[] = {
    // A point or comma, unless a digit is before it.
    {[](char32_t a, char32_t b) { return !is_digit(a) && is_point(b); }, U"", U" ", U" "},
    // A point or comma, unless a digit follows.
    {[](char32_t a, char32_t b) { return is_point(a) && !is_digit(b); }, U" ", U" ", U""},
    // A hyphen after a digit.
    {[](char32_t a, char32_t b) { return is_digit(a) && b == U'-'; }, U"", U" ", U" "},
};

/// The words of `text`, one blank between them.
std::u32string with_single_blanks(std::u32string_view text) {
  std::u32string result;
  bool apart = false;
  for (const char32_t c : text) {
    if (is_python_space(c)) {
      apart = !result.empty();
      continue;
    }
    if (apart) result += U' ';
    apart = false;
    result += c;
  }
  return result;
}

std::u32string words_13a(std::string_view line) {
  std::u32string text = decode_utf8(line);
  while (!text.empty() && is_python_space(text.back())) text.pop_back();
  replace_all(text, U"<skipped>", U"");
  replace_all(text, U"-\n", U"");
  replace_all(text, U"\n", U" ");
  replace_all(text, U"&quot;", U"\"");
  replace_all(text, U"&amp;", U"&");  // the result may be an entity again: "&amp;lt;" becomes "<"
  replace_all(text, U"&lt;", U"<");
  replace_all(text, U"&gt;", U">");

  std::u32string apart = U" ";
  for (const char32_t c : text) {
    if (is_symbol(c)) {
      apart.append({U' ', c, U' '});
    } else {
      apart += c;
    }
  }
  apart += U' ';
  for (const auto& rule : kPairRules) apart = rule.apply(apart);
  return with_single_blanks(apart);
}

std::u32string characters(std::string_view line) {
  std::u32string text = decode_utf8(line);
  std::erase_if(text, is_python_space);
  return text;
}

struct WordNgrams {
  std::array<Counts, kWordOrder> counts;  // [n - 1]: n-grams of n words
  int64_t n_words = 0;
};

/// `words` are as words_13a() returns them, so every n-gram is a substring.
WordNgrams word_ngrams(std::u32string_view words) {
  std::vector<size_t> begins, ends;
  for (size_t begin = 0; begin < words.size(); begin = ends.back() + 1) {
    begins.push_back(begin);
    ends.push_back(std::min(words.find(U' ', begin), words.size()));
  }
  WordNgrams result;
  result.n_words = static_cast<int64_t>(begins.size());
  for (size_t n = 1; n <= kWordOrder; ++n) {
    for (size_t last = n - 1; last < begins.size(); ++last) {
      const size_t begin = begins[last - (n - 1)];
      ++result.counts[n - 1][words.substr(begin, ends[last] - begin)];
    }
  }
  return result;
}

Counts character_ngrams(std::u32string_view text, size_t n) {
  Counts counts;
  for (size_t begin = 0; begin + n <= text.size(); ++begin) ++counts[text.substr(begin, n)];
  return counts;
}

int64_t sum(const Counts& counts) {
  int64_t total = 0;
  for (const auto& [ngram, count] : counts) total += count;
  return total;
}

/// The number of n-grams of `output` that the reference has, too; each occurrence there matches once.
int64_t matches(const Counts& output, const Counts& reference) {
  int64_t total = 0;
  for (const auto& [ngram, count] : output) {
    const auto found = reference.find(ngram);
    if (found != reference.end()) total += std::min(count, found->second);
  }
  return total;
}

void check_lines(const std::vector<std::string>& outputs, const ReferenceTexts& references) {
  if (references.empty()) throw std::invalid_argument("there are no references");
  for (const auto& lines : references) {
    if (lines.size() == outputs.size()) continue;
    throw std::invalid_argument(
        fmt::format("{} outputs do not correspond to {} references", outputs.size(), lines.size()));
  }
}

constexpr size_t kBleuNumbers = 2 * kWordOrder + 2, kChrfNumbers = 3 * kCharacterOrder;

/// The counts from which BLEU is computed.
struct BleuCounts {
  std::array<int64_t, kWordOrder> matched{}, total{};
  int64_t length = 0, reference_length = 0;

  /// Calls `visit` with each number.
  template <class Visit>
  void visit(const Visit& visit) {
    for (auto& n : matched) visit(n);
    for (auto& n : total) visit(n);
    visit(length);
    visit(reference_length);
  }

  /// Sets the counts of a line with all its references, as words_13a() returns them.
  void count(std::u32string_view output, const std::vector<std::u32string>& references) {
    const auto ngrams = word_ngrams(output);
    WordNgrams best;  // for each n-gram its highest count in a reference
    const auto distance = [&](int64_t n_words) {
      return std::pair(std::abs(n_words - ngrams.n_words), n_words);  // of two equally near, take the shorter
    };
    for (size_t r = 0; r < references.size(); ++r) {
      const auto reference = word_ngrams(references[r]);
      if (r == 0 || distance(reference.n_words) < distance(best.n_words)) best.n_words = reference.n_words;
      for (size_t i = 0; i < kWordOrder; ++i) {
        for (const auto& [ngram, count] : reference.counts[i]) {
          auto& most = best.counts[i][ngram];
          most = std::max(most, count);
        }
      }
    }
    for (size_t i = 0; i < kWordOrder; ++i) {
      matched[i] += matches(ngrams.counts[i], best.counts[i]);
      total[i] += sum(ngrams.counts[i]);
    }
    length += ngrams.n_words;
    reference_length += best.n_words;
  }

  double score() const {
    if (std::ranges::all_of(matched, [](int64_t n) { return n == 0; })) return 0;
    double log_precisions = 0, smoothing = 1;
    for (size_t i = 0; i < kWordOrder; ++i) {
      if (total[i] == 0) return 0;  // no line has this many words
      // An order without a match counts as half a match, the next such order as a quarter, …
      const double found = matched[i] > 0 ? static_cast<double>(matched[i]) : 1 / (smoothing *= 2);
      log_precisions += std::log(100 * found / static_cast<double>(total[i]));
    }
    const double excess = length < reference_length
                              ? static_cast<double>(reference_length) / static_cast<double>(length) - 1
                              : 0;
    return std::exp(-excess) * std::exp(log_precisions / kWordOrder);
  }
};

/// The counts from which chrF is computed: n-grams of the outputs, of the references, and in both.
struct ChrfCounts {
  std::array<int64_t, kCharacterOrder> output{}, reference{}, matched{};

  /// Calls `visit` with each number.
  template <class Visit>
  void visit(const Visit& visit) {
    for (auto* const numbers : {&output, &reference, &matched})
      for (auto& n : *numbers) visit(n);
  }

  double score() const {
    constexpr double recall_weight = 4;  // beta²
    double precision = 0, recall = 0;
    int orders = 0;
    for (size_t i = 0; i < kCharacterOrder; ++i) {
      if (output[i] == 0 || reference[i] == 0) continue;
      precision += static_cast<double>(matched[i]) / static_cast<double>(output[i]);
      recall += static_cast<double>(matched[i]) / static_cast<double>(reference[i]);
      ++orders;
    }
    if (precision + recall == 0) return 0;
    precision /= orders;
    recall /= orders;
    return 100 * (1 + recall_weight) * precision * recall / (recall_weight * precision + recall);
  }
};

ChrfCounts compare(const std::array<Counts, kCharacterOrder>& output, std::u32string_view reference) {
  ChrfCounts result;
  for (size_t i = 0; i < kCharacterOrder; ++i) {
    const auto ngrams = character_ngrams(reference, i + 1);
    if (ngrams.empty()) continue;  // n-grams longer than the reference do not count against the output
    result.output[i] = sum(output[i]);
    result.reference[i] = sum(ngrams);
    result.matched[i] = matches(output[i], ngrams);
  }
  return result;
}

BleuCounts bleu_counts(std::string_view output, const std::vector<std::string_view>& references) {
  std::vector<std::u32string> words;
  for (const auto reference : references) words.push_back(words_13a(reference));
  BleuCounts counts;
  counts.count(words_13a(output), words);
  return counts;
}

/// With the nearest reference.
ChrfCounts chrf_counts(std::string_view output, const std::vector<std::string_view>& references) {
  const auto text = characters(output);
  std::array<Counts, kCharacterOrder> ngrams;
  for (size_t i = 0; i < kCharacterOrder; ++i) ngrams[i] = character_ngrams(text, i + 1);
  ChrfCounts nearest;
  double best = -1;
  for (const auto reference : references) {
    const auto compared = compare(ngrams, characters(reference));
    if (compared.score() <= best) continue;
    best = compared.score();
    nearest = compared;
  }
  return nearest;
}

template <class Numbers>
TextCounts flat(Numbers counts) {
  TextCounts numbers;
  counts.visit([&](int64_t n) { numbers.push_back(n); });
  return numbers;
}

template <class Numbers>
Numbers from_flat(const TextCounts& numbers) {
  Numbers counts;
  size_t i = 0;
  counts.visit([&](int64_t& n) { n = numbers.at(i++); });
  return counts;
}

}  // namespace

std::string tokenize_13a(std::string_view line) { return encode_utf8(words_13a(line)); }

std::vector<TextCounts> text_counts(TextMetric metric, const std::vector<std::string>& outputs,
                                    const ReferenceTexts& references) {
  check_lines(outputs, references);
  std::vector<TextCounts> counts;
  for (size_t line = 0; line < outputs.size(); ++line) {
    std::vector<std::string_view> of_line;
    for (const auto& lines : references) of_line.emplace_back(lines[line]);
    counts.push_back(metric == TextMetric::bleu ? flat(bleu_counts(outputs[line], of_line))
                                                : flat(chrf_counts(outputs[line], of_line)));
  }
  return counts;
}

double score_of_counts(TextMetric metric, const TextCounts& sums) {
  return metric == TextMetric::bleu ? from_flat<BleuCounts>(sums).score()
                                    : from_flat<ChrfCounts>(sums).score();
}

double score_of_lines(TextMetric metric, const std::vector<TextCounts>& lines) {
  TextCounts sums(metric == TextMetric::bleu ? kBleuNumbers : kChrfNumbers);
  for (const auto& line : lines) std::ranges::transform(line, sums, sums.begin(), std::plus<>());
  return score_of_counts(metric, sums);
}

double corpus_bleu(const std::vector<std::string>& outputs, const ReferenceTexts& references) {
  return score_of_lines(TextMetric::bleu, text_counts(TextMetric::bleu, outputs, references));
}

double corpus_chrf(const std::vector<std::string>& outputs, const ReferenceTexts& references) {
  return score_of_lines(TextMetric::chrf, text_counts(TextMetric::chrf, outputs, references));
}

}  // namespace zoo

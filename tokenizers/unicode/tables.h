#pragma once
// The classes of characters in the library tokenizers (scripts/make_unicode_tables.py). Its parts use tables
// of different versions of Unicode:
//
//   bert_…, combining          the crate unicode_categories and the normal forms: Unicode 8 and 9
//   numeric, word, white_space, lower, grapheme_…   Rust, regex, unicode-segmentation: Unicode 16
//   later_than_normal_forms    what utf8proc (Unicode 15) knows of decompositions, and the normal forms do
//   not stand_in                   what Oniguruma (Unicode 16) takes for something else than PCRE2 (Unicode
//   14)

#include <cstdint>
#include <span>

namespace zoo {

struct CodeRange {
  char32_t first, last;
};
/// Every `step`-th code point has one in lower case, at the distance `delta`.
struct CaseRange {
  char32_t first, last;
  int32_t step, delta;
};
/// `instead` has as many bytes in UTF-8, the same category and, of larger ones, the same script.
struct StandIn {
  char32_t first, last, instead;
};

/// Removed by BERT's clean_text, beside 0 and U+FFFD.
std::span<const CodeRange> bert_removed_table();
std::span<const CodeRange> bert_nonspacing_table();
std::span<const CodeRange> bert_punctuation_table();
/// Marks to StripAccents.
std::span<const CodeRange> combining_table();
std::span<const CodeRange> numeric_table();
std::span<const CodeRange> word_table();
std::span<const CodeRange> white_space_table();
/// Characters that belong to the one before, or after, them.
std::span<const CodeRange> grapheme_extending_table();
std::span<const CodeRange> grapheme_preceding_table();
std::span<const CodeRange> later_than_normal_forms_table();
std::span<const CaseRange> lower_table();
std::span<const StandIn> stand_in_table();

}  // namespace zoo

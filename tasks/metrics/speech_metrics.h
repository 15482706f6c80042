#pragma once
// Word and character error rates: how much a transcript differs from what was said. Equal to the defaults of
// jiwer 4.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace zoo {

/// Words or characters that must be replaced, left out and inserted, at the least, to turn an output into its
/// reference (Levenshtein 1966), and how many the reference has.
struct EditCount {
  int64_t edits = 0, reference = 0;

  /// edits / reference. Without a reference: 0 if there are no edits, else their number.
  double rate() const;
  EditCount& operator+=(const EditCount& other);
};

/// Words are separated by blanks. Throws DataError on text that is not UTF-8.
EditCount word_edits(std::string_view reference, std::string_view output);
/// Characters are code points; blanks count, except at both ends. Throws likewise.
EditCount character_edits(std::string_view reference, std::string_view output);

}  // namespace zoo

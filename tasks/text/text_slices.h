#pragma once
// The bytes of texts by what they are, so that the loss of models with different tokenizers can be compared
// on parts of it: by the place in the window, the frequency and the length of words, whether a word is new,
// and the kind of character.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace zoo {

enum class SliceKind { position, frequency, novelty, characters, length };
constexpr auto config_names(SliceKind) {
  return std::to_array<std::string_view>({"position", "frequency", "novelty", "characters", "length"});
}

struct TextSlice {
  SliceKind kind;
  std::string_view name;  // for people
};

/// How far before a word the same word counts as seen.
inline constexpr size_t kSeenBytes = 1000;

/// All slices. Those of a kind follow each other.
///
/// A word is a run of letters, marks and digits; each Han character and kana is one. Upper and lower case of
/// ASCII count as equal. How often a word occurs is counted in the texts themselves, which is the same for
/// all models. The position is the share of a model's window that it has read before the token.
inline constexpr auto kTextSlices = std::to_array<TextSlice>({
    {SliceKind::position, "first quarter of the window"},
    {SliceKind::position, "second quarter of the window"},
    {SliceKind::position, "third quarter of the window"},
    {SliceKind::position, "last quarter of the window"},
    {SliceKind::frequency, "words that occur once"},
    {SliceKind::frequency, "words that occur 2 to 9 times"},
    {SliceKind::frequency, "words that occur 10 to 99 times"},
    {SliceKind::frequency, "words that occur 100 times or more"},
    {SliceKind::novelty, "words seen in the 1,000 bytes before"},
    {SliceKind::novelty, "new words"},
    {SliceKind::characters, "Latin letters"},
    {SliceKind::characters, "letters of other scripts"},
    {SliceKind::characters, "digits"},
    {SliceKind::characters, "punctuation and symbols"},
    {SliceKind::characters, "white space"},
    {SliceKind::length, "words of 1 to 3 characters"},
    {SliceKind::length, "words of 4 to 6 characters"},
    {SliceKind::length, "words of 7 to 9 characters"},
    {SliceKind::length, "words of 10 characters or more"},
});

/// The slice of a place after `n_read` tokens of a window of `length` tokens.
size_t slice_of_position(int64_t n_read, int64_t length);

/// How often each word occurs in some texts.
class WordCounts {
 public:
  void add(std::string_view text);
  int64_t of(const std::string& word) const;

 private:
  std::unordered_map<std::string, int64_t> counts_;
};

/// The slices of a byte other than its position; kNoSlice where it is in none of a kind.
inline constexpr uint8_t kNoSlice = 255;
using ByteSlices = std::array<uint8_t, 4>;  // numbers in kTextSlices: frequency, novelty, characters, length

/// Says the slices of a text's bytes, part after part.
class TextSlicer {
 public:
  /// `counts` must outlive it.
  explicit TextSlicer(const WordCounts& counts) : counts_(counts) {}
  /// The slices of the next part of the text, which begins and ends between characters: one for each byte. A
  /// word that a part's end cuts counts as two.
  std::vector<ByteSlices> next(std::string_view part);

 private:
  const WordCounts& counts_;
  std::unordered_map<std::string, size_t> last_;  // where each word has ended
  size_t at_ = 0;                                 // bytes before the part
};

}  // namespace zoo

#pragma once
// A text that is being changed, and where each of its bytes stood in the text before all changes.
//
//   AlignedText text("Ünit", Alignment::kept);
//   TextRewriter to(text);          // reads the old text while the new one is written
//   to.replace(U'u');               // takes the place of Ü
//   to.keep_rest();
//   to.finish();
//   text.origin({0, 1});            // {0, 2}: the bytes of Ü

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizers/unicode/characters.h"

namespace zoo {

/// Bytes of a text: begin … end - 1.
struct TextRange {
  size_t begin = 0, end = 0;
  size_t size() const { return end - begin; }
  bool operator==(const TextRange&) const = default;
};

/// Whether a text remembers where it comes from. That takes 17 times its memory.
enum class Alignment { dropped, kept };

class AlignedText {
 public:
  AlignedText() = default;
  /// `begin`: where the text begins in the whole one.
  AlignedText(std::string text, Alignment alignment, size_t begin = 0);

  const std::string& text() const { return text_; }
  size_t size() const { return text_.size(); }
  Alignment alignment() const { return alignment_; }
  /// Where the bytes of a part of the text, which is not empty, come from. Only with Alignment::kept.
  TextRange origin(TextRange part) const { return {origins_[part.begin].begin, origins_[part.end - 1].end}; }
  /// A copy of a part.
  AlignedText part(TextRange part) const;
  /// Appends `bytes`, which come from the bytes `origin` of `from`.
  void append(std::string_view bytes, const AlignedText& from, TextRange origin) {
    text_ += bytes;
    if (alignment_ == Alignment::kept) origins_.resize(text_.size(), from.origin(origin));
  }
  /// Appends a part of `from`.
  void append(const AlignedText& from, TextRange part);

 private:
  friend class TextRewriter;
  std::string text_;
  std::vector<TextRange> origins_;  // one a byte
  size_t begin_ = 0;
  Alignment alignment_ = Alignment::dropped;
};

/// Writes a text anew, from left to right. The origins of its characters are those of tokenizers'
/// NormalizedString::transform.
class TextRewriter {
 public:
  explicit TextRewriter(AlignedText& text) : from_(text) { to_.reserve(text.size() + text.size() / 8); }

  /// The next character of the old text becomes `c`.
  void replace(char32_t c);
  /// `c` is new; it comes from where the character read before comes from.
  void insert(char32_t c);
  void insert(std::string_view text);
  /// The next character, or the next bytes, of the old text are left out.
  void drop_character();
  void drop(size_t bytes) { at_ += bytes; }
  /// The next bytes stay as they are.
  void keep(size_t bytes);
  void keep_rest() { keep(from_.size() - at_); }
  /// How much of the old text was read.
  size_t position() const { return at_; }
  /// Puts the new text in the place of the old one. Call it last.
  void finish();

 private:
  void align_to_last(size_t before);

  AlignedText& from_;
  std::string to_;
  std::vector<TextRange> origins_;
  size_t at_ = 0;
};

/// `text` becomes `characters`.
void rewrite(AlignedText& text, std::span<const NormalCharacter> characters);

}  // namespace zoo

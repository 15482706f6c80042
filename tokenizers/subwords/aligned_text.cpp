#include "tokenizers/subwords/aligned_text.h"

#include <algorithm>

namespace zoo {

AlignedText::AlignedText(std::string text, Alignment alignment, size_t begin)
    : text_(std::move(text)), begin_(begin), alignment_(alignment) {
  if (alignment_ == Alignment::dropped) return;
  origins_.resize(text_.size());
  for (size_t at = 0; at < text_.size();) {
    const size_t first = at;
    next_code_point(text_, at);
    std::fill(origins_.begin() + static_cast<ptrdiff_t>(first), origins_.begin() + static_cast<ptrdiff_t>(at),
              TextRange{begin + first, begin + at});
  }
}

AlignedText AlignedText::part(TextRange part) const {
  AlignedText result;
  result.alignment_ = alignment_;
  result.append(*this, part);
  result.begin_ = result.origins_.empty() ? begin_ : result.origins_.front().begin;
  return result;
}

void AlignedText::append(const AlignedText& from, TextRange part) {
  text_.append(from.text_, part.begin, part.size());
  if (alignment_ == Alignment::dropped) return;
  const auto begin = from.origins_.begin();
  origins_.insert(origins_.end(), begin + static_cast<ptrdiff_t>(part.begin),
                  begin + static_cast<ptrdiff_t>(part.end));
}

void TextRewriter::replace(char32_t c) {
  const size_t here = at_;
  append_utf8(c, to_);
  if (at_ < from_.size()) next_code_point(from_.text_, at_);
  if (from_.alignment_ == Alignment::dropped) return;
  const bool is_there = here < from_.size();
  origins_.resize(to_.size(), is_there ? from_.origins_[here] : TextRange{from_.begin_, from_.begin_});
}

void TextRewriter::align_to_last(size_t before) {
  if (from_.alignment_ == Alignment::dropped) return;
  const size_t last = std::min(before, from_.size());
  origins_.resize(to_.size(), last > 0 ? from_.origins_[last - 1] : TextRange{from_.begin_, from_.begin_});
}

void TextRewriter::insert(char32_t c) {
  append_utf8(c, to_);
  align_to_last(at_);
}

void TextRewriter::insert(std::string_view text) {
  to_ += text;
  align_to_last(at_);
}

void TextRewriter::drop_character() {
  if (at_ < from_.size()) next_code_point(from_.text_, at_);
}

void TextRewriter::keep(size_t bytes) {
  to_.append(from_.text_, at_, bytes);
  if (from_.alignment_ == Alignment::kept) {
    const auto begin = from_.origins_.begin() + static_cast<ptrdiff_t>(at_);
    origins_.insert(origins_.end(), begin, begin + static_cast<ptrdiff_t>(bytes));
  }
  at_ += bytes;
}

void TextRewriter::finish() {
  from_.text_ = std::move(to_);
  from_.origins_ = std::move(origins_);
}

void rewrite(AlignedText& text, std::span<const NormalCharacter> characters) {
  TextRewriter to(text);
  for (const auto& [c, change] : characters) {
    change > 0 ? to.insert(c) : to.replace(c);
    for (int32_t i = change; i < 0; ++i) to.drop_character();
  }
  to.finish();
}

}  // namespace zoo

#include "generation/constraints/part_constraint.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace zoo {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr int64_t kStepsToPrepare = 100'000'000;

/// How many bytes of `mark` the end of `text` has.
size_t n_marked(std::string_view text, std::string_view mark) {
  size_t n = std::min(text.size(), mark.size() - 1);
  while (n > 0 && !text.ends_with(mark.substr(0, n))) --n;
  return n;
}

}  // namespace

PartConstraint::PartConstraint(std::shared_ptr<const TextConstraint> texts, const PartForm& form)
    : texts_(std::move(texts)), mark_(form.mark), begins_(form.begins), then_(form.then) {
  TORCH_CHECK(mark_.empty() || mark_.find(mark_.front(), 1) == mark_.npos, "a mark that may overlap itself");
  WorkLimit work(kStepsToPrepare);
  if (texts_->reached(mark_, work).end == TextConstraint::End::none)
    throw DataError("the vocabulary cannot write what follows the beginning of a part");
  for (size_t n = 0; n < mark_.size(); ++n) leading_on_.push_back(leading_on(n));
}

torch::Tensor PartConstraint::leading_on(size_t n_marked) const {
  const auto rest = std::string_view(mark_).substr(n_marked);
  WorkLimit work(kStepsToPrepare);
  TokenIds forbidden;
  texts_->for_each_text([&](int64_t id, std::string_view text) {
    const size_t at = n_marked > 0 && text.starts_with(rest) ? 0 : text.find(mark_);
    if (at == text.npos) return;
    const size_t end = at + (at == 0 && text.starts_with(rest) ? rest.size() : mark_.size());
    const auto begun = mark_ + std::string(text.substr(end));
    const auto reached = texts_->reached(begun, work);
    const bool is_over = then_ == PartForm::Then::free_text && reached.n_to_end < begun.size();
    if (reached.end == TextConstraint::End::none && !is_over) forbidden.push_back(id);
  });
  if (forbidden.empty()) return {};
  auto result = torch::ones({texts_->vocab_size()}, torch::kBool);
  for (const int64_t id : forbidden) result[id] = false;
  return result;
}

/// The byte behind which a part may begin, or npos.
size_t PartConstraint::find_mark(std::string_view text, size_t from) const {
  if (begins_ == PartForm::Begins::anywhere) return text.find(mark_, from);
  const size_t first = std::min(text.find_first_not_of(kBlanks), text.size());
  return text.substr(first).starts_with(mark_) ? first : text.npos;
}

torch::Tensor PartConstraint::allowed_in_free_text(std::string_view text) const {
  if (begins_ == PartForm::Begins::at_start) {
    text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
    if (!std::string_view(mark_).starts_with(text)) return {};  // no part begins any more
  }
  return leading_on_[n_marked(text, mark_)];
}

torch::Tensor PartConstraint::allowed(std::span<const int64_t> prompt, std::span<const int64_t> ids,
                                      WorkLimit& work) const {
  const auto text = texts_->text(prompt, ids);
  size_t from = 0;
  for (;;) {
    const size_t begin = find_mark(text, from);
    if (begin == text.npos) return allowed_in_free_text(std::string_view(text).substr(from));
    const auto part = std::string_view(text).substr(begin);
    if (then_ == PartForm::Then::end) return texts_->allowed_after(part, prompt, ids, work);
    const auto reached = texts_->reached(part, work);
    const bool has_ended = reached.n_to_end != part.npos;
    if (!has_ended && reached.end != TextConstraint::End::none)
      return texts_->allowed_after(part, prompt, ids, work);
    // A forced token may lead to none of the texts. Then the part is free text.
    from = begin + (has_ended ? reached.n_to_end : mark_.size());
  }
}

}  // namespace zoo

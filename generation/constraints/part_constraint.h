#pragma once
// The form of parts of an output: free text, until the output begins something that has a form.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <torch/types.h>

#include "generation/constraints/expression.h"
#include "generation/constraints/text_constraint.h"

namespace zoo {

/// Parts of an output that begin with a mark, such as the call of a tool.
struct PartForm {
  /// Where a part may begin.
  enum class Begins {
    anywhere,
    at_start  // of the output, behind blanks
  };
  /// What follows a part.
  enum class Then { free_text, end };

  /// Its first byte is no other of its bytes. Empty: the whole output is one part.
  std::string mark = {};
  Begins begins = Begins::anywhere;
  Then then = Then::free_text;
  /// Makes the texts of a part, with the mark before them. If free text may follow, no text begins with
  /// another one. It is called only if no form with this name is kept (ConstraintCache).
  std::function<Expression()> texts = {};
  std::string name = {};  // forms with equal names are equal
};

/// Leaves an output free until it has begun a part, and then allows what a TextConstraint of its texts
/// allows. A token that would end a mark in a way that leads to none of these texts is not allowed either, so
/// a part that has begun is always the beginning of one of them. Threads may share an object.
class PartConstraint {
 public:
  /// `texts`: of form.texts, with its vocabulary. Throws DataError as TextConstraint does.
  PartConstraint(std::shared_ptr<const TextConstraint> texts, const PartForm& form);

  /// As TextConstraint::allowed(); undefined: every token.
  torch::Tensor allowed(std::span<const int64_t> prompt, std::span<const int64_t> ids, WorkLimit& work) const;

 private:
  torch::Tensor leading_on(size_t n_marked) const;
  size_t find_mark(std::string_view text, size_t from) const;
  torch::Tensor allowed_in_free_text(std::string_view text) const;

  std::shared_ptr<const TextConstraint> texts_;
  std::string mark_;
  PartForm::Begins begins_;
  PartForm::Then then_;
  /// By the number of bytes of a mark that are written: what may follow; undefined: every token.
  std::vector<torch::Tensor> leading_on_;
};

/// A PartConstraint in one request. Only one thread at a time may use it.
class RequestParts final : public TokenConstraint {
 public:
  RequestParts(std::shared_ptr<const PartConstraint> parts, OutputText text)
      : TokenConstraint(text), parts_(std::move(parts)) {}
  torch::Tensor allowed(std::span<const int64_t> prompt, std::span<const int64_t> ids) override {
    return parts_->allowed(before(prompt), ids, next_work());
  }

 private:
  std::shared_ptr<const PartConstraint> parts_;
};

}  // namespace zoo

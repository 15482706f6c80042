#pragma once
// Outputs that match an expression, as a rule for the next token.

#include <memory>
#include <span>

#include "generation/constraints/text_constraint.h"
#include "generation/rules/logits_processors.h"

namespace zoo {

/// Forbids tokens after which an output can no longer become a text of the expression. `others` are applied
/// to what is left; where they would leave no token, they do not count.
class ConstrainedTokens final : public LogitsProcessor {
 public:
  ConstrainedTokens(std::shared_ptr<TokenConstraint> constraint, LogitsProcessors others);
  torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override;

 private:
  std::shared_ptr<TokenConstraint> constraint_;
  LogitsProcessors others_;
};

}  // namespace zoo

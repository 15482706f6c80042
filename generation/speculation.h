#pragma once
// Speculative decoding (Leviathan et al. 2023; Chen et al. 2023): something cheap proposes the next tokens of
// a text, and the model checks all of them in one call. Outputs are distributed as without proposals.

#include <cstdint>
#include <memory>

#include <torch/types.h>

#include "generation/rules/sampler.h"
#include "generation/rules/token_rules.h"
#include "models/model.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// The most tokens that are proposed at once: with more, a step would lose the attention for few queries.
inline constexpr int64_t kMostProposed = 6;

/// Proposes continuations of one output while it grows.
class Proposer {
 public:
  virtual ~Proposer() = default;
  /// At most `most` ≥ 1 tokens that may follow `text`, perhaps none. `draw` identifies the first of them.
  virtual Proposal propose(const SequenceView& text, int64_t most, const Draw& draw) = 0;
};

/// Proposes what followed the newest tokens of the text when they stood there before ("prompt lookup
/// decoding", Saxena 2023). Where several earlier places agree, the one that agrees in most tokens counts,
/// and among equals the latest.
class PromptLookup final : public Proposer {
 public:
  Proposal propose(const SequenceView& text, int64_t most, const Draw& draw) override;
};

/// Proposes what a smaller decoder with the same vocabulary says, by the same rules as the large one's.
class DraftModel final : public Proposer {
 public:
  /// The model must outlive this object, continue prompts, and keep every token (DecodingState).
  DraftModel(GenerativeModel& model, torch::Device device, std::shared_ptr<const TokenRules> rules)
      : model_(model), device_(device), rules_(std::move(rules)) {}
  /// None for a text that is longer than the draft model reads.
  Proposal propose(const SequenceView& text, int64_t most, const Draw& draw) override;

 private:
  torch::Tensor read(const TokenIds& text);

  GenerativeModel& model_;
  torch::Device device_;
  std::shared_ptr<const TokenRules> rules_;
  TokenIds read_;        // tokens that the state has read
  DecodingState state_;  // of one row
};

}  // namespace zoo

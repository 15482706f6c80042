#pragma once
// Connectionist temporal classification (Graves et al. 2006): the probability of a transcript is summed over
// all ways to spread its tokens, in their order, over the vectors of a recording, with blanks between them.

#include <cstdint>
#include <optional>

#include <torch/types.h>

#include "tasks/objective.h"

namespace zoo {

/// weight · Σ over rows of -log p(transcript | row), in nats: a float scalar. p is summed over all paths by
/// the forward-backward algorithm in double precision; the gradient of the logits is made in the same pass.
/// Equal to torch.nn.functional.ctc_loss(log_softmax(logits), reduction="sum", zero_infinity=True) with the
/// same blank.
///   logits       (B, T, C) float: V = C-1 tokens and the blank
///   lengths      (B) int64: the vectors of each row that are not padding; undefined = all T
///   transcripts  (B, L) int64, as kTranscripts
/// A transcript that is too long for its row, which needs a vector for each token and one more between equal
/// neighbours, adds nothing to the loss and has no gradient. `blank`: its class; by default the last one.
/// Throws c10::Error for an id that is no token.
torch::Tensor ctc_loss_sum(const torch::Tensor& logits, const torch::Tensor& lengths,
                           const torch::Tensor& transcripts, double weight = 1.0,
                           std::optional<int64_t> blank = std::nullopt);

/// The objective of models with HeadKind::ctc: ctc_loss_sum() of the field "transcripts" under the logits of
/// all vectors of a recording. Its targets are the tokens of the transcripts, so that the loss
/// of a step is Σ -log p divided by the number of tokens.
class CtcObjective final : public Objective {
 public:
  int64_t n_targets(const Batch& batch) const override;
  /// Throws DataError for a token that the model cannot predict, ConfigError if the batch has no recordings
  /// with transcripts.
  torch::Tensor loss(Model& model, const Batch& part) const override;
};

/// The type "ctc" of `training.objective`.
ObjectiveType ctc_objective();

}  // namespace zoo

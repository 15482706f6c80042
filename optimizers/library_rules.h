#pragma once
// The update rules of the library.

#include <memory>

#include "optimizers/optimizer_config.h"
#include "optimizers/update_rule.h"

namespace zoo {

/// AdamW (Loshchilov & Hutter 2019): decoupled weight decay, p -= lr·λ·p. Fused kernel.
std::unique_ptr<UpdateRule> make_adamw(const OptimizerConfig& config);

/// Adam (Kingma & Ba 2015); the decay is added to the gradient (L2). Fused kernel.
std::unique_ptr<UpdateRule> make_adam(const OptimizerConfig& config);

/// The same as torch.optim.SGD: g += λ·p, v = momentum·v + g, p -= lr·v. Fused kernel.
std::unique_ptr<UpdateRule> make_sgd(const OptimizerConfig& config);

/// Adafactor (Shazeer & Stern 2018) as in torch.optim.Adafactor. For a matrix it keeps the mean squares of
/// the gradient only by row and by column. It clips a step by its root mean square, and multiplies it by the
/// parameter's root mean square; lr is the largest change of a parameter relative to its size. It updates one
/// tensor after the other, so a step needs extra memory for the largest tensor only; on a GPU all small
/// tensors of one shape at once.
std::unique_ptr<UpdateRule> make_adafactor(const OptimizerConfig& config);

/// Lion (Chen et al. 2023, algorithm 2): p -= lr·(sign(β1·m + (1-β1)·g) + λ·p), then m = β2·m + (1-β2)·g. The
/// state is one value per parameter. lr should be about a tenth of Adam's, λ ten times Adam's.
std::unique_ptr<UpdateRule> make_lion(const OptimizerConfig& config);

/// Muon (Jordan 2024, https://kellerjordan.github.io/posts/muon) as in torch.optim.Muon, for matrices only. A
/// few Newton–Schulz iterations make a nearly orthogonal matrix from the momentum; this is the step. Matrices
/// that are stacked in one parameter are separate matrices (on a GPU all of one shape are one batch), so
/// fused projections learn as separate ones do. λ as in AdamW.
std::unique_ptr<UpdateRule> make_muon(const OptimizerConfig& config);

}  // namespace zoo

#pragma once
// What a model would say after each of its layers: the logit lens (nostalgebraist 2020). The vectors of the
// residual stream before layer I go through the final norm and the head, as if the layers from I on were left
// out.

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "analysis/causes/question.h"
#include "models/model.h"

namespace zoo {

/// Calls `look` with the logits (M, V) after each depth, from 0, before the first of N layers, to N, which
/// are the model's own. A model with two stacks has the layers of its decoder. `batch` has one row without
/// padding and is on the model's device. One forward pass; the logits of one depth at a time are in memory.
void lens_logits(Model& model, const Batch& batch,
                 const std::function<void(int64_t depth, const torch::Tensor& logits)>& look);

/// The outputs after one depth at one place.
struct LensCell {
  struct Output {
    int64_t id;
    std::string label;
    double probability;
  };
  std::vector<Output> likeliest;  // the likeliest first
  double probability = 0;         // of the right output
  int64_t rank = 0;               // of the right output: 1 is the likeliest
  double divergence = 0;          // KL(final ‖ this) in nats
};

struct LensReport {
  std::string name = {};  // of the run
  Question question = {};
  std::vector<std::vector<LensCell>> depths = {};  // N + 1 of M
  int64_t n_layers() const { return std::ssize(depths) - 1; }
};

/// A report in parts of one depth each, so that a server does other work between two.
class LensReading {
 public:
  /// `n`: the likeliest outputs of each cell. Targets that are -1 become the model's own first choice. Throws
  /// CheckpointError, also from go_on(), if logits are not numbers.
  LensReading(Model& model, Question question, int64_t n = 5);
  bool has_more() const { return report_.depths.size() < features_.size(); }
  /// Looks at the next depth.
  void go_on();
  /// Once no depth is left.
  LensReport report() && { return std::move(report_); }

 private:
  Model& model_;
  int64_t n_;
  LensReport report_;
  std::vector<torch::Tensor> features_;  // (M, D) of each depth
  torch::Tensor own_;                    // (M, V): the log-probabilities of the model itself
};

/// All depths at once.
LensReport lens_report(Model& model, Question question, int64_t n = 5);

}  // namespace zoo

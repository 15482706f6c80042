#pragma once
// What a model would say after each of its layers: the logit lens (nostalgebraist 2020). The vectors of the
// residual stream before layer I go through the final norm and the head, as if the layers from I on were left
// out. With a trained lens they go through the map of their depth before (trained_lens.h).

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "analysis/causes/contributions.h"
#include "analysis/causes/question.h"
#include "analysis/causes/trained_lens.h"
#include "models/model.h"

namespace zoo {

/// Returns what the head reads after each depth, (M, D) each. Depth 0 is before the first of N layers, and
/// depth N is the model itself. A model with two stacks has the layers of its decoder. `lens`: maps that the
/// vectors go through before the final norm; empty: there are none. `batch` is on the model's device, and its
/// rows are not pooled over padding. This is one forward pass, in the model's present mode. Gradients reach
/// the maps where they are recorded.
std::vector<torch::Tensor> lens_features(Model& model, const Batch& batch, const TrainedLens& lens = {});

/// Calls `look` with the logits (M, V) of each depth, which are in memory one at a time.
void lens_logits(Model& model, const Batch& batch,
                 const std::function<void(int64_t depth, const torch::Tensor& logits)>& look,
                 const TrainedLens& lens = {});

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

/// Whether the vectors go through maps before the final norm.
enum class LensKind { plain, trained };
constexpr auto config_names(LensKind) { return std::to_array<std::string_view>({"plain", "trained"}); }

struct LensReport {
  std::string name = {};  // of the run
  LensKind kind = LensKind::plain;
  Question question = {};
  std::vector<std::vector<LensCell>> depths = {};  // N + 1 of M
  int64_t n_layers() const { return std::ssize(depths) - 1; }
};

struct LensOptions {
  int64_t n_likeliest = 5;  // outputs of each cell
  TrainedLens lens = {};    // empty: plain
};

/// A report in parts of one depth each, so that a server does other work between two.
class LensReading {
 public:
  /// Targets that are -1 become the model's own first choice. Throws CheckpointError, also from go_on(), if
  /// logits are not numbers.
  LensReading(Model& model, Question question, const LensOptions& options = {});
  bool has_more() const { return report_.depths.size() < features_.size(); }
  /// Looks at the next depth.
  void go_on();
  /// Once no depth is left.
  LensReport report() && { return std::move(report_); }

 private:
  Model& model_;
  int64_t n_likeliest_;
  LensReport report_;
  std::vector<torch::Tensor> features_;  // (M, D) of each depth
  torch::Tensor own_;                    // (M, V): the log-probabilities of the model itself
};

/// The parts of the answer at a place.
struct LensContributions {
  int64_t place;
  int64_t output;
  Contributions contributions = {};
  std::string reason = {};  // why they cannot be told; empty: they are
};
LensContributions lens_contributions(Model& model, const Question& question, int64_t place);

/// All depths at once.
LensReport lens_report(Model& model, Question question, const LensOptions& options = {});

}  // namespace zoo

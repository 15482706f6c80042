#pragma once
// The losses of models that learn to fold. Every target is a chain.

#include <torch/types.h>

#include "io/config/config_file.h"
#include "models/folding_model.h"
#include "tasks/objective.h"

namespace zoo {

/// How places on the way from noise are compared with the structure.
enum class FlowAlignment {
  none,   // with the structure as it was turned
  rigid,  // with the structure laid onto what the model says (Abramson et al. 2024, algorithm 28)
};
constexpr auto config_names(FlowAlignment) { return std::to_array<std::string_view>({"none", "rigid"}); }

/// Of a FlowModel: the mean squared error of the velocities, and a smooth lDDT of the CA atoms.
struct FlowLossConfig {
  double lddt = 1;       // weight of the lDDT
  double late_lddt = 0;  // its weight also has this factor on max(0, t - ½)
  FlowAlignment alignment = FlowAlignment::rigid;
};
void describe(ConfigVisitor& v, FlowLossConfig& c);

/// Of a FoldingModel: the frame aligned point error of the backbone, a mean over the blocks of the structure
/// module, and the cross-entropy of the bins of the distances of CB.
struct FrameLossConfig {
  double clamp = 10;        // Å that an error counts as at most
  double distances = 0.3;   // weight of the cross-entropy
  double confidence = 0.1;  // weight of what the model says of its own errors
};
void describe(ConfigVisitor& v, FrameLossConfig& c);

class StructureLoss final : public Objective {
 public:
  StructureLoss(const FlowLossConfig& flow, const FrameLossConfig& frames) : flow_(flow), frames_(frames) {}

  int64_t n_targets(const Batch& batch) const override { return batch.n_rows(); }
  /// part: of data/structures/backbone_batches.h. Noise is drawn with draw_row_seed().
  torch::Tensor loss(Model& model, const Batch& part) const override;

 private:
  torch::Tensor flow_loss(FlowModel& model, const Batch& part) const;
  torch::Tensor frame_loss(FoldingModel& model, const Batch& part) const;

  FlowLossConfig flow_;
  FrameLossConfig frames_;
};

}  // namespace zoo

#include "tasks/structures/structure_loss.h"

#include "base/random.h"
#include "base/residues/residues.h"
#include "data/structures/backbone_batches.h"
#include "layers/folding/confidence.h"
#include "layers/folding/structure_losses.h"
#include "tasks/structures/flow.h"

namespace zoo {
namespace {

/// N, CA and C of backbones (…, 4, 3).
Rigid frames_of(const torch::Tensor& backbones) {
  const auto atoms = backbones.unbind(-2);
  return frames_of_backbone(atoms[0], atoms[1], atoms[2]);
}

/// The mean cross-entropy of the bins of distances of each chain: (B).
torch::Tensor distance_loss(const torch::Tensor& logits, const torch::Tensor& backbones,
                            const torch::Tensor& frame_mask) {
  const auto bins = distance_bins(backbones, logits.size(-1));
  const auto pairs = frame_mask.unsqueeze(1) * frame_mask.unsqueeze(2);
  const auto nats = -logits.to(torch::kFloat).log_softmax(-1).gather(-1, bins.unsqueeze(-1)).squeeze(-1);
  return (nats * pairs).sum({1, 2}) / pairs.sum({1, 2}).clamp_min(1);
}

/// The mean cross-entropy of targets over what is counted, of each chain: (B). logits (B, …, K); targets (B,
/// …) int64; counted (B, …) float.
torch::Tensor bin_loss(const torch::Tensor& logits, const torch::Tensor& targets,
                       const torch::Tensor& counted) {
  const auto nats =
      -logits.to(torch::kFloat).log_softmax(-1).gather(-1, targets.unsqueeze(-1)).squeeze(-1) * counted;
  return nats.flatten(1).sum(1) / counted.flatten(1).sum(1).clamp_min(1);
}

/// The whole number of `width` in each value: (…) int64 from 0 to n_bins - 1.
torch::Tensor bins_of(const torch::Tensor& values, double width, int64_t n_bins) {
  return (values / width).floor().clamp(0, static_cast<double>(n_bins - 1)).to(torch::kInt64);
}

/// What the model says of its errors against what they are (Jumper et al. 2021, supplement 1.9.6 and 1.9.7).
/// predicted: (B, L, 4, 3); in_frames: CA as each frame of the prediction sees it, less as those of the truth
/// do, (B, L, L, 3).
torch::Tensor confidence_loss(const Folding& folding, const torch::Tensor& predicted, const Batch& part,
                              const torch::Tensor& in_frames, const torch::Tensor& frame_mask) {
  const torch::Tensor known = part.field(fields::kKnownAtoms).select(2, kCaPlace);  // (B, L)
  const auto n_lddt_bins = folding.lddt_logits.size(-1), n_error_bins = folding.error_logits.size(-1);
  const auto lddt = residue_lddt(predicted.detach().select(2, kCaPlace),
                                 part.field(fields::kBackbone).select(2, kCaPlace), known);
  const auto error = in_frames.detach().norm(2, -1);
  const auto of_ca = folding.lddt_logits[-1].select(2, *atom_number("CA"));  // (B, L, K)
  return bin_loss(of_ca, bins_of(lddt, 1 / static_cast<double>(n_lddt_bins), n_lddt_bins), known) +
         bin_loss(folding.error_logits,
                  bins_of(error, kLargestAlignedError / static_cast<double>(n_error_bins - 2), n_error_bins),
                  frame_mask.unsqueeze(2) * known.unsqueeze(1));
}

}  // namespace

void describe(ConfigVisitor& v, FlowLossConfig& c) {
  v.field("lddt", c.lddt, "Weight of the smooth lDDT of CA beside the squared error.", Limits::at_least(0));
  v.field("late_lddt", c.late_lddt, "This times max(0, t - 1/2) is added to that weight at time t.",
          Limits::at_least(0));
  v.field("alignment", c.alignment,
          "Whether the structure is laid onto what the model says before they are compared.");
}

void describe(ConfigVisitor& v, FrameLossConfig& c) {
  v.field("clamp", c.clamp, "An error counts as at most so many Å.", Limits::positive());
  v.field("distances", c.distances, "Weight of the distances of CB atoms.", Limits::at_least(0));
  v.field("confidence", c.confidence,
          "Weight of the predicted lDDT and aligned errors, which change nothing of the structures.",
          Limits::at_least(0));
}

torch::Tensor StructureLoss::flow_loss(FlowModel& model, const Batch& part) const {
  // Where the time is nearly 1 an error of the alignment would count without limit.
  constexpr double least_time_left = 0.05;
  const auto points = flow_points(part, draw_row_seed());
  const auto velocities =
      model.velocities(model.read_chains(part.input), points.places, points.times).to(torch::kFloat);
  const auto known = part.field(fields::kKnownAtoms);  // (B, L, 4)
  const auto left = (1 - points.times).view({-1, 1, 1, 1});
  const auto reached = points.places + left * velocities;

  auto wanted = points.truth - points.noise;
  if (flow_.alignment == FlowAlignment::rigid) {
    const auto laid_on =
        aligned_onto(points.truth.flatten(1, 2), reached.detach().flatten(1, 2), known.flatten(1))
            .view_as(points.truth);
    wanted = wanted + (laid_on - points.truth) / left.clamp_min(least_time_left);
  }
  const auto squares = ((velocities - wanted).square().sum(-1) * known).sum({1, 2});
  auto losses = squares / (3 * known.sum({1, 2})).clamp_min(1);
  const auto weights = flow_.lddt + flow_.late_lddt * (points.times - 0.5).clamp_min(0);
  const auto ca_of = [](const torch::Tensor& all) { return all.select(2, kCaPlace); };
  losses = losses + weights * smooth_lddt_loss(FlowModel::kUnit * ca_of(reached),
                                               FlowModel::kUnit * ca_of(points.truth), ca_of(known));
  return losses.sum();
}

torch::Tensor StructureLoss::frame_loss(FoldingModel& model, const Batch& part) const {
  const auto& backbones = part.field(fields::kBackbone);  // (B, L, 4, 3)
  const auto& known = part.field(fields::kKnownAtoms);
  const FramesAndPoints counted{.frames = known.narrow(2, 0, 3).prod(2), .points = known.flatten(1)};
  const auto folding = model.fold(part);
  const auto truth = points_in_frames(frames_of(backbones), backbones.flatten(1, 2));
  const auto& structures = folding.folded.structures;
  const auto n_blocks = structures.positions.size(0);
  torch::Tensor losses;
  for (int64_t block = 0; block < n_blocks; ++block) {
    const auto atoms = structures.positions[block].narrow(2, 0, kBackboneAtoms).to(torch::kFloat);
    const auto numbers = structures.frames[block].to(torch::kFloat);
    const Rigid frames{.rotation = rotations_of(numbers.narrow(-1, 0, 4)),
                       .translation = numbers.narrow(-1, 4, 3)};
    const auto error =
        frame_aligned_error(points_in_frames(frames, atoms.flatten(1, 2)), truth, counted, frames_.clamp) /
        n_blocks;
    losses = losses.defined() ? losses + error : error;
    if (block + 1 < n_blocks || frames_.confidence == 0 || !folding.lddt_logits.defined()) continue;
    const auto ca = [](const torch::Tensor& all) { return all.select(2, kCaPlace); };
    const auto in_frames =
        points_in_frames(frames, ca(atoms)) - points_in_frames(frames_of(backbones), ca(backbones));
    losses = losses + frames_.confidence * confidence_loss(folding, atoms, part, in_frames, counted.frames);
  }
  if (frames_.distances > 0 && folding.distance_logits.defined()) {
    losses = losses + frames_.distances * distance_loss(folding.distance_logits, backbones, counted.frames);
  }
  return losses.sum();
}

torch::Tensor StructureLoss::loss(Model& model, const Batch& part) const {
  if (auto* const flow = flow_of(model)) return flow_loss(*flow, part);
  auto* const folding = folding_of(model);
  TORCH_CHECK(folding, "the loss of structures needs a model that folds");
  return frame_loss(*folding, part);
}

}  // namespace zoo

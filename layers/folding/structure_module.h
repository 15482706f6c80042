#pragma once
// The structure module (Jumper et al. 2021, algorithm 20): from the representations of residues and pairs to
// atoms.

#include <string>
#include <vector>

#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "layers/folding/folding_block.h"
#include "layers/folding/invariant_point_attention.h"
#include "layers/folding/side_chains.h"
#include "layers/weights/norm.h"

namespace zoo {

struct StructureModuleOptions {
  explicit StructureModuleOptions(InvariantPointAttentionOptions attention)
      : attention_(std::move(attention)) {}
  TORCH_ARG(InvariantPointAttentionOptions, attention);
  TORCH_ARG(int64_t, n_blocks) = 8;  // all with the same weights
  TORCH_ARG(int64_t, transition_layers) = 1;
  TORCH_ARG(int64_t, angle_width) = 128;
  TORCH_ARG(int64_t, angle_blocks) = 2;
  TORCH_ARG(double, dropout) = 0.1;
  /// Å of one unit of the frames' translations.
  TORCH_ARG(double, unit) = 10;
};

/// Two or three linear maps with ReLU between them, around which the input goes unchanged.
class ResidualMapsImpl : public Cloneable<ResidualMapsImpl> {
 public:
  enum class Start { map, relu };  // algorithm 20, lines 8 and 12
  ResidualMapsImpl(int64_t width, int64_t n_maps, Start start);
  /// (…, C) → (…, C)
  torch::Tensor forward(const torch::Tensor& x);
  auto arguments() const { return std::tuple(maps_.front()->n_inputs(), std::ssize(maps_), start_); }

 private:
  std::vector<Linear> maps_;
  Start start_;
};
TORCH_MODULE(ResidualMaps);

/// Torsion angles as sine and cosine: algorithm 20, lines 11 to 14, with the ReLU of AlphaFold's program on
/// both inputs.
class AngleNetworkImpl : public Cloneable<AngleNetworkImpl> {
 public:
  /// n_inputs: Cs.
  AngleNetworkImpl(int64_t n_inputs, int64_t width, int64_t n_blocks);
  /// residues: now and at the start, (B, L, Cs) → (B, L, 7, 2), of any length
  torch::Tensor forward(const torch::Tensor& residues, const torch::Tensor& first);
  auto arguments() const { return std::tuple(in->n_inputs(), in->n_outputs(), std::ssize(blocks_)); }

  Linear in{nullptr}, first_in{nullptr}, out{nullptr};

 private:
  std::vector<ResidualMaps> blocks_;
};
TORCH_MODULE(AngleNetwork);

/// What the K blocks of a structure module say, first to last.
struct Structures {
  torch::Tensor frames;        // (K, B, L, 7): unit quaternions and the places of CA in Å
  torch::Tensor group_frames;  // (K, B, L, 8, 4, 4): of the rigid groups, translations in Å
  torch::Tensor raw_angles;    // (K, B, L, 7, 2): before they are scaled to length 1
  torch::Tensor angles;        // (K, B, L, 7, 2): sine and cosine
  torch::Tensor positions;     // (K, B, L, 14, 3): of atoms, in Å
  torch::Tensor states;        // (K, B, L, Cs)
};

class StructureModuleImpl : public Cloneable<StructureModuleImpl> {
 public:
  explicit StructureModuleImpl(const StructureModuleOptions& options);
  /// input: of Cs and Cz of the options. residues: (B, L) int64, the kinds of residues. mask: (B, L) float.
  Structures forward(const Representations& input, const torch::Tensor& residues, const torch::Tensor& mask);

  StructureModuleOptions options;
  Norm residue_norm{nullptr}, pair_norm{nullptr}, attention_norm{nullptr}, transition_norm{nullptr};
  Linear in{nullptr};
  InvariantPointAttention attention{nullptr};
  Linear backbone_update{nullptr};  // Cs → 6: algorithm 23
  AngleNetwork angle_network{nullptr};

 private:
  std::vector<ResidualMaps> transition_;
};
TORCH_MODULE(StructureModule);

void count_structure_module(const FoldingCost& cost, std::string name, const StructureModuleOptions& options);

}  // namespace zoo

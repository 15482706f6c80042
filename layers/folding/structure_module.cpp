#include "layers/folding/structure_module.h"

#include "base/residues/residues.h"
#include "kernels/dropout.h"

namespace zoo {
namespace {

// The least squared length that angles are divided by.
constexpr double kLeastLength = 1e-8;

/// Registers `n` modules as NAME.0, NAME.1, … of `owner`.
std::vector<ResidualMaps> make_list(int64_t n, int64_t width, int64_t n_maps, ResidualMapsImpl::Start start,
                                    torch::nn::ModuleList& list) {
  std::vector<ResidualMaps> modules;
  for (int64_t i = 0; i < n; ++i) list->push_back(modules.emplace_back(width, n_maps, start));
  return modules;
}

}  // namespace

ResidualMapsImpl::ResidualMapsImpl(int64_t width, int64_t n_maps, Start start) : start_(start) {
  torch::nn::ModuleList list;
  for (int64_t i = 0; i < n_maps; ++i) {
    const auto use = i + 1 == n_maps ? WeightUse::residual_output : WeightUse::hidden;
    list->push_back(maps_.emplace_back(linear_options(width, width, use)));
  }
  register_module("maps", list);
}

torch::Tensor ResidualMapsImpl::forward(const torch::Tensor& x) {
  auto y = start_ == Start::relu ? x.relu() : x;
  for (size_t i = 0; i < maps_.size(); ++i) y = maps_[i](i == 0 ? y : y.relu());
  return x + y;
}

AngleNetworkImpl::AngleNetworkImpl(int64_t n_inputs, int64_t width, int64_t n_blocks) {
  in = register_module("in", Linear(LinearOptions(n_inputs, width)));
  first_in = register_module("first_in", Linear(LinearOptions(n_inputs, width)));
  torch::nn::ModuleList list;
  blocks_ = make_list(n_blocks, width, 2, ResidualMapsImpl::Start::relu, list);
  register_module("blocks", list);
  out = register_module("out", Linear(linear_options(width, 2 * kTorsionAngles, WeightUse::scores)));
}

torch::Tensor AngleNetworkImpl::forward(const torch::Tensor& residues, const torch::Tensor& first) {
  auto a = in(residues.relu()) + first_in(first.relu());
  for (auto& block : blocks_) a = block(a);
  return out(a.relu()).unflatten(-1, {kTorsionAngles, 2});
}

StructureModuleImpl::StructureModuleImpl(const StructureModuleOptions& options_) : options(options_) {
  const int64_t cs = options.attention().residue_width(), cz = options.attention().pair_width();
  residue_norm = register_module("residue_norm", Norm(NormOptions(cs)));
  pair_norm = register_module("pair_norm", Norm(NormOptions(cz)));
  in = register_module("in", Linear(LinearOptions(cs, cs)));
  attention = register_module("attention", InvariantPointAttention(options.attention()));
  attention_norm = register_module("attention_norm", Norm(NormOptions(cs)));
  torch::nn::ModuleList list;
  transition_ = make_list(options.transition_layers(), cs, 3, ResidualMapsImpl::Start::map, list);
  register_module("transition", list);
  transition_norm = register_module("transition_norm", Norm(NormOptions(cs)));
  backbone_update = register_module("backbone_update", Linear(linear_options(cs, 6, WeightUse::scores)));
  angle_network =
      register_module("angle_network", AngleNetwork(cs, options.angle_width(), options.angle_blocks()));
}

Structures StructureModuleImpl::forward(const Representations& input, const torch::Tensor& residues,
                                        const torch::Tensor& mask) {
  const double p = is_training() ? options.dropout() : 0.0;
  const auto first = residue_norm(input.residues), pairs = pair_norm(input.pairs);
  auto s = in(first);
  auto frames = BackboneFrames::at_origin(s.size(0), s.size(1), s);
  std::vector<torch::Tensor> all_frames, group_frames, raw_angles, all_angles, positions, states;
  for (int64_t block = 0; block < options.n_blocks(); ++block) {
    s = attention_norm(dropout(s + attention(s, pairs, frames.rigid(), mask), p));
    for (auto& layer : transition_) s = layer(s);
    s = transition_norm(dropout(s, p));
    frames = frames.moved(backbone_update(s));
    const auto raw = angle_network(s, first);
    const auto angles = raw / raw.square().sum(-1, true).clamp_min(kLeastLength).sqrt();
    const auto atoms = place_atoms(frames.scaled(options.unit()), angles, residues);
    all_frames.push_back(frames.numbers(options.unit()));
    group_frames.push_back(atoms.frames.matrices());
    raw_angles.push_back(raw);
    all_angles.push_back(angles);
    positions.push_back(atoms.positions);
    states.push_back(s);
    frames = frames.without_rotation_gradient();
  }
  return {.frames = torch::stack(all_frames),
          .group_frames = torch::stack(group_frames),
          .raw_angles = torch::stack(raw_angles),
          .angles = torch::stack(all_angles),
          .positions = torch::stack(positions),
          .states = torch::stack(states)};
}

void count_structure_module(const FoldingCost& cost, std::string name,
                            const StructureModuleOptions& options) {
  const auto& attention = options.attention();
  const double n = cost.n_residues(), n_pairs = cost.n_pairs();
  const auto cs = static_cast<double>(attention.residue_width()),
             cz = static_cast<double>(attention.pair_width()),
             heads = static_cast<double>(attention.n_heads()),
             n_blocks = static_cast<double>(options.n_blocks());
  const auto points = static_cast<double>(2 * attention.query_points() + attention.value_points());
  const double head = 3 * static_cast<double>(attention.head_width()) + 3 * points;
  const double out = cz + static_cast<double>(attention.head_width() + 4 * attention.value_points());
  const double mixed = static_cast<double>(2 * attention.head_width() + 3 * attention.value_points()) + cz;
  const auto transition_layers = static_cast<double>(options.transition_layers());
  cost.add(std::move(name), "structure module",
           n_blocks * (n * cs * (heads * (head + out) + 3 * cs * transition_layers) +
                       n_pairs * heads * (mixed + cz)),
           n_blocks * (n * cs * 8 + n_pairs * heads * 3));
}

}  // namespace zoo

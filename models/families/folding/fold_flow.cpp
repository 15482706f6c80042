// Folding by flow matching with plain layers (Wang et al. 2025, "SimpleFold: Folding Proteins is Simpler than
// You Think"): a transformer over residues reads where the atoms of the backbone are at some time between
// noise and structure, and says how they move. A language model of proteins may tell it of
// the sequence. A small network turns the atoms of a residue into a vector,
// and a linear map turns it back. The time modulates all layers (layers/modulated_layer.h).

#include "models/families/folding/fold_flow.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/utils.h>

#include "base/residues/residues.h"
#include "layers/modulated_layer.h"
#include "layers/weights/description.h"
#include "layers/weights/embedding.h"
#include "models/families/family_model.h"
#include "models/folding_model.h"
#include "models/mixers/mixers.h"

namespace zoo {
namespace {

constexpr int64_t kNumbers = 3 * kBackboneAtoms;  // of the atoms of a residue

const FoldFlowConfig& flow_config(const ModelConfig& config) {
  return config.architecture.as<FoldFlowConfig>();
}

ModulatedLayerOptions modulated_options(const ModelConfig& config, int64_t layer) {
  return {layer_options(config, StackRole::encoder, layer), config.d_model};
}

/// How the model is scaled (Karras et al. 2022, section 5): it reads places of unit variance, and adds what
/// it says to the best velocity that is linear in them. (B, 1, 1, 1) each, for times (B).
struct Scales {
  torch::Tensor in, skip;
};
Scales scales_at(const torch::Tensor& times) {
  constexpr double deviation = 0.5;  // of the coordinates of a chain of some 200 residues, in units of 16 Å
  const auto t = times.view({-1, 1, 1, 1}), left = 1 - t;
  const auto variance = t.square() * (deviation * deviation) + left.square();
  return {.in = variance.rsqrt(), .skip = (t * (deviation * deviation) - left) / variance};
}

/// Sines and cosines (B, width) of times (B) from 0 to 1, with periods from 2π / 1000 to 20π.
torch::Tensor time_waves(const torch::Tensor& times, int64_t width) {
  constexpr double thousandths = 1000, slowest = 1e4;
  const auto half = width / 2;
  const auto exponents = torch::arange(half, times.options()) / static_cast<double>(half);
  const auto angles = thousandths * times.unsqueeze(1) * torch::exp(-std::log(slowest) * exponents);
  return torch::cat({angles.sin(), angles.cos()}, 1);
}

void validate_fold_flow(const ModelConfig& config, const Complain& complain) {
  const auto refuse = [&](std::string_view key, bool is_set) {
    if (is_set) complain(key, fmt::format("is not for a fold_flow: leave {} out", key));
  };
  if (config.position != Position::rotary)
    complain("position", fmt::format("of a fold_flow must be rotary, not {}", config.position.type));
  if (flow_config(config).time_width % 2 != 0) complain("architecture.time_width", "must be even");
  validate_language_model(flow_config(config).language_model, complain);
  refuse("experts", config.experts.has_value());
  refuse("norm_placement", config.norm_placement != NormPlacement::pre);
  refuse("layer_scale", config.layer_scale.has_value());
  refuse("stochastic_depth", config.stochastic_depth > 0);
  refuse("residual_scale", config.residual_scale != 1);
  refuse("rotary.local_theta", config.rotary.local_theta.has_value());
  refuse("rotary.turns", !config.rotary.turns.empty());
}

}  // namespace

void describe(ConfigVisitor& v, FoldFlowConfig& c) {
  constexpr double most_steps = 10'000, widest = 1 << 14;
  v.field("steps", c.steps, "Euler steps from noise to a structure, in predictions.",
          Limits::between(1, most_steps));
  v.field("time_width", c.time_width, "Sines and cosines that the layers are told of the time.",
          Limits::between(2, widest));
  describe_language_model(v, c.language_model);
}

namespace {

class FoldFlowModel final : public Cloneable<FoldFlowModel, FamilyModel>,
                            public FlowModel,
                            public WeightOwner {
 public:
  FoldFlowModel(const ModelConfig& config, const ModelPurpose& purpose);

  FlowChains read_chains(const TokenBatch& chains) override {
    const auto letters = residue_embedding_(chains.ids);
    return {.chains = chains, .vectors = language_ ? letters + language_(chains) : letters};
  }
  torch::Tensor velocities(const FlowChains& chains, const torch::Tensor& places,
                           const torch::Tensor& times) override {
    const auto scales = scales_at(times);
    const auto said = out_(states(chains, scales.in * places, times)).unflatten(-1, {kBackboneAtoms, 3});
    return said + scales.skip * places;
  }
  int64_t n_steps() const override { return flow_config(config_).steps; }

  /// The states of the residues before anything is known of their places.
  torch::Tensor hidden_states(const Batch& batch) override;
  torch::Tensor features(const Batch& batch) override {
    return residue_features(hidden_states(batch), batch);
  }
  torch::Tensor logits(const torch::Tensor& features) override { return features; }
  int64_t n_outputs() const override { return config_.d_model; }
  void attention_maps(const Batch&, AttentionMaps&) override {
    TORCH_CHECK(false, "a fold_flow has other attention at each time");
  }
  void visit_weights(const WeightVisitor& visit) const override {
    visit({residue_embedding_->weight, 0, residue_embedding_->weight.size(0), WeightUse::table});
  }

 private:
  /// (B, L, D)
  torch::Tensor states(const FlowChains& known, const torch::Tensor& places, const torch::Tensor& times);

  ResidueLanguage language_{nullptr};
  torch::nn::Embedding residue_embedding_{nullptr};  // (21, D)
  Linear places_in_{nullptr}, places_out_{nullptr};  // 12 → D → D
  Linear time_in_{nullptr}, time_out_{nullptr};      // time_width → D → D
  Rotary rotary_{nullptr};
  std::vector<ModulatedLayer> layers_;
  ModulatedNorm final_norm_{nullptr};
  Linear out_{nullptr};  // D → 12
};

FoldFlowModel::FoldFlowModel(const ModelConfig& config, const ModelPurpose& purpose)
    : Cloneable(config, purpose) {
  const int64_t D = config.d_model;
  if (const auto& language = flow_config(config).language_model)
    language_ = register_module("language", ResidueLanguage(language_options(*language, D)));
  residue_embedding_ = register_module("residue_embedding", make_table(kResidueTypes, D));
  places_in_ = register_module("places_in", Linear(LinearOptions(kNumbers, D)));
  places_out_ = register_module("places_out", Linear(LinearOptions(D, D)));
  time_in_ = register_module("time_in", Linear(LinearOptions(flow_config(config).time_width, D)));
  time_out_ = register_module("time_out", Linear(LinearOptions(D, D)));
  rotary_ = register_module("rotary", Rotary(rotary_options(config)));
  torch::nn::ModuleList list;
  for (int64_t i = 0; i < config.n_layers; ++i)
    list->push_back(layers_.emplace_back(modulated_options(config, i)));
  register_module("layers", list);
  final_norm_ = register_module("final_norm", ModulatedNorm(norm_options(config, D), D));
  out_ = register_module("out", Linear(linear_options(D, kNumbers, WeightUse::scores)));
}

torch::Tensor FoldFlowModel::states(const FlowChains& known, const torch::Tensor& places,
                                    const torch::Tensor& times) {
  const auto& chains = known.chains;
  const auto condition = time_out_(torch::silu(time_in_(time_waves(times, flow_config(config_).time_width))));
  auto x = known.vectors + places_out_(torch::silu(places_in_(places.flatten(2))));
  const PositionRange range(0, chains.length());
  const auto table = rotary_(range, x.device());
  const AttentionContext context{
      .mask = Mask::lengths(chains.lengths).shared(), .range = &range, .rotary = &table, .ids = chains.ids};
  for (auto& layer : layers_) x = layer(x, condition, context);
  return final_norm_(x, condition);
}

torch::Tensor FoldFlowModel::hidden_states(const Batch& batch) {
  const auto& ids = batch.input.ids;
  const auto options = out_->bias.options().requires_grad(false);
  return states(read_chains(batch.input),
                torch::zeros({ids.size(0), ids.size(1), kBackboneAtoms, 3}, options),
                torch::zeros({ids.size(0)}, options));
}

void count_fold_flow(CostAccount& account, const ModelConfig& config, const ModelPurpose&,
                     const PassShape& shape) {
  const int64_t D = config.d_model;
  const auto n_rows = static_cast<double>(shape.batch_size);
  const auto n = n_rows * static_cast<double>(shape.length);
  const auto add = [&](const char* name, int64_t from, int64_t to, double n_vectors) {
    count_linear(account, name, "linear", LinearOptions(from, to), n_vectors);
  };
  if (const auto& language = flow_config(config).language_model) {
    count_residue_language(account, "language", language_options(*language, D), shape.batch_size,
                           shape.length);
  }
  count_table(account, "residue_embedding", kResidueTypes, D, n);
  add("places_in", kNumbers, D, n);
  add("places_out", D, D, n);
  add("time_in", flow_config(config).time_width, D, n_rows);
  add("time_out", D, D, n_rows);
  const AttentionShape attention{
      .batch_size = shape.batch_size, .n_queries = shape.length, .n_keys = shape.length};
  for (int64_t i = 0; i < config.n_layers; ++i) {
    const auto layer = account.path("layers", std::to_string(i));
    const MixerPlace place{.model = config, .role = StackRole::encoder, .layer = i};
    mixer_types()
        .at(place.selection())
        .count(account, account.path(layer, "self_attention"), place, attention);
    count_modulated_layer(account, layer, modulated_options(config, i), attention);
  }
  count_norms(account, "final_norm.norm", norm_options(config, D), 1, n);
  add("final_norm.modulation", D, 2 * D, n_rows);
  add("out", D, kNumbers, n);
}

}  // namespace

ModelFamily fold_flow_family() {
  ModelFamily family;
  family.name = "fold_flow";
  family.doc =
      "Folds proteins by flow matching: a transformer over residues moves atoms from noise (SimpleFold).";
  family.make_options = options_of<FoldFlowConfig>();
  family.heads = {HeadKind::none};
  family.make = makes<FoldFlowModel>();
  family.count = count_fold_flow;
  family.no_maps = "has other attention at each time between noise and structure";
  family.set_defaults = [](ModelConfig& config) {
    config.position = Position::rotary;
    config.norm = NormKind::rms_norm;
    config.activation = Activation::swiglu;
    config.qk_norm = true;
    config.bias = false;
    config.dropout = 0;
    config.init = Initialization::xavier_uniform;
  };
  family.take_inner = [](const ModelConfig& found, ModelConfig& config) {
    const auto language = language_model_like(found);
    if (!language) return false;
    auto keys = config.architecture.type == "fold_flow" && config.architecture.options ? flow_config(config)
                                                                                       : FoldFlowConfig();
    keys.language_model = *language;
    config.architecture = Selection("fold_flow", std::move(keys));
    return true;
  };
  family.inner = [](const ModelConfig& config) {
    return inner_language_model(flow_config(config).language_model);
  };
  family.validate = validate_fold_flow;
  return family;
}

}  // namespace zoo

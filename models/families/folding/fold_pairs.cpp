// Folding with vectors of pairs (Jumper et al. 2021; Lin et al. 2023): the trunk and the structure module of
// ESMFold, on letters alone or behind a language model. It learns to place backbones.

#include "models/families/folding/fold_pairs.h"

#include <string>
#include <utility>

#include <torch/utils.h>

#include "base/random.h"
#include "base/residues/residues.h"
#include "layers/weights/description.h"
#include "layers/weights/embedding.h"
#include "models/families/family_model.h"
#include "models/folding_model.h"

namespace zoo {
namespace {

constexpr int64_t kDistanceBins = 64, kAlignedErrorBins = 64, kResidueLddtBins = 50;

const FoldPairsConfig& pairs_config(const ModelConfig& config) {
  return config.architecture.as<FoldPairsConfig>();
}

}  // namespace

void describe(ConfigVisitor& v, FoldPairsConfig& c) {
  describe_trunk(v, c);
  v.field("structure", c.structure, "The structure module.");
  describe_language_model(v, c.language_model);
}

namespace {

class FoldPairsModel final : public Cloneable<FoldPairsModel, FamilyModel>,
                             public FoldingModel,
                             public WeightOwner {
 public:
  FoldPairsModel(const ModelConfig& config, const ModelPurpose& purpose) : Cloneable(config, purpose) {
    const auto& c = pairs_config(config);
    if (c.language_model) {
      language_ =
          register_module("language", ResidueLanguage(language_options(*c.language_model, c.residue_width)));
    }
    residue_embedding_ = register_module("residue_embedding", make_table(kResidueTypes, c.residue_width));
    trunk_ = register_module("trunk", FoldingTrunk(trunk_options(c)));
    distance_head_ = register_module("distance_head",
                                     Linear(linear_options(c.pair_width, kDistanceBins, WeightUse::scores)));
    const int64_t inner = c.structure.residue_width;
    error_head_ = register_module("error_head",
                                  Linear(linear_options(c.pair_width, kAlignedErrorBins, WeightUse::scores)));
    lddt_norm_ = register_module("lddt_norm", Norm(NormOptions(inner)));
    lddt_hidden_ = register_module("lddt_hidden", Linear(LinearOptions(inner, inner)));
    lddt_head_ =
        register_module("lddt_head", Linear(linear_options(inner, kResidueLddtBins, WeightUse::scores)));
  }

  Folding fold(const Batch& batch, std::optional<int64_t> passes) override;

  torch::Tensor hidden_states(const Batch& batch) override {
    return fold(batch, {}).folded.representations.residues;
  }
  torch::Tensor features(const Batch& batch) override {
    return residue_features(hidden_states(batch), batch);
  }
  torch::Tensor logits(const torch::Tensor& features) override { return features; }
  int64_t n_outputs() const override { return pairs_config(config_).residue_width; }
  void attention_maps(const Batch&, AttentionMaps&) override {
    TORCH_CHECK(false, "a fold_pairs shows no attention");
  }
  void visit_weights(const WeightVisitor& visit) const override {
    visit({residue_embedding_->weight, 0, residue_embedding_->weight.size(0), WeightUse::table});
  }
  void pretty_print(std::ostream& stream) const override {
    const auto& c = pairs_config(config_);
    stream << Description(type_name())
                  .add("n_blocks", c.n_blocks)
                  .add("residue_width", c.residue_width)
                  .add("pair_width", c.pair_width);
  }

 private:
  /// In training as many passes as are drawn, the same for all rows of a step (supplement 1.10).
  int64_t usual_passes() const {
    const int64_t most = pairs_config(config_).passes;
    return is_training() && most > 1 ? 1 + CounterRandom({draw_seed()}).below(most) : most;
  }

  ResidueLanguage language_{nullptr};
  torch::nn::Embedding residue_embedding_{nullptr};  // (21, Cs)
  FoldingTrunk trunk_{nullptr};
  Linear distance_head_{nullptr}, error_head_{nullptr};
  Norm lddt_norm_{nullptr};
  Linear lddt_hidden_{nullptr}, lddt_head_{nullptr};
};

Folding FoldPairsModel::fold(const Batch& batch, std::optional<int64_t> passes) {
  const auto& chains = batch.input;
  auto vectors = residue_embedding_(chains.ids);
  if (language_) vectors = vectors + language_(chains);
  const auto mask = residue_mask(chains, vectors.options().requires_grad(false));
  // An unknown residue has a backbone, too: that of alanine.
  const FoldingInput input{
      .vectors = vectors,
      .residues = chains.ids.masked_fill(chains.ids == kUnknownResidue, 0),
      .index = torch::arange(chains.length(), chains.ids.options()).expand_as(chains.ids),
      .context = {.mask = mask,
                  .pair_mask = mask.unsqueeze(1) * mask.unsqueeze(2),
                  .rows_at_a_time = pairs_config(config_).chunk_size},
      .passes = passes.value_or(usual_passes())};
  Folding result{.folded = trunk_(input), .n_places = kBackboneAtoms};
  const auto distances = distance_head_(result.folded.representations.pairs);
  result.distance_logits = (distances + distances.transpose(1, 2)) / 2;
  // What the model says of its errors is learnt beside the structures and changes nothing of them.
  const auto& states = result.folded.structures.states;  // (K, B, L, D)
  result.error_logits = error_head_(result.folded.representations.pairs.detach());
  const auto lddt = lddt_head_(lddt_hidden_(lddt_norm_(states.detach())).relu());
  result.lddt_logits = lddt.unsqueeze(3).expand({-1, -1, -1, std::ssize(kAtomNames), -1});  // of all atoms
  return result;
}

void count_fold_pairs(CostAccount& account, const ModelConfig& config, const ModelPurpose&,
                      const PassShape& shape) {
  const auto& c = pairs_config(config);
  FoldingCost cost{.account = account,
                   .n_chains = static_cast<double>(shape.batch_size),
                   .length = static_cast<double>(shape.length)};
  if (c.language_model) {
    count_residue_language(account, "language", language_options(*c.language_model, c.residue_width),
                           shape.batch_size, shape.length);
  }
  count_table(account, "residue_embedding", kResidueTypes, c.residue_width, cost.n_residues());
  cost.add("distance_head", "output", cost.n_pairs() * static_cast<double>(c.pair_width * kDistanceBins),
           cost.n_pairs() * kDistanceBins);
  cost.add("error_head", "output", cost.n_pairs() * static_cast<double>(c.pair_width * kAlignedErrorBins),
           cost.n_pairs() * kAlignedErrorBins);
  const auto inner = static_cast<double>(c.structure.residue_width),
             n_states = cost.n_residues() * static_cast<double>(c.structure.n_blocks);
  cost.add("lddt_head", "output", n_states * inner * (inner + kResidueLddtBins),
           n_states * (2 * inner + kResidueLddtBins));
  cost.passes = static_cast<double>(c.passes);
  count_folding_trunk(cost, "trunk", trunk_options(c));
}

}  // namespace

ModelFamily fold_pairs_family() {
  ModelFamily family;
  family.name = "fold_pairs";
  family.doc =
      "Folds proteins with vectors of pairs and a structure module, as ESMFold, with a language model or "
      "without.";
  family.make_options = options_of<FoldPairsConfig>();
  family.heads = {HeadKind::none};
  family.make = makes<FoldPairsModel>();
  family.count = count_fold_pairs;
  family.no_maps = "attends to residues and pairs in other ways";
  family.set_defaults = [](ModelConfig& config) { config.init = Initialization::xavier_uniform; };
  family.take_inner = [](const ModelConfig& found, ModelConfig& config) {
    const auto language = language_model_like(found);
    if (!language) return false;
    auto keys = config.architecture.type == "fold_pairs" && config.architecture.options ? pairs_config(config)
                                                                                        : FoldPairsConfig();
    keys.language_model = *language;
    config.architecture = Selection("fold_pairs", std::move(keys));
    return true;
  };
  family.inner = [](const ModelConfig& config) {
    return inner_language_model(pairs_config(config).language_model);
  };
  family.validate = [](const ModelConfig& config, const Complain& complain) {
    validate_trunk(pairs_config(config), complain);
    validate_language_model(pairs_config(config).language_model, complain);
  };
  return family;
}

}  // namespace zoo

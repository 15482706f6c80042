// ESMFold (Lin et al. 2023, "Evolutionary-scale prediction of atomic-level protein structure with a language
// model"): the layers of ESM-2 are mixed into vectors of residues, which a folding trunk turns into a
// structure. As transformers' EsmForProteinFolding.

#include "models/families/folding/esmfold.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>
#include <torch/utils.h>

#include "base/residues/residues.h"
#include "models/families/family_model.h"
#include "models/families/folding/folding_keys.h"
#include "models/families/folding/residue_language.h"
#include "models/folding_model.h"

namespace zoo {
namespace {

constexpr int64_t kBins = 64, kLddtBins = 50, kResidueRows = 23;
// Of ESM's vocabulary.
constexpr int64_t kEsmStart = 0, kEsmPadding = 1, kEsmEnd = 2;

const EsmfoldConfig& esmfold_config(const ModelConfig& config) {
  return config.architecture.as<EsmfoldConfig>();
}

ResidueLanguageOptions language_options(const ModelConfig& config, int64_t vocab_size) {
  return ResidueLanguageOptions(config,
                                {.residues = esm_tokens_of_residues(),
                                 .start = kEsmStart,
                                 .padding = kEsmPadding,
                                 .end = kEsmEnd,
                                 .n_rows = vocab_size},
                                esmfold_config(config).residue_width)
      .gradients(LanguageGradients::none);  // it is not trained with the trunk
}

void validate_esmfold(const ModelConfig& config, const Complain& complain) {
  const auto& c = esmfold_config(config);
  validate_trunk(c, complain);
  if (config.vocab_size.value_or(0) <= std::ranges::max(esm_tokens_of_residues()))
    complain("vocab_size", "must be that of ESM's vocabulary, 33: residues are given their tokens in it");
}

}  // namespace

void describe(ConfigVisitor& v, EsmfoldConfig& c) {
  constexpr double widest = 1 << 16;
  describe_trunk(v, c);
  v.field("embed_residues", c.embed_residues, "The trunk also reads a vector for each kind of residue.");
  v.field("confidence_width", c.confidence_width, "Width of the network that predicts lDDT.",
          Limits::between(1, widest));
  v.field("structure", c.structure, "The structure module.");
}

const std::vector<int64_t>& esm_tokens_of_residues() {
  // ARNDCQEGHILKMFPSTWYVX
  static const std::vector<int64_t> tokens = {5,  10, 17, 13, 23, 16, 9,  6,  21, 12, 4,
                                              15, 20, 18, 14, 8,  11, 22, 19, 7,  24};
  return tokens;
}

namespace {

class EsmfoldModel final : public Cloneable<EsmfoldModel, FamilyModel>,
                           public FoldingModel,
                           public WeightOwner {
 public:
  EsmfoldModel(const ModelConfig& config, const ModelPurpose& purpose);

  Folding fold(const Batch& batch, std::optional<int64_t> passes) override;

  /// (N, Cs): the trunk's vectors of residues.
  torch::Tensor features(const Batch& batch) override;
  torch::Tensor logits(const torch::Tensor& features) override { return features; }
  int64_t n_outputs() const override { return esmfold_config(config_).residue_width; }
  torch::Tensor hidden_states(const Batch& batch) override {
    return fold(batch, {}).folded.representations.residues;
  }
  /// Those of the language model, over <cls>, the residues and <eos>.
  void attention_maps(const Batch& batch, AttentionMaps& maps) override {
    language_->states(batch.input, &maps.encoder);
  }

  void visit_weights(const WeightVisitor& visit) const override;

 private:
  ResidueLanguage language_{nullptr};
  torch::nn::Embedding residue_embedding_{nullptr};  // (23, Cs): residues, X and a hidden one come first
  FoldingTrunk trunk_{nullptr};
  Linear distance_head_{nullptr}, error_head_{nullptr}, residue_head_{nullptr};
  Norm lddt_norm_{nullptr};
  Linear lddt_first_{nullptr}, lddt_second_{nullptr}, lddt_head_{nullptr};
};

EsmfoldModel::EsmfoldModel(const ModelConfig& config, const ModelPurpose& purpose)
    : Cloneable(config, purpose) {
  const auto& c = esmfold_config(config);
  const int64_t cs = c.residue_width, cz = c.pair_width, inner = c.structure.residue_width,
                width = c.confidence_width;
  const auto scores = [](int64_t from, int64_t to) {
    return Linear(linear_options(from, to, WeightUse::scores));
  };
  language_ = register_module("language", ResidueLanguage(language_options(config, purpose.vocab_size)));
  if (c.embed_residues)
    residue_embedding_ = register_module("residue_embedding", make_table(kResidueRows, cs));
  trunk_ = register_module("trunk", FoldingTrunk(trunk_options(c)));
  distance_head_ = register_module("distance_head", scores(cz, kBins));
  error_head_ = register_module("error_head", scores(cz, kBins));
  residue_head_ = register_module("residue_head", scores(cs, kResidueRows));
  lddt_norm_ = register_module("lddt_norm", Norm(NormOptions(inner)));
  lddt_first_ = register_module("lddt_first", Linear(LinearOptions(inner, width)));
  lddt_second_ = register_module("lddt_second", Linear(LinearOptions(width, width)));
  lddt_head_ = register_module("lddt_head", scores(width, kLddtBins * std::ssize(kAtomNames)));
}

Folding EsmfoldModel::fold(const Batch& batch, std::optional<int64_t> passes) {
  const auto& c = esmfold_config(config_);
  const auto& chains = batch.input;
  auto vectors = language_(chains);
  if (residue_embedding_) vectors = vectors + residue_embedding_(chains.ids);
  const auto mask = residue_mask(chains, vectors.options().requires_grad(false));
  const FoldingInput input{
      .vectors = vectors,
      .residues = chains.ids,
      .index = torch::arange(chains.length(), chains.ids.options()).expand_as(chains.ids),
      .context = {.mask = mask,
                  .pair_mask = mask.unsqueeze(1) * mask.unsqueeze(2),
                  .rows_at_a_time = c.chunk_size},
      .passes = passes.value_or(c.passes)};
  Folding result{.folded = trunk_(input)};
  const auto& [residues, pairs] = result.folded.representations;
  const auto distances = distance_head_(pairs);
  result.distance_logits = (distances + distances.transpose(1, 2)) / 2;
  result.error_logits = error_head_(pairs);
  result.residue_logits = residue_head_(residues);
  const auto& states = result.folded.structures.states;
  result.lddt_logits =
      lddt_head_(lddt_second_(lddt_first_(lddt_norm_(states)))).unflatten(-1, {-1, kLddtBins});
  return result;
}

torch::Tensor EsmfoldModel::features(const Batch& batch) {
  const auto hidden = hidden_states(batch);
  return batch.positions.defined() ? hidden.flatten(0, 1).index_select(0, batch.positions)
                                   : hidden.select(1, 0);
}

void EsmfoldModel::visit_weights(const WeightVisitor& visit) const {
  if (!residue_embedding_) return;
  visit({residue_embedding_->weight, 0, residue_embedding_->weight.size(0), WeightUse::table});
}

// The trunk runs once for each pass.
void count_esmfold(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose,
                   const PassShape& shape) {
  const auto& c = esmfold_config(config);
  count_residue_language(account, "language", language_options(config, purpose.vocab_size), shape.batch_size,
                         shape.length);

  FoldingCost cost{.account = account,
                   .n_chains = static_cast<double>(shape.batch_size),
                   .length = static_cast<double>(shape.length)};
  const double n = cost.n_residues(), n_pairs = cost.n_pairs();
  const auto cs = static_cast<double>(c.residue_width), cz = static_cast<double>(c.pair_width),
             inner = static_cast<double>(c.structure.residue_width),
             width = static_cast<double>(c.confidence_width),
             n_states = static_cast<double>(c.structure.n_blocks);
  constexpr double lddt_outputs = kLddtBins * kAtomNames.size();
  for (const auto* head : {"distance_head", "error_head"})
    cost.add(head, "output", n_pairs * cz * kBins, n_pairs * kBins);
  cost.add("residue_head", "output", n * cs * kResidueRows, n * kResidueRows);
  cost.add("lddt_head", "output", n_states * n * width * (inner + width + lddt_outputs),
           n_states * n * lddt_outputs);
  cost.passes = static_cast<double>(c.passes);
  count_folding_trunk(cost, "trunk", trunk_options(c));
}

}  // namespace

ModelFamily esmfold_family() {
  ModelFamily family;
  family.name = "esmfold";
  family.doc = "ESMFold: the structure of a protein from its sequence, with ESM-2 as the encoder.";
  family.shape = FamilyShape::encoder;
  family.make_options = options_of<EsmfoldConfig>();
  family.heads = {HeadKind::none};
  family.make = makes<EsmfoldModel>();
  family.count = count_esmfold;
  family.set_defaults = [](ModelConfig& config) {
    config.vocab_size = 33;
    config.position = Position::rotary;
    config.pooler = false;
    config.output_bias = false;
  };
  family.validate = validate_esmfold;
  return family;
}

}  // namespace zoo

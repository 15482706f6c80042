// ESMFold (Lin et al. 2023, "Evolutionary-scale prediction of atomic-level protein structure with a language
// model"): the layers of ESM-2 are mixed into vectors of residues, which a folding trunk turns into a
// structure. As transformers' EsmForProteinFolding.

#include "models/families/esmfold.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>
#include <torch/utils.h>

#include "base/residues/residues.h"
#include "layers/weights/construction.h"
#include "models/contact_regression.h"
#include "models/families/family_model.h"
#include "models/families/folding_keys.h"
#include "models/folding_model.h"

namespace zoo {
namespace {

constexpr int64_t kBins = 64, kLddtBins = 50, kResidueRows = 23;
// Of ESM's vocabulary.
constexpr int64_t kEsmStart = 0, kEsmPadding = 1, kEsmEnd = 2;

const EsmfoldConfig& esmfold_config(const ModelConfig& config) {
  return config.architecture.as<EsmfoldConfig>();
}

/// Chains in ESM's vocabulary, between its tokens for start and end: (B, L + 2).
TokenBatch esm_tokens(const TokenBatch& chains) {
  const int64_t B = chains.batch_size(), L = chains.length();
  const auto table = torch::tensor(esm_tokens_of_residues()).to(chains.ids.device());
  const auto lengths = chains.lengths.defined() ? chains.lengths : torch::full({B}, L, chains.ids.options());
  auto ids = torch::full({B, L + 2}, kEsmPadding, chains.ids.options());
  ids.select(1, 0).fill_(kEsmStart);
  ids.narrow(1, 1, L).copy_(
      table.index({chains.ids}).masked_fill(residue_mask(chains, chains.ids.options()) == 0, kEsmPadding));
  ids.scatter_(1, (lengths + 1).unsqueeze(1), kEsmEnd);
  return {.ids = ids, .lengths = lengths + 2};
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
    language_states(batch.input, &maps.encoder);
  }

  void visit_weights(const WeightVisitor& visit) const override;

 private:
  /// The states of the language model before, between and after its layers, (B, L + 2, D) each.
  std::vector<torch::Tensor> language_states(const TokenBatch& chains, std::vector<torch::Tensor>* maps);
  /// (B, L, Cs)
  torch::Tensor residue_vectors(const TokenBatch& chains);

  TokenEmbedder encoder_embedder_{nullptr};
  Stack encoder_{nullptr};
  torch::Tensor layer_weights_;  // (n_layers + 1)
  Norm language_norm_{nullptr};
  Linear language_in_{nullptr}, language_out_{nullptr};
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
  const TokenEmbedding tokens =
      register_module("token_embedding", make_token_embedding(config, purpose.vocab_size));
  encoder_embedder_ = register_module("encoder_embedder", TokenEmbedder(config, tokens));
  encoder_ = register_module("encoder", Stack(config, StackRole::encoder));
  if (config.contact_regression)
    register_module("contact_regression", ContactRegression(config.n_layers * config.n_heads));
  layer_weights_ = register_parameter(
      "layer_weights", drawn_tensor({config.n_layers + 1}, [](torch::Tensor& weights) { weights.zero_(); }));
  language_norm_ = register_module("language_norm", Norm(NormOptions(config.d_model)));
  language_in_ = register_module("language_in", Linear(LinearOptions(config.d_model, cs)));
  language_out_ = register_module("language_out", Linear(LinearOptions(cs, cs)));
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

std::vector<torch::Tensor> EsmfoldModel::language_states(const TokenBatch& chains,
                                                         std::vector<torch::Tensor>* maps) {
  Batch batch;
  batch.input = esm_tokens(chains);
  const auto embedded = encoder_embedder_->forward(batch);
  std::vector<torch::Tensor> states;
  auto last = encoder_({.x = embedded.vectors,
                        .mask = Mask::lengths(embedded.lengths),
                        .ids = embedded.ids,
                        .layer_inputs = &states,
                        .self_maps = maps});
  states.push_back(std::move(last));
  return states;
}

torch::Tensor EsmfoldModel::residue_vectors(const TokenBatch& chains) {
  // The language model is not trained with the trunk.
  const auto states = [&] {
    const torch::NoGradGuard no_grad;
    return language_states(chains, nullptr);
  }();
  const auto weights = layer_weights_.softmax(0);
  auto mixed = torch::zeros_like(states.front());
  for (size_t i = 0; i < states.size(); ++i) mixed = mixed + states[i] * weights[static_cast<int64_t>(i)];
  const auto x = mixed.narrow(1, 1, chains.length());
  const auto vectors = language_out_(language_in_(language_norm_(x)).relu());
  return residue_embedding_ ? vectors + residue_embedding_(chains.ids) : vectors;
}

Folding EsmfoldModel::fold(const Batch& batch, std::optional<int64_t> passes) {
  const auto& c = esmfold_config(config_);
  const auto& chains = batch.input;
  const auto vectors = residue_vectors(chains);
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
  const int64_t n_tokens = shape.length + 2;
  const auto all_tokens = static_cast<double>(shape.batch_size * n_tokens);
  count_token_table(account, "token_embedding", config, purpose.vocab_size, all_tokens);
  count_token_embedder(account, "encoder_embedder", config, all_tokens);
  count_encoder(account, config, shape.batch_size, n_tokens);

  FoldingCost cost{.account = account,
                   .n_chains = static_cast<double>(shape.batch_size),
                   .length = static_cast<double>(shape.length)};
  const double n = cost.n_residues(), n_pairs = cost.n_pairs();
  const auto cs = static_cast<double>(c.residue_width), cz = static_cast<double>(c.pair_width),
             inner = static_cast<double>(c.structure.residue_width),
             width = static_cast<double>(c.confidence_width),
             n_states = static_cast<double>(c.structure.n_blocks);
  constexpr double lddt_outputs = kLddtBins * kAtomNames.size();
  cost.add("language_in", "linear", n * static_cast<double>(config.d_model) * cs, n * cs);
  cost.add("language_out", "linear", n * cs * cs, n * cs);
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

#include "models/families/folding/residue_language.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "base/residues/residues.h"
#include "layers/weights/construction.h"
#include "models/config/layer_types.h"
#include "models/contact_regression.h"
#include "models/families/family_model.h"
#include "models/families/model_keys.h"
#include "models/folding_model.h"
#include "models/mixers/mixers.h"

namespace zoo {
namespace {

constexpr int64_t kOwnRows = kResidueTypes + 2;

/// Chains in the language model's tokens, between those for start and end: (B, L + 2).
TokenBatch framed(const TokenBatch& chains, const ResidueTokens& tokens) {
  const int64_t B = chains.batch_size(), L = chains.length();
  const auto table = torch::tensor(tokens.residues).to(chains.ids.device());
  const auto lengths = chains.lengths.defined() ? chains.lengths : torch::full({B}, L, chains.ids.options());
  const auto is_padding = residue_mask(chains, chains.ids.options()) == 0;
  auto ids = torch::full({B, L + 2}, tokens.padding, chains.ids.options());
  ids.select(1, 0).fill_(tokens.start);
  ids.narrow(1, 1, L).copy_(table.index({chains.ids}).masked_fill(is_padding, tokens.padding));
  ids.scatter_(1, (lengths + 1).unsqueeze(1), tokens.end);
  return {.ids = ids, .lengths = lengths + 2};
}

}  // namespace

LanguageModelConfig::LanguageModelConfig() {
  model.architecture = Architecture::encoder;
  model.position = Position::rotary;
  model.dropout = 0;
}

void describe(ConfigVisitor& v, LanguageModelConfig& c) {
  constexpr double longest = 1 << 20;  // longer than in any model
  auto& m = c.model;
  describe_inner_encoder(v, m);
  v.selection("position", m.position, position_types(), "How the model encodes the order of residues.");
  v.field("max_positions", m.max_positions, "Longest sequence; rows of the table if position is learned.",
          Limits::between(1, longest));
  v.field("rotary", m.rotary, "Rotary positions.");
  v.selections("attention", m.attention, mixer_types(), "The mixer of positions in each layer.");
  v.field("projection", m.projection, "Query, key and value as three matrices or stacked in one.");
  v.field("bias", m.bias, "Biases in linear maps and layer norms.");
  v.field("qk_norm", m.qk_norm, "Normalise queries and keys.");
  v.field("embedding_norm", m.embedding_norm, "A norm on the embeddings.");
  v.field("token_dropout", m.token_dropout,
          "Scales the vectors of residues by 0.88, as ESM does where nothing is hidden: the id of its mask.",
          Limits::at_least(0));
}

void describe_language_model(ConfigVisitor& v, std::optional<LanguageModelConfig>& c) {
  v.field("language_model", c,
          "A language model that reads the chain first; init_from may name a run of its own. Default: none.");
}

void validate_language_model(const std::optional<LanguageModelConfig>& c, const Complain& complain) {
  if (!c) return;
  const auto within = complain_under("architecture.language_model", complain);
  validate(c->model, within);
  if (c->model.token_dropout.value_or(kOwnRows) < kOwnRows)
    within("token_dropout", fmt::format("must be at least {}: lower ids are residues", kOwnRows));
}

ResidueLanguageOptions language_options(const LanguageModelConfig& config, int64_t width) {
  ResidueTokens tokens{.residues = std::vector<int64_t>(kResidueTypes),
                       .start = kResidueTypes,
                       .padding = kUnknownResidue,
                       .end = kResidueTypes + 1,
                       .n_rows = kOwnRows};
  std::iota(tokens.residues.begin(), tokens.residues.end(), 0);
  return {config.model, std::move(tokens), width};
}

ResidueLanguageImpl::ResidueLanguageImpl(const ResidueLanguageOptions& options_) : options(options_) {
  const auto& model = options.model();
  const TokenEmbedding tokens =
      register_module("token_embedding", make_token_embedding(model, options.tokens().n_rows));
  encoder_embedder = register_module("encoder_embedder", TokenEmbedder(model, tokens));
  encoder = register_module("encoder", Stack(model, StackRole::encoder));
  if (model.contact_regression)
    register_module("contact_regression", ContactRegression(model.n_layers * model.n_heads));
  layer_weights = register_parameter(
      "layer_weights", drawn_tensor({model.n_layers + 1}, [](torch::Tensor& weights) { weights.zero_(); }));
  norm = register_module("norm", Norm(NormOptions(model.d_model)));
  in = register_module("in", Linear(LinearOptions(model.d_model, options.width())));
  out = register_module("out", Linear(LinearOptions(options.width(), options.width())));
}

std::vector<torch::Tensor> ResidueLanguageImpl::states(const TokenBatch& chains,
                                                       std::vector<torch::Tensor>* maps) {
  Batch batch;
  batch.input = framed(chains, options.tokens());
  const auto embedded = encoder_embedder->forward(batch);
  std::vector<torch::Tensor> states;
  auto last = encoder({.x = embedded.vectors,
                       .mask = Mask::lengths(embedded.lengths),
                       .ids = embedded.ids,
                       .layer_inputs = &states,
                       .self_maps = maps});
  states.push_back(std::move(last));
  return states;
}

torch::Tensor ResidueLanguageImpl::forward(const TokenBatch& chains) {
  const auto states = [&] {
    const torch::AutoGradMode gradients(torch::GradMode::is_enabled() &&
                                        options.gradients() == LanguageGradients::all);
    return this->states(chains);
  }();
  const auto weights = layer_weights.softmax(0);
  auto mixed = torch::zeros_like(states.front());
  for (size_t i = 0; i < states.size(); ++i) mixed = mixed + states[i] * weights[static_cast<int64_t>(i)];
  return out(in(norm(mixed.narrow(1, 1, chains.length()))).relu());
}

void count_residue_language(CostAccount& account, const std::string& name,
                            const ResidueLanguageOptions& options, int64_t batch_size, int64_t length) {
  const auto& model = options.model();
  const int64_t n_tokens = length + 2;
  const auto all_tokens = static_cast<double>(batch_size * n_tokens),
             n = static_cast<double>(batch_size * length);
  count_token_table(account, account.path(name, "token_embedding"), model, options.tokens().n_rows,
                    all_tokens);
  count_token_embedder(account, account.path(name, "encoder_embedder"), model, all_tokens);
  count_stack(account, account.path(name, "encoder"), model, StackRole::encoder,
              {.batch_size = batch_size, .n_queries = n_tokens, .n_keys = n_tokens});
  count_linear(account, account.path(name, "in"), "linear", LinearOptions(model.d_model, options.width()), n);
  count_linear(account, account.path(name, "out"), "linear", LinearOptions(options.width(), options.width()),
               n);
}

std::optional<LanguageModelConfig> language_model_like(const ModelConfig& found) {
  if (found.architecture != Architecture::encoder) return std::nullopt;
  LanguageModelConfig all, result;
  all.model = found;
  all.model.dropout = result.model.dropout;
  ConfigFile::parse(dump_config(all), "language_model").read(result);
  return result;
}

std::optional<InnerModel> inner_language_model(const std::optional<LanguageModelConfig>& config) {
  if (!config) return std::nullopt;
  std::string letters;
  for (int64_t residue = 0; residue < kResidueTypes; ++residue) letters += residue_letter(residue);
  return InnerModel{.config = config->model,
                    .key = "architecture.language_model",
                    .module = "language",
                    .parts = {"token_embedding.", "encoder_embedder.", "encoder."},
                    .table = "token_embedding.weight",
                    .rows = letters,
                    .unknown = residue_letter(kUnknownResidue)};
}

}  // namespace zoo

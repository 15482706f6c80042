#include "models/embedder.h"

#include <cmath>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "kernels/dropout.h"
#include "layers/weights/description.h"
#include "models/config/layer_types.h"

namespace zoo {

TokenEmbedding make_token_embedding(const ModelConfig& config, int64_t vocab_size) {
  const double scale = config.scale_embeddings ? std::sqrt(static_cast<double>(config.d_model))
                                               : config.embedding_scale.value_or(1.0);
  return TokenEmbedding(
      TokenEmbeddingOptions(config.vocab_size.value_or(vocab_size), config.table_width()).scale(scale));
}

namespace {

LinearOptions embedding_map_options(const ModelConfig& config) {
  return LinearOptions(config.table_width(), config.d_model)
      .bias(config.bias && config.embedding_map == EmbeddingMap::last);
}

}  // namespace

TokenEmbedderImpl::TokenEmbedderImpl(const ModelConfig& config, const TokenEmbedding& token)
    : config_(config), token_(token.ptr()) {
  const auto& positions = position_types().at(config.position);
  if (positions.make_added)
    position_embedding = register_module("position_embedding", positions.make_added(config));
  if (const auto make = found_positions_of(config))
    found_positions = register_module("found_positions", make());
  if (config.n_segments > 0) {
    segment_embedding =
        register_module("segment_embedding", make_table(config.n_segments, config.sum_width()));
  }
  if (config.embedding_norm) {
    embedding_norm = register_module("embedding_norm", Norm(norm_options(config, config.sum_width())));
  }
  if (config.embedding_width)
    embedding_map = register_module("embedding_map", Linear(embedding_map_options(config)));
}

void TokenEmbedderImpl::pretty_print(std::ostream& stream) const {
  stream << Description("TokenEmbedder")
                .add("d_model", config_.d_model)
                .add("position", config_.position.type)
                .add("dropout", config_.dropout);
}

void TokenEmbedderImpl::visit_weights(const WeightVisitor& visit) const {
  if (position_embedding) position_embedding->visit_tables(visit);
  if (segment_embedding)
    visit({segment_embedding->weight, 0, segment_embedding->weight.size(0), WeightUse::table});
}

void TokenEmbedderImpl::observe(TokenVectorObserver* observer, StackSide side) {
  observer_ = observer;
  side_ = side;
}

torch::Tensor token_dropout_factors(const TokenInput& input, int64_t mask) {
  constexpr double kept_in_training = 1 - 0.15 * 0.8;
  const auto is_mask = input.ids == mask;
  const auto n_tokens = input.lengths.defined() ? input.lengths.to(input.ids.device(), torch::kFloat)
                                                : torch::full({input.ids.size(0)}, input.ids.size(1),
                                                              input.ids.options().dtype(torch::kFloat));
  const auto n_kept = (n_tokens - is_mask.sum(1)).clamp_min(1);  // at least 1 where all tokens are masks
  return ((kept_in_training * n_tokens / n_kept).unsqueeze(1) * is_mask.logical_not()).unsqueeze(2);
}

torch::Tensor TokenEmbedderImpl::forward(const TokenInput& input) {
  const bool maps_first = embedding_map && config_.embedding_map == EmbeddingMap::first;
  auto x = token_->forward(input.ids);  // (B, T, E)
  if (observer_) x = observer_->on(side_, x);
  if (config_.token_dropout) x = x * token_dropout_factors(input, *config_.token_dropout).to(x.scalar_type());
  if (maps_first) x = embedding_map(x);
  if (segment_embedding) {
    x = x + (input.segments.defined() ? segment_embedding(input.segments)
                                      : segment_embedding->weight.select(0, 0));
  }
  if (position_embedding)
    x = x + position_embedding->forward(input.range, input.ids.device()).to(x.scalar_type());
  if (found_positions) x = with_found_positions(*found_positions, x, input.lengths);
  if (embedding_norm) x = embedding_norm(x);
  x = dropout(x, is_training() ? config_.dropout : 0.0);
  return embedding_map && !maps_first ? embedding_map(x) : x;
}

Embedded TokenEmbedderImpl::forward(const Batch& batch) {
  return {.vectors = forward(TokenInput{.ids = batch.input.ids,
                                        .segments = batch.segments,
                                        .lengths = batch.input.lengths,
                                        .range = PositionRange(0, batch.input.length())}),
          .lengths = batch.input.lengths,
          .ids = batch.input.ids};
}

void count_token_table(CostAccount& account, const std::string& name, const ModelConfig& config,
                       int64_t vocab_size, double n_tokens, int64_t n_sides) {
  count_table(account, name, config.vocab_size.value_or(vocab_size), config.table_width(), n_tokens, n_sides);
}

void count_token_embedder(CostAccount& account, const std::string& name, const ModelConfig& config,
                          double n_tokens) {
  const auto& positions = position_types().at(config.position);
  if (positions.make_added && positions.count)
    positions.count(account, account.path(name, "position_embedding"), config);
  count_found_positions(account, account.path(name, "found_positions"), config, n_tokens);
  if (config.n_segments > 0)
    count_table(account, account.path(name, "segment_embedding"), config.n_segments, config.sum_width());
  if (config.embedding_norm) {
    count_norms(account, account.path(name, "embedding_norm"), norm_options(config, config.sum_width()), 1,
                n_tokens);
  }
  if (config.embedding_width)
    count_linear(account, account.path(name, "embedding_map"), "linear", embedding_map_options(config),
                 n_tokens);
}

}  // namespace zoo

#include "models/stack.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/embedding.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "layers/kernels/dropout.h"

namespace zoo {
namespace {

RotaryOptions rotary_options(const ModelConfig& config) {
  const auto& r = config.rotary;
  return RotaryOptions(config.head_width())
      .width(config.rotary_width())
      .theta(r.theta)
      .layout(r.layout)
      .scaling(r.scaling)
      .factor(r.factor)
      .original_max_positions(r.original_max_positions)
      .beta_fast(r.beta_fast)
      .beta_slow(r.beta_slow)
      .attention_factor(r.attention_factor)
      .low_frequency_factor(r.low_frequency_factor)
      .high_frequency_factor(r.high_frequency_factor);
}

/// layer(x, context), computed again in the backward pass. What a gradient flows through is handed over;
/// masks and rotary tables have none.
torch::Tensor recomputed_layer(const TransformerLayer& layer, const torch::Tensor& x,
                               const LayerContext& context) {
  std::vector<torch::Tensor> inputs = {x};
  LayerContext kept = context;
  const bool has_bias = kept.self.bias.defined(), has_memory = kept.cross.memory.defined();
  if (has_bias) inputs.push_back(std::exchange(kept.self.bias, {}));
  if (has_memory) inputs.push_back(std::exchange(kept.cross.memory, {}));
  const auto table = context.self.rotary ? *context.self.rotary : RotaryTable{};
  const auto call = [module = layer.ptr(), kept, table, has_bias, has_memory](const auto& given) {
    LayerContext again = kept;
    again.self.rotary = &table;
    if (has_bias) again.self.bias = given[1];
    if (has_memory) again.cross.memory = given.back();
    return module->forward(given.front(), again);
  };
  return recomputed(call, inputs, layer->parameters());
}

}  // namespace

NormOptions norm_options(const ModelConfig& config, int64_t size) {
  return NormOptions(size)
      .kind(config.norm)
      .eps(config.norm_eps)
      .bias(config.bias)
      .unit_offset(config.norm_unit_offset);
}

TransformerLayerOptions layer_options(const ModelConfig& config, StackRole role) {
  auto attention = AttentionOptions(config.d_model, config.n_heads)
                       .n_kv_heads(config.n_kv_heads)
                       .head_dim(config.head_dim)
                       .projection(config.projection)
                       .qkv_bias(config.qkv_bias.value_or(config.bias))
                       .out_bias(config.bias)
                       .dropout(config.attention_dropout)
                       .scale(config.attention_scale);
  if (config.qk_norm) attention.qk_norm(norm_options(config, config.head_width()));
  const auto cross_attention = attention;  // Shaw's vectors are about distances within one sequence
  if (config.position == Position::shaw) attention.shaw_max_distance(config.relative_max_distance);

  const auto feed_forward = FeedForwardOptions(config.d_model, config.feed_forward_width())
                                .activation(config.activation)
                                .bias(config.bias)
                                .dropout(config.activation_dropout)
                                .gate(config.gate);
  auto options = TransformerLayerOptions(attention, feed_forward, norm_options(config, config.d_model))
                     .norm_placement(config.norm_placement)
                     .dropout(config.dropout);
  if (role == StackRole::decoder_with_memory) options.cross_attention(cross_attention);
  return options;
}

StackImpl::StackImpl(const ModelConfig& config, StackRole role, const TokenEmbedding& token)
    : config_(config), token_(token.ptr()), sinusoids_([d_model = config.d_model](const auto& positions) {
        return sinusoidal_positions(positions, d_model);
      }) {
  if (config.position == Position::learned) {
    position_embedding =
        register_module("position_embedding", torch::nn::Embedding(config.max_positions, config.d_model));
  }
  if (config.n_segments > 0) {
    segment_embedding =
        register_module("segment_embedding", torch::nn::Embedding(config.n_segments, config.d_model));
  }
  if (config.embedding_norm) {
    embedding_norm = register_module("embedding_norm", Norm(norm_options(config, config.d_model)));
  }
  if (config.position == Position::rotary) rotary = register_module("rotary", Rotary(rotary_options(config)));
  if (config.position == Position::alibi) alibi_slopes_ = alibi_slopes(config.n_heads);
  if (config.position == Position::t5) {
    const auto direction = role == StackRole::encoder ? Direction::bidirectional : Direction::causal;
    position_bias = register_module("position_bias", T5Bias(T5BiasOptions(config.n_heads)
                                                                .direction(direction)
                                                                .n_buckets(config.relative_buckets)
                                                                .max_distance(config.relative_max_distance)));
  }
  const auto options = layer_options(config, role);
  torch::nn::ModuleList list;
  const int64_t n_layers = role == StackRole::decoder_with_memory ? config.decoder_layers() : config.n_layers;
  for (int64_t i = 0; i < n_layers; ++i) list->push_back(layers.emplace_back(options));
  register_module("layers", list);
  if (wants_final_norm(config.norm_placement)) {
    final_norm = register_module("final_norm", Norm(norm_options(config, config.d_model)));
  }
}

torch::Tensor StackImpl::absolute_positions(const PositionRange& range, torch::Device device) {
  if (position_embedding) {
    if (range.end() > config_.max_positions) {
      throw DataError(
          fmt::format("a sequence of {} tokens is longer than model.max_positions, {}: shorten it",
                      range.end(), config_.max_positions));
    }
    if (!range.starts.defined()) return position_embedding->weight.narrow(0, range.first, range.count);
    return position_embedding(range.ids(device));
  }
  return config_.position == Position::sinusoidal ? sinusoids_.rows(range, device) : torch::Tensor();
}

torch::Tensor StackImpl::embed(const StackInput& input, const PositionRange& range) {
  auto x = token_->forward(input.ids);  // (B, T, D)
  if (segment_embedding) {
    x = x + (input.segments.defined() ? segment_embedding(input.segments)
                                      : segment_embedding->weight.select(0, 0));
  }
  if (const auto positions = absolute_positions(range, input.ids.device()); positions.defined())
    x = x + positions.to(x.scalar_type());
  if (embedding_norm) x = embedding_norm(x);
  return dropout(x, is_training() ? config_.dropout : 0.0);
}

torch::Tensor StackImpl::score_bias(const PositionRange& range, torch::Device device) {
  if (position_bias) return position_bias(range);
  if (!alibi_slopes_.defined()) return {};
  if (alibi_slopes_.device() != device) alibi_slopes_ = alibi_slopes_.to(device);
  return alibi_bias(alibi_slopes_, range);
}

torch::Tensor StackImpl::forward(const StackInput& input) {
  const auto device = input.ids.device();
  const int64_t n_queries = input.ids.size(1);
  const PositionRange range{input.cache ? input.cache->length() : 0, n_queries, input.starts};
  const auto table = rotary ? rotary(range, device) : RotaryTable{};
  if (input.cache) {
    input.cache->self.resize(layers.size());
    if (input.memory.defined()) input.cache->cross.resize(layers.size());
  }

  LayerContext context;
  context.self = {.mask = input.mask.prepared(n_queries, range.end(), device),
                  .rotary = &table,
                  .bias = score_bias(range, device),
                  .maps = input.self_maps};
  if (input.memory.defined()) {
    context.cross = {.mask = input.memory_mask.prepared(n_queries, input.memory.size(1), device),
                     .memory = input.memory,
                     .maps = input.cross_maps};
  }
  const bool recompute = checkpointing_ == ActivationCheckpointing::every_layer && is_training() &&
                         torch::GradMode::is_enabled() && !input.cache && !input.self_maps &&
                         !input.cross_maps;
  auto x = embed(input, range);
  for (size_t i = 0; i < layers.size(); ++i) {
    if (input.cache) {
      context.self.cache = &input.cache->self[i];
      if (input.memory.defined()) context.cross.cache = &input.cache->cross[i];
    }
    // A view for each layer: the memory's gradients are added layer by layer whether these are computed again
    // or not, and so round alike.
    if (input.memory.defined()) context.cross.memory = input.memory.view_as(input.memory);
    x = recompute ? recomputed_layer(layers[i], x, context) : layers[i](x, context);
  }
  return final_norm ? final_norm(x) : x;
}

}  // namespace zoo

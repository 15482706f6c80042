#include "models/mixers/latent_attention.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "layers/attention/rotary.h"
#include "layers/weights/description.h"
#include "models/mixers/mixer_checks.h"
#include "models/mixers/mixers.h"

namespace zoo {

LatentAttentionImpl::LatentAttentionImpl(const LatentAttentionOptions& options_) : options(options_) {
  const int64_t D = options.d_model(), H = options.n_heads(), R = options.rotary_width(),
                q_width = H * options.head_dim();
  TORCH_CHECK(R >= 1 && R < options.head_dim(), "a head has numbers with and without positions");
  const auto norm_of = [&](int64_t size) { return Norm(NormOptions(options.norm()).size(size)); };
  if (const auto rank = options.q_rank()) {
    q_down = register_module("q_down", Linear(LinearOptions(D, *rank).bias(options.bias())));
    q_norm = register_module("q_norm", norm_of(*rank));
    q_up = register_module("q_up", Linear(linear_options(*rank, q_width, WeightUse::query).bias(false)));
  } else {
    q = register_module("q", Linear(linear_options(D, q_width, WeightUse::query).bias(false)));
  }
  kv_down = register_module("kv_down", Linear(LinearOptions(D, options.kv_rank() + R).bias(options.bias())));
  kv_norm = register_module("kv_norm", norm_of(options.kv_rank()));
  kv_up = register_module(
      "kv_up",
      Linear(
          LinearOptions(options.kv_rank(), H * (options.plain_width() + options.value_width())).bias(false)));
  out = register_module(
      "out",
      Linear(
          linear_options(H * options.value_width(), D, WeightUse::residual_output).bias(options.out_bias())));
}

torch::Tensor LatentAttentionImpl::queries(const torch::Tensor& x, const RotaryTable& rotary) {
  const auto flat = q ? q(x) : q_up(q_norm(q_down(x)));
  const auto heads = flat.unflatten(-1, {options.n_heads(), options.head_dim()}).transpose(1, 2);
  const auto parts = heads.split_with_sizes({options.plain_width(), options.rotary_width()}, -1);
  return torch::cat({parts[0], rotary.apply(parts[1].contiguous())}, -1);
}

LatentAttentionImpl::Latent LatentAttentionImpl::latent(const torch::Tensor& x, const RotaryTable& rotary) {
  const auto parts = kv_down(x).split_with_sizes({options.kv_rank(), options.rotary_width()}, -1);
  return {.c = kv_norm(parts[0]).unsqueeze(1), .rotary = rotary.apply(parts[1].contiguous().unsqueeze(1))};
}

torch::Tensor LatentAttentionImpl::attend(const torch::Tensor& q_, const torch::Tensor& k,
                                          const torch::Tensor& v, const AttentionContext& context) const {
  const double scale = options.scale().value_or(1 / std::sqrt(static_cast<double>(options.head_dim())));
  const ScaledDotProductOptions call{context.mask, context.bias, scale,
                                     is_training() ? options.dropout() : 0.0, options.softcap()};
  if (!context.maps) return fused_attention(q_, k, v, call);
  const auto result = explicit_attention(q_, k, v, call);
  context.maps->push_back(result.weights);
  return result.output;
}

torch::Tensor LatentAttentionImpl::attend_expanded(const torch::Tensor& q_, const Latent& all,
                                                   const AttentionContext& context) {
  const auto both = kv_up(all.c.squeeze(1))
                        .unflatten(-1, {options.n_heads(), options.plain_width() + options.value_width()})
                        .transpose(1, 2);
  const auto parts = both.split_with_sizes({options.plain_width(), options.value_width()}, -1);
  const auto of_all_heads = all.rotary.to(parts[0].scalar_type()).expand({-1, options.n_heads(), -1, -1});
  return attend(q_, torch::cat({parts[0], of_all_heads}, -1), parts[1].contiguous(), context);
}

torch::Tensor LatentAttentionImpl::attend_absorbed(const torch::Tensor& q_, const Latent& all,
                                                   const AttentionContext& context) {
  const auto maps =
      kv_up->matrix()
          .parameter()
          .to(q_.scalar_type())
          .unflatten(0, {options.n_heads(), options.plain_width() + options.value_width()});  // (H, …, r)
  const auto up = maps.narrow(1, 0, options.plain_width()),
             value = maps.narrow(1, options.plain_width(), options.value_width());
  const auto parts = q_.split_with_sizes({options.plain_width(), options.rotary_width()}, -1);
  const auto absorbed = torch::cat({torch::matmul(parts[0], up), parts[1]}, -1);  // (B, H, T, r + R)
  const auto mixed = attend(absorbed, torch::cat({all.c, all.rotary}, -1), all.c, context);
  return torch::matmul(mixed, value.transpose(1, 2));
}

torch::Tensor LatentAttentionImpl::forward(const torch::Tensor& x, const AttentionContext& context) {
  TORCH_CHECK(context.rotary && context.rotary->defined(), "latent attention needs rotary positions");
  TORCH_CHECK(!context.memory.defined() && !context.remembered, "latent attention reads no memory");
  TORCH_CHECK(!context.query_positions.defined(), "latent attention adds no positions to its input");
  const auto of_queries = queries(x, *context.rotary);
  auto all = latent(x, *context.rotary);
  bool absorbs = false;
  if (context.state) {
    TORCH_CHECK(context.range, "a state needs the positions of the tokens");
    const auto columns = context.state->key_values().extend(all.rotary, all.c, *context.range);
    all = {.c = columns.values.to(x.scalar_type()), .rotary = columns.keys.to(x.scalar_type())};
    // Where all tokens are new, keys of each head cost less. A packed matrix, or one with adapters, is used
    // as it is.
    absorbs =
        x.size(1) < all.c.size(2) && kv_up->matrix().format() == WeightFormat::fp32 && !kv_up->has_adapters();
  }
  auto heads =
      (absorbs ? attend_absorbed(of_queries, all, context) : attend_expanded(of_queries, all, context))
          .transpose(1, 2);  // (B, T, H, Dv)
  if (context.heads) heads = (*context.heads)(heads);
  return out(heads.flatten(2));
}

std::unique_ptr<LayerState> LatentAttentionImpl::new_state(int64_t n_rows) const {
  return std::make_unique<KeyValueState>(n_rows);
}

void LatentAttentionImpl::pretty_print(std::ostream& stream) const {
  stream << Description("LatentAttention")
                .add("d_model", options.d_model())
                .add("n_heads", options.n_heads())
                .add("head_dim", options.head_dim())
                .add("rotary_width", options.rotary_width())
                .add("value_dim", options.value_width())
                .add("kv_rank", options.kv_rank())
                .add("q_rank", options.q_rank());
}

void count_latent_attention(CostAccount& account, std::string name, const LatentAttentionOptions& options,
                            double n_rows, double n_queries, double n_keys) {
  const int64_t D = options.d_model(), H = options.n_heads(), r = options.kv_rank(),
                R = options.rotary_width(), q_width = H * options.head_dim(),
                v_width = H * options.value_width(),
                up_width = H * (options.plain_width() + options.value_width());
  const int64_t of_queries =
      options.q_rank() ? D * *options.q_rank() + *options.q_rank() * q_width : D * q_width;
  const double n_tokens = n_rows * n_queries;
  const auto maps = static_cast<double>(of_queries + D * (r + R) + r * up_width + v_width * D);
  account.add({.name = std::move(name),
               .kind = "self-attention",
               .shape = account.text("{} heads of {} from {}, {} of them with positions", H,
                                     options.head_dim(), r, R),
               .flops = 2 * n_tokens * maps + 2 * n_tokens * n_keys * static_cast<double>(q_width + v_width),
               .activation_bytes = bytes_of(n_tokens, 2 * q_width + 2 * v_width + up_width + 2 * (r + R) + D),
               .state_bytes_per_token = (r + R) * kFloatBytes});
}

void describe(ConfigVisitor& v, LatentKeys& keys) {
  constexpr double widest = 1 << 16;
  v.field("kv_rank", keys.kv_rank, "Numbers of a token that keys and values of all heads come from.",
          Limits::between(1, widest));
  v.field("q_rank", keys.q_rank, "Numbers that queries come from; default: they come from the whole vector.",
          Limits::between(1, widest));
  v.field("value_dim", keys.value_dim, "Width of a head's values; default: of its keys without rotary part.",
          Limits::between(1, widest));
  v.field("norm_eps", keys.norm_eps, "Epsilon of the norms of the two vectors; default: model.norm_eps.",
          Limits::positive());
}

namespace {

LatentAttentionOptions latent_options(const MixerPlace& place) {
  const auto& config = place.model;
  const auto& keys = place.selection().as<LatentKeys>();
  return LatentAttentionOptions(config.d_model, config.n_heads, config.head_width())
      .rotary_width(config.rotary_width())
      .value_dim(keys.value_dim)
      .kv_rank(keys.kv_rank)
      .q_rank(keys.q_rank)
      .norm(norm_options(config, keys.kv_rank).eps(keys.norm_eps.value_or(config.norm_eps)))
      .bias(config.qkv_bias.value_or(config.bias))
      .out_bias(config.out_bias.value_or(config.bias))
      .dropout(config.attention_dropout)
      .scale(self_attention_options(place).scale())
      .softcap(config.attention_softcap);
}

void validate_latent(const MixerPlace& place, const ComplainAboutMixer& complain) {
  const auto& config = place.model;
  if (config.position != Position::rotary) {
    complain("latent has keys with a rotary part: set model.position to rotary");
  } else if (config.rotary_width() >= config.head_width()) {
    complain(
        fmt::format("latent turns a part of each head of {}, and keeps the other without positions: set "
                    "model.rotary.fraction below 1, such as 0.5",
                    config.head_width()));
  }
  if (config.kv_heads() != config.n_heads)
    complain("latent has one latent vector for the keys of all heads: leave out model.n_kv_heads");
  if (config.qk_norm) complain("latent has norms of its own: leave out model.qk_norm");
}

}  // namespace

MixerType latent_mixer() {
  MixerType type;
  type.name = "latent";
  type.doc = "Multi-head latent attention: keys and values from one short vector (DeepSeek V2 and V3).";
  type.make_options = options_of<LatentKeys>();
  type.make = makes<LatentAttentionImpl>(latent_options);
  type.count = [](CostAccount& account, std::string name, const MixerPlace& place,
                  const AttentionShape& shape) {
    count_latent_attention(account, std::move(name), latent_options(place),
                           static_cast<double>(shape.batch_size), static_cast<double>(shape.n_queries),
                           static_cast<double>(shape.n_keys));
  };
  type.validate = validate_latent;
  return type;
}

}  // namespace zoo

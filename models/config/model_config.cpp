#include "models/config/model_config.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "models/config/layer_types.h"

namespace zoo {
void describe(ConfigVisitor& v, RotaryConfig& c) {
  v.field("theta", c.theta, "Base of the angles' geometric sequence.", Limits::positive());
  v.field(
      "local_theta", c.local_theta,
      "Base in the layers whose attention is a window; their angles are not scaled. Default: as the others.",
      Limits::positive());
  v.field("layout", c.layout, "Which elements form a pair: interleaved (2i, 2i+1) or half (i, i + width/2).");
  v.field("fraction", c.fraction, "Part of each head that is rotated.",
          {.min = 0, .max = 1, .min_excluded = true});
  v.field(
      "turns", c.turns,
      "Whether a layer is turned (1) or not (0), repeated over the layers (SmolLM3: 1, 1, 1, 0); empty: all "
      "are.",
      Limits::between(0, 1));
  v.field("scaling", c.scaling, "How the angles change for longer contexts.");
  v.field("factor", c.factor, "How many times longer than original_max_positions the context is.",
          Limits::at_least(1));
  v.field("original_max_positions", c.original_max_positions, "Context of the first training (yarn, llama3).",
          Limits::at_least(1));
  v.field("beta_fast", c.beta_fast, "yarn: frequencies with more turns than this are kept.",
          Limits::positive());
  v.field("beta_slow", c.beta_slow, "yarn: frequencies with fewer turns than this are divided.",
          Limits::positive());
  v.field("rounded", c.rounded, "yarn: the bounds of the pairs in between are whole numbers.");
  v.field("attention_factor", c.attention_factor,
          "yarn, longrope: factor on cosine and sine; default 0.1 ln(factor) + 1 and 1.", Limits::positive());
  v.field("low_frequency_factor", c.low_frequency_factor,
          "llama3: wavelengths above original_max_positions / this are divided.", Limits::positive());
  v.field("high_frequency_factor", c.high_frequency_factor,
          "llama3: wavelengths below original_max_positions / this are kept.", Limits::positive());
  v.field("divisors", c.divisors, "longrope: numbers by which the angles are divided, one for each pair.",
          Limits::positive());
  v.field("mscale_all_dim", c.mscale_all_dim,
          "m, yarn: scores of self-attention are times (0.1 m ln(factor) + 1)² (DeepSeek); 0: as they are.",
          Limits::at_least(0));
}

bool ExpertsConfig::in_layer(int64_t layer) const {
  return layer >= first_dense && (layer - first_dense + 1) % every == 0 &&
         std::ranges::find(dense_layers, layer) == dense_layers.end();
}

void describe(ConfigVisitor& v, ExpertsConfig& c) {
  constexpr double most = 1 << 12;
  v.field("count", c.count, "Networks in a layer (E).", Limits::between(1, most));
  v.field("active", c.active, "Those that work for a token.", Limits::between(1, most));
  v.field("d_ff", c.d_ff, "Inner width of an expert; default model.d_ff.", Limits::between(1, 1 << 20));
  v.field("shared_d_ff", c.shared_d_ff,
          "Inner width of a network that works for every token; default: there is none.",
          Limits::between(1, 1 << 20));
  v.field("shared_gate", c.shared_gate, "The shared network's output is times a sigmoid (Qwen2).");
  v.field(
      "router", c.router,
      "How scores become weights: softmax over all experts, softmax over the chosen ones, or a sigmoid of "
      "each.");
  v.field("router_bias", c.router_bias,
          "The router's scores have a learned number for each expert (gpt-oss).");
  v.field(
      "chooser", c.chooser,
      "tokens: each token chooses its experts. experts: each expert chooses the tokens of a text that suit "
      "it best, `active` for each token on average; for encoders, without a loss of balance.");
  v.field("normalize", c.normalize, "The weights of a token's experts are divided by their sum.");
  v.field("scale", c.scale, "Factor on the weights.", Limits::positive());
  v.field("choice_bias", c.choice_bias,
          "Each expert has a number that is added to its score for the choice alone (DeepSeek V3). Training "
          "changes it by bias_rate.");
  v.field("bias_rate", c.bias_rate,
          "Training: after each step the number of an expert with fewer tokens than the mean rises by this, "
          "and that of one with more falls (DeepSeek V3: 0.001). Balance without a loss: set balance to 0.",
          Limits::between(0, 1));
  v.field("groups", c.groups, "Groups of neighbouring experts.", Limits::between(1, most));
  v.field("active_groups", c.active_groups, "A token's experts are chosen from the best groups only.",
          Limits::between(1, most));
  v.field("group_score", c.group_score, "A group is as good as its best expert, or as its two best.");
  v.field("balance", c.balance,
          "Training: factor on the loss of balance of each row, which spreads tokens over experts.",
          Limits::at_least(0));
  v.field("balance_over", c.balance_over,
          "Whose tokens the loss of balance counts: those of the row, or those of the last step, over all "
          "rows and processes.");
  v.field(
      "capacity", c.capacity,
      "Training: an expert takes at most this many times its even share of a row's tokens, and the others "
      "are dropped; 0: no limit.",
      Limits::between(0, most));
  v.field("z_loss", c.z_loss,
          "Training: factor on (log of the sum of exp scores)², which keeps scores small.",
          Limits::at_least(0));
  v.field("first_dense", c.first_dense, "The first layers, which have one feed-forward network.",
          Limits::between(0, most));
  v.field("every", c.every, "After these, every n-th layer has experts.", Limits::between(1, most));
  v.field("dense_layers", c.dense_layers, "Further layers with one network, counted from 0.",
          Limits::between(0, most));
}

void validate(const ExpertsConfig& c, const Complain& complain) {
  if (c.active > c.count)
    complain("active", fmt::format("{} of {} experts cannot work for a token", c.active, c.count));
  if (c.count % c.groups != 0)
    complain("groups", fmt::format("{} experts are not a multiple of {} groups", c.count, c.groups));
  else if (c.active_groups > c.groups)
    complain("active_groups", fmt::format("is more than there are groups, {}", c.groups));
  else if (c.active > c.active_groups * (c.count / c.groups))
    complain("active", "is more than the experts of the groups that are chosen");
  else if (c.group_score == GroupScore::top_two && c.count / c.groups < 2)
    complain("group_score", "top_two needs groups of at least two experts");
  if (c.router == Router::softmax_after_top_k && c.normalize)
    complain("normalize",
             "has no effect on router softmax_after_top_k, whose weights sum to 1: set it to false");
  if (c.bias_rate > 0 && !c.choice_bias) complain("bias_rate", "changes choice_bias: set it to true");
  if (c.balance_over == BalanceOver::step && c.balance == 0)
    complain("balance_over", "has no effect without balance");
  if (c.chooser == Chooser::experts) {
    const std::string_view reason = "is for tokens that choose their experts: leave it out";
    if (c.capacity > 0) complain("capacity", reason);
    if (c.z_loss > 0) complain("z_loss", reason);
    if (c.groups > 1) complain("groups", reason);
    if (c.normalize) complain("normalize", "is for tokens that choose their experts: set it to false");
    if (c.balance_over != BalanceOver::row) complain("balance_over", reason);
  }
  if (c.shared_gate && !c.shared_d_ff) complain("shared_gate", "needs shared_d_ff");
}

namespace {

/// The shortest list that says the same of `n` layers; empty: all of them.
std::vector<int64_t> shortest_turns(const RotaryConfig& rotary, int64_t n) {
  std::vector<int64_t> all;
  for (int64_t layer = 0; layer < n; ++layer) all.push_back(rotary.is_turned(layer) ? 1 : 0);
  if (std::ranges::find(all, 0) == all.end()) return {};
  size_t period = 1;
  const auto repeats = [&] {
    for (size_t i = period; i < all.size(); ++i) {
      if (all[i] != all[i - period]) return false;
    }
    return true;
  };
  while (!repeats()) ++period;
  all.resize(period);
  return all;
}

}  // namespace

ModelConfig resolved(ModelConfig config) {
  config.n_kv_heads = config.kv_heads();
  config.head_dim = config.head_width();
  config.rotary.turns = shortest_turns(config.rotary, std::max(config.n_layers, config.decoder_layers()));
  config.d_ff = config.feed_forward_width();
  if (auto& experts = config.experts) {
    experts->d_ff = experts->d_ff.value_or(*config.d_ff);
    bool is_everywhere = true;
    for (int64_t i = 0; i < config.n_layers; ++i) is_everywhere = is_everywhere && experts->in_layer(i);
    if (is_everywhere) config.d_ff = experts->d_ff;  // no layer has a network of another width
  }
  config.n_decoder_layers = config.decoder_layers();
  config.key_bias = config.has_key_bias();
  for (auto* const bias : {&config.qkv_bias, &config.out_bias, &config.ff_bias})
    *bias = bias->value_or(config.bias);
  return config;
}

NormOptions norm_options(const ModelConfig& config, int64_t size) {
  return NormOptions(size)
      .formula(norm_types().at(config.norm).make(config.norm))
      .eps(config.norm_eps)
      .bias(config.bias)
      .unit_offset(config.norm_unit_offset);
}

}  // namespace zoo

#include "models/cost.h"

#include <fmt/format.h>

#include "models/stack.h"

namespace zoo {
namespace {

constexpr int64_t kFloatBytes = 4;

class Accountant {
 public:
  Accountant(const ModelConfig& config, int64_t length) : c_(config), length_(length) {}

  void token_embedding(const std::string& name, int64_t vocab_size) {
    add({.name = name,
         .kind = "embedding",
         .shape = fmt::format("{} × {}", vocab_size, c_.d_model),
         .parameters = vocab_size * c_.d_model,
         .activation_bytes_per_token = c_.d_model * kFloatBytes});
  }

  void stack(const std::string& name, StackRole role) {
    if (c_.position == Position::learned) table(name + ".position_embedding", c_.max_positions, c_.d_model);
    if (c_.n_segments > 0) table(name + ".segment_embedding", c_.n_segments, c_.d_model);
    if (c_.embedding_norm) norm(name + ".embedding_norm", c_.d_model);
    if (c_.position == Position::t5) table(name + ".position_bias.buckets", c_.relative_buckets, c_.n_heads);
    const bool with_memory = role == StackRole::decoder_with_memory;
    const int64_t n_layers = with_memory ? c_.decoder_layers() : c_.n_layers;
    for (int64_t i = 0; i < n_layers; ++i) {
      const auto prefix = fmt::format("{}.layers.{}", name, i);
      attention(prefix + ".self_attention", "self-attention", c_.position == Position::shaw);
      if (with_memory) attention(prefix + ".cross_attention", "cross-attention", false);
      feed_forward(prefix + ".feed_forward");
      layer_norms(prefix + ".residual", with_memory ? 3 : 2);
    }
    if (wants_final_norm(c_.norm_placement)) norm(name + ".final_norm", c_.d_model);
  }

  void head(const ModelPurpose& purpose, int64_t vocab_size) {
    if (purpose.head == Head::classification) {
      if (c_.architecture == Architecture::encoder && c_.pooler)
        once("head.pooler", c_.d_model, c_.d_model, true);
      once("head.classifier", c_.d_model, purpose.n_classes, true);
      return;
    }
    if (purpose.head == Head::masked_language_modeling && c_.mlm_transform) {
      linear("head.transform", "linear", c_.d_model, c_.d_model, true);
      norm("head.norm", c_.d_model);
    }
    add({.name = "head.output",
         .kind = "output projection",
         .shape = fmt::format("{} → {}{}", c_.d_model, vocab_size, c_.tie_embeddings ? ", tied" : ""),
         .parameters = (c_.tie_embeddings ? 0 : c_.d_model * vocab_size) + (c_.output_bias ? vocab_size : 0),
         .flops_per_token = 2.0 * static_cast<double>(c_.d_model * vocab_size),
         .activation_bytes_per_token = vocab_size * kFloatBytes});
  }

  std::vector<LayerCost> take() { return std::move(layers_); }

 private:
  void add(LayerCost layer) { layers_.push_back(std::move(layer)); }

  void table(const std::string& name, int64_t rows, int64_t width) {
    add({.name = name,
         .kind = "embedding",
         .shape = fmt::format("{} × {}", rows, width),
         .parameters = rows * width});
  }

  int64_t norm_parameters(int64_t size) const {
    const bool centred = c_.norm == NormKind::layer_norm || c_.norm == NormKind::layer_norm_annotated;
    return centred && c_.bias ? 2 * size : size;
  }

  void norm(const std::string& name, int64_t size, int64_t count = 1) {
    add({.name = name,
         .kind = "norm",
         .shape = count == 1 ? fmt::format("{}", size) : fmt::format("{} × {}", count, size),
         .parameters = count * norm_parameters(size),
         .activation_bytes_per_token = count * size * kFloatBytes});
  }

  void layer_norms(const std::string& name, int64_t n_sub_layers) {
    switch (c_.norm_placement) {
      case NormPlacement::parallel:
        return norm(name, c_.d_model);
      case NormPlacement::sandwich:
        return norm(name, c_.d_model, 2 * n_sub_layers);
      default:
        return norm(name, c_.d_model, n_sub_layers);
    }
  }

  void linear(const std::string& name, const std::string& kind, int64_t from, int64_t to, bool bias) {
    add({.name = name,
         .kind = kind,
         .shape = fmt::format("{} → {}", from, to),
         .parameters = from * to + (bias ? to : 0),
         .flops_per_token = 2.0 * static_cast<double>(from * to),
         .activation_bytes_per_token = to * kFloatBytes});
  }

  // A map that is applied once a sequence.
  void once(const std::string& name, int64_t from, int64_t to, bool bias) {
    linear(name, "linear", from, to, bias);
    layers_.back().flops_per_token /= static_cast<double>(length_);
    layers_.back().activation_bytes_per_token /= length_;
  }

  void attention(const std::string& name, const std::string& kind, bool shaw) {
    const int64_t q_width = c_.n_heads * c_.head_width(), kv_width = c_.kv_heads() * c_.head_width();
    const bool qkv_bias = c_.qkv_bias.value_or(c_.bias);
    int64_t parameters = 2 * c_.d_model * q_width + 2 * c_.d_model * kv_width;
    const double products = 2.0 * static_cast<double>(parameters);
    if (qkv_bias) parameters += q_width + 2 * kv_width;
    if (c_.bias) parameters += c_.d_model;
    if (c_.qk_norm) parameters += 2 * norm_parameters(c_.head_width());
    if (shaw) parameters += 2 * (2 * c_.relative_max_distance + 1) * c_.head_width();
    // QKᵀ and the mixing of V; Shaw's vectors go through the same two again.
    const double scores = (shaw ? 8.0 : 4.0) * static_cast<double>(length_ * q_width);
    add({.name = name,
         .kind = kind,
         .shape = fmt::format("{} heads of {}, {} for keys and values", c_.n_heads, c_.head_width(),
                              c_.kv_heads()),
         .parameters = parameters,
         .flops_per_token = products + scores,
         .activation_bytes_per_token = (2 * q_width + 2 * kv_width + c_.d_model) * kFloatBytes});
  }

  void feed_forward(const std::string& name) {
    const int64_t d_ff = c_.feed_forward_width();
    const int64_t n_in = is_gated(c_.activation) ? 2 : 1;
    const int64_t weights = (n_in + 1) * c_.d_model * d_ff;
    // What goes into the activation and what comes out of it; SwiGLU's own pass keeps no silu(gate).
    const int64_t n_kept = c_.activation == Activation::swiglu ? 3 : 2 * n_in;
    add({.name = name,
         .kind = "feed-forward",
         .shape = fmt::format("{} → {} → {}, {}", c_.d_model, d_ff, c_.d_model, name_of(c_.activation)),
         .parameters = weights + (c_.bias ? n_in * d_ff + c_.d_model : 0),
         .flops_per_token = 2.0 * static_cast<double>(weights),
         .activation_bytes_per_token = (n_kept * d_ff + c_.d_model) * kFloatBytes});
  }

  const ModelConfig& c_;
  int64_t length_;
  std::vector<LayerCost> layers_;
};

/// Products of one batch, in multiply-adds. The same terms as in Accountant, but for lengths that differ from
/// side to side and batch to batch; the two are held against each other in the tests.
class PassCounter {
 public:
  PassCounter(const ModelConfig& config, const PassShape& shape)
      : c_(config), batch_(static_cast<double>(shape.batch_size)) {}

  /// A stack over T tokens, with cross-attention over S tokens of memory if S > 0.
  double stack(int64_t n_layers, int64_t length, int64_t memory_length) const {
    const auto t = static_cast<double>(length), s = static_cast<double>(memory_length);
    double layer = self_attention(t) + feed_forward(t);
    if (memory_length > 0) layer += cross_attention(t, s);
    return static_cast<double>(n_layers) * layer;
  }

  double head(const ModelPurpose& purpose, int64_t vocab_size, int64_t n_targets) const {
    const auto n = static_cast<double>(n_targets), classes = static_cast<double>(purpose.n_classes);
    if (purpose.head == Head::classification) {
      const bool pools = c_.architecture == Architecture::encoder && c_.pooler;
      return n * d_ * ((pools ? d_ : 0) + classes);
    }
    const bool transforms = purpose.head == Head::masked_language_modeling && c_.mlm_transform;
    return n * d_ * ((transforms ? d_ : 0) + static_cast<double>(vocab_size));
  }

 private:
  double self_attention(double t) const {
    const double shaw = c_.position == Position::shaw ? 2 : 1;  // vectors of distances beside keys and values
    return batch_ * t * (d_ * (2 * q_ + 2 * kv_) + shaw * 2 * t * q_);
  }
  double cross_attention(double t, double s) const {
    return batch_ * (t * d_ * 2 * q_ + s * d_ * 2 * kv_ + 2 * t * s * q_);
  }
  double feed_forward(double t) const {
    const double matrices = is_gated(c_.activation) ? 3 : 2;
    return batch_ * t * matrices * d_ * static_cast<double>(c_.feed_forward_width());
  }

  const ModelConfig& c_;
  double batch_;
  double d_ = static_cast<double>(c_.d_model);
  double q_ = static_cast<double>(c_.n_heads * c_.head_width());
  double kv_ = static_cast<double>(c_.kv_heads() * c_.head_width());
};

}  // namespace

PassShape pass_shape(const Batch& batch) {
  return {.batch_size = batch.input.batch_size(),
          .length = batch.input.length(),
          .decoder_length = batch.decoder.defined() ? batch.decoder.length() : 0,
          .n_targets = batch.n_targets()};
}

double forward_flops(const ModelConfig& config, const ModelPurpose& purpose, const PassShape& shape) {
  const PassCounter counter(config, shape);
  double products = counter.head(purpose, config.vocab_size.value_or(purpose.vocab_size), shape.n_targets);
  products += counter.stack(config.n_layers, shape.length, 0);
  if (config.architecture == Architecture::encoder_decoder)
    products += counter.stack(config.decoder_layers(), shape.decoder_length, shape.length);
  return 2 * products;
}

ModelCost model_cost(const ModelConfig& config, const ModelPurpose& purpose, int64_t length) {
  check_model(config, purpose);
  const int64_t vocab_size = config.vocab_size.value_or(purpose.vocab_size);
  Accountant accountant(config, length);
  accountant.token_embedding("token_embedding", vocab_size);
  switch (config.architecture) {
    case Architecture::encoder:
      accountant.stack("encoder", StackRole::encoder);
      break;
    case Architecture::decoder:
      accountant.stack("decoder", StackRole::decoder);
      break;
    case Architecture::encoder_decoder:
      if (!config.share_embeddings) accountant.token_embedding("source_token_embedding", vocab_size);
      accountant.stack("encoder", StackRole::encoder);
      accountant.stack("decoder", StackRole::decoder_with_memory);
      break;
  }
  accountant.head(purpose, vocab_size);

  const bool two_sides = config.architecture == Architecture::encoder_decoder;
  const int64_t cached_layers = two_sides ? config.decoder_layers() : config.n_layers;
  ModelCost cost{.layers = accountant.take()};
  int64_t one_side_bytes = 0;  // kept for a token of the source or of the target, not for both
  for (const auto& layer : cost.layers) {
    cost.parameters += layer.parameters;
    cost.flops_per_token += two_sides ? layer.flops_per_token / 2 : layer.flops_per_token;
    const bool on_one_side = two_sides && !(config.share_embeddings && layer.name == "token_embedding");
    (on_one_side ? one_side_bytes : cost.activation_bytes_per_token) += layer.activation_bytes_per_token;
  }
  cost.activation_bytes_per_token += one_side_bytes / 2;
  cost.weight_bytes = cost.parameters * kFloatBytes;
  cost.training_bytes = 4 * cost.weight_bytes;
  cost.cache_bytes_per_token = 2 * cached_layers * config.kv_heads() * config.head_width() * kFloatBytes;
  return cost;
}

}  // namespace zoo

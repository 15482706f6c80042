#pragma once
// The `model:` part of a configuration. Its keys describe every architecture of the zoo.

#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/config/config_file.h"
#include "io/config/registry.h"
#include "layers/attention/attention.h"
#include "layers/attention/position_bias.h"
#include "layers/attention/positions.h"
#include "layers/attention/rotary.h"
#include "layers/experts.h"
#include "layers/feed_forward.h"
#include "layers/residual.h"
#include "layers/weights/norm.h"

namespace zoo {

/// The library's model families. Programs add their own to model_families() (models/families/families.h).
enum class Architecture { encoder, decoder, encoder_decoder };
constexpr auto config_names(Architecture) {
  return std::to_array<std::string_view>({"encoder", "decoder", "encoder_decoder"});
}

/// `model.architecture`: the name of a family, and the keys of that family.
using FamilySelection = KindSelection<Architecture>;

/// The positions that each position of a stack sees.
enum class StackRole {
  encoder,              // all positions
  decoder,              // the past
  decoder_with_memory,  // the past and an encoder's output
};
constexpr auto config_names(StackRole) {
  return std::to_array<std::string_view>({"encoder", "decoder", "decoder_with_memory"});
}

/// How a model encodes the order of its tokens.
enum class Position { none, sinusoidal, learned, rotary, alibi, t5, shaw, convolution, grid };
constexpr auto config_names(Position) {
  return std::to_array<std::string_view>(
      {"none", "sinusoidal", "learned", "rotary", "alibi", "t5", "shaw", "convolution", "grid"});
}

/// Initial weights.
///   normal          N(0, init_std²), biases 0 (GPT-2, BERT)
///   xavier_uniform  Glorot & Bengio 2010, as in "The Annotated Transformer"; embeddings N(0, 1/D)
///   detr            xavier_uniform, object queries N(0, 1), learned positions U(0, 1) (Carion et al. 2020)
///   t5              variances by fan-in, without 1/√Dh in attention (mesh-tensorflow's T5)
enum class Initialization { normal, xavier_uniform, detr, t5 };
constexpr auto config_names(Initialization) {
  return std::to_array<std::string_view>({"normal", "xavier_uniform", "detr", "t5"});
}

/// The activation behind the pooler: tanh in BERT, RoBERTa and BART, relu in DistilBERT, gelu in ELECTRA,
/// gelu_tanh in BigBird.
enum class PoolerActivation { tanh, relu, gelu, gelu_tanh };
constexpr auto config_names(PoolerActivation) {
  return std::to_array<std::string_view>({"tanh", "relu", "gelu", "gelu_tanh"});
}

/// The class that stands for "no token" in a model that is trained with CTC: one more behind those of the
/// vocabulary, or the vocabulary's padding token (wav2vec 2.0).
enum class CtcBlank { last, padding };
constexpr auto config_names(CtcBlank) { return std::to_array<std::string_view>({"last", "padding"}); }

/// Which vectors embedding_width's map leads to d_model: the sum of those of tokens, positions and segments
/// (ELECTRA, ALBERT), or those of tokens, without a bias (OPT-350m).
enum class EmbeddingMap { last, first };
constexpr auto config_names(EmbeddingMap) { return std::to_array<std::string_view>({"last", "first"}); }

/// The vector of a text that an encoder's head reads: that of its first token (BERT), or the mean of all.
enum class TextVector { first, mean };
constexpr auto config_names(TextVector) { return std::to_array<std::string_view>({"first", "mean"}); }

/// `model.rotary:`, see RotaryOptions.
struct RotaryConfig {
  double theta = 10000.0;
  /// Base in the layers whose attention is a window, and which are never scaled (Gemma 3); default: as in the
  /// other layers.
  std::optional<double> local_theta;
  RotaryLayout layout = RotaryLayout::half;
  double fraction = 1.0;
  /// Whether a layer is turned (1) or not (0), repeated over the layers (SmolLM3: 1, 1, 1, 0); empty: all
  /// are.
  std::vector<int64_t> turns = {};
  RotaryScaling scaling = RotaryScaling::none;
  double factor = 1.0;
  int64_t original_max_positions = 2048;
  double beta_fast = 32.0, beta_slow = 1.0;
  bool rounded = true;
  std::optional<double> attention_factor;
  double low_frequency_factor = 1.0, high_frequency_factor = 4.0;
  std::vector<double> divisors;  // longrope
  /// m, yarn: scores of self-attention × (0.1·m·ln(factor) + 1)² (DeepSeek); 0: as they are.
  double mscale_all_dim = 0;

  /// The factor on scores that mscale_all_dim gives.
  double score_factor() const {
    if (scaling != RotaryScaling::yarn || mscale_all_dim == 0 || factor <= 1) return 1;
    const double root = 0.1 * mscale_all_dim * std::log(factor) + 1;
    return root * root;
  }
  bool is_turned(int64_t layer) const {
    return turns.empty() || turns[static_cast<size_t>(layer) % turns.size()] != 0;
  }
};
void describe(ConfigVisitor& v, RotaryConfig& c);

/// `model.experts:`, see ExpertsOptions.
struct ExpertsConfig {
  int64_t count = 8;
  int64_t active = 2;
  std::optional<int64_t> d_ff = {};         // of an expert; default model.d_ff
  std::optional<int64_t> shared_d_ff = {};  // of the network for every token; default: none
  bool shared_gate = false;
  Router router = Router::softmax;
  bool router_bias = false;
  Chooser chooser = Chooser::tokens;
  bool normalize = true;
  double scale = 1;
  bool choice_bias = false;
  int64_t groups = 1, active_groups = 1;
  GroupScore group_score = GroupScore::max;
  double balance = 0.01, z_loss = 0;
  BalanceOver balance_over = BalanceOver::row;
  double bias_rate = 0;  // see adjust_bias(); needs choice_bias
  double capacity = 0;   // 0: no limit
  /// The layers with experts: every `every`-th one, counted from the end of the first `first_dense` ones.
  int64_t first_dense = 0, every = 1;
  std::vector<int64_t> dense_layers = {};  // further layers without experts

  bool in_layer(int64_t layer) const;
};
void describe(ConfigVisitor& v, ExpertsConfig& c);
void validate(const ExpertsConfig& c, const Complain& complain);

struct ModelConfig {
  FamilySelection architecture = Architecture::decoder;
  std::optional<int64_t> vocab_size;  // default: the tokenizer's
  int64_t d_model = 512;
  int64_t n_layers = 6;
  std::optional<int64_t> n_decoder_layers;  // encoder_decoder, detr, whisper: default n_layers
  /// So many different layers in a stack: n_layers / layer_groups neighbours have the same weights (ALBERT:
  /// 1). Default: all differ.
  std::optional<int64_t> layer_groups = {};
  int64_t n_heads = 8;
  std::optional<int64_t> n_kv_heads;                        // default n_heads
  std::optional<int64_t> head_dim;                          // default d_model / n_heads
  std::optional<int64_t> d_ff;                              // default 4·d_model
  std::optional<ExpertsConfig> experts;                     // default: one feed-forward network a layer
  KindSelection<Activation> activation = Activation::gelu;  // of activation_types()
  GateProjection gate = GateProjection::separate;
  KindSelection<NormKind> norm = NormKind::layer_norm;  // of norm_types()
  double norm_eps = 1e-5;
  bool norm_unit_offset = false;
  NormPlacement norm_placement = NormPlacement::pre;
  KindSelection<Position> position = Position::learned;  // of position_types()
  /// A second encoding, beside `position`: numbers that are added to scores (MPNet: t5).
  KindSelection<Position> score_position = Position::none;
  /// Whether each layer has numbers of its own that are added to scores; false: a stack's layers share them.
  bool score_bias_by_layer = false;
  /// The places of a picture, for positions on a grid. No key: the family sets it.
  std::optional<GridShape> grid = {};
  int64_t max_positions = 1024;  // the most positions that generation uses; learned: also rows of the table
  /// learned, sinusoidal: the rows of the table before position 0 (RoBERTa, BART, M2M100: 2).
  int64_t position_offset = 0;
  SinusoidLayout sinusoid_layout = SinusoidLayout::interleaved;  // sinusoidal
  bool stored_sinusoids =
      false;  // sinusoidal: a buffer of max_positions rows, see SinusoidalPositionsOptions
  RotaryConfig rotary;
  int64_t relative_buckets = 32;                           // t5
  int64_t relative_max_distance = 128;                     // t5, shaw
  std::vector<Selection> attention = {Selection("full")};  // of mixer_types(); repeated over the layers
  Projection projection = Projection::separate;
  bool bias = true;              // in linear maps and norms
  std::optional<bool> qkv_bias;  // of query, key and value maps; default: bias
  std::optional<bool> key_bias;  // of key maps, if separate; default: qkv_bias
  std::optional<bool> out_bias;  // of the attention's output map; default: bias
  std::optional<bool> ff_bias;   // of the feed-forward; default: bias
  bool qk_norm = false;
  QkNormWidth qk_norm_width = QkNormWidth::head;
  std::optional<double> qkv_clip;         // c: queries, keys and values are kept within [-c, c] (OLMo: 8)
  bool attention_sinks = false;           // self-attention: see AttentionOptions
  bool attention_gate = false;            // self-attention: see AttentionOptions
  std::optional<double> attention_scale;  // default 1/√head_dim
  bool attention_scale_by_layer =
      false;  // self-attention in layer i = 1, 2, …: scores also / i (Mistral's GPT-2)
  std::optional<double> attention_softcap;  // c: scores become c·tanh(scores/c) (Gemma 2: 50)
  double dropout = 0.1;                     // on embeddings and sub-layer outputs
  double attention_dropout = 0.0;           // on attention weights
  double activation_dropout = 0.0;          // inside the feed-forward
  std::optional<double> layer_scale;        // see ResidualOptions
  double residual_scale = 1.0;              // factor on the sub-layer outputs (Granite: 0.22)
  double stochastic_depth = 0.0;            // in the last layer; 0 in the first, and in between in proportion
  bool tie_embeddings = true;               // the output projection uses the matrix of the token embedding
  bool share_embeddings = true;             // encoder_decoder: one table for both sides
  bool scale_embeddings = false;            // token vectors × √d_model
  std::optional<double> embedding_scale;    // token vectors × this (Granite: 12), in place of it
  bool embedding_norm = false;              // a norm on the embeddings (BERT)
  /// E: the width of the table of tokens. A linear map leads to D (ELECTRA, ALBERT, OPT-350m); before the
  /// output another one leads back. Default: d_model, without maps.
  std::optional<int64_t> embedding_width = {};
  EmbeddingMap embedding_map = EmbeddingMap::last;  // from E to D
  /// pre: whether the first layer has a norm before its first sub-layer, whose input embedding_norm may have
  /// brought into form (ModernBERT: false).
  bool first_norm = true;
  /// Whether a stack ends with a norm, where norm_placement has one.
  bool final_norm = true;
  int64_t n_segments = 0;  // encoder: sentence A/B embeddings (BERT: 2)
  /// encoder: the id of the mask token, whose vectors are zeros. The others are scaled as if 12 % of the
  /// tokens were masked, as in the training of ESM (Lin et al. 2023): see token_dropout_factors().
  std::optional<int64_t> token_dropout;
  bool contact_regression = false;  // encoder: see ContactRegression
  bool output_bias = false;         // in the output projection
  /// Factor on the hidden states before the output projection (T5 with tied embeddings: D^-0.5).
  std::optional<double> output_scale;
  std::optional<double> logits_softcap;  // c: token logits become c·tanh(logits/c) (Gemma 2: 30)
  bool mlm_transform = true;  // masked language modelling: dense + activation + norm before the projection
  /// Dense + activation on the class token (BERT), or on the last token of an encoder_decoder (BART): in
  /// encoder and encoder_decoder for classification, in encoder and vit without a head.
  bool pooler = true;
  PoolerActivation pooler_activation = PoolerActivation::tanh;
  bool pooler_norm = false;                    // a norm behind the pooler's activation (ModernBERT)
  bool head_bias = true;                       // in the dense map of a head: mlm_transform, pooler
  TextVector text_vector = TextVector::first;  // encoder: what heads that classify texts read
  bool classifier_bias = true;                 // in the last map of a head that classifies
  CtcBlank ctc_blank = CtcBlank::last;         // of a head that is trained with CTC
  Initialization init = Initialization::normal;
  double init_std = 0.02;
  /// init normal: output matrices of sub-layers start with deviation init_std/√(2·n_layers) (GPT-2).
  bool init_residual_scaling = true;

  // The values of optional keys with defaults applied.
  int64_t kv_heads() const { return n_kv_heads.value_or(n_heads); }
  int64_t head_width() const { return head_dim.value_or(d_model / n_heads); }
  /// Rows of a table of learned positions.
  int64_t position_rows() const { return max_positions + position_offset; }
  int64_t rotary_width() const { return std::llround(static_cast<double>(head_width()) * rotary.fraction); }
  int64_t feed_forward_width() const { return d_ff.value_or(4 * d_model); }
  bool has_key_bias() const { return key_bias.value_or(qkv_bias.value_or(bias)); }
  int64_t decoder_layers() const { return n_decoder_layers.value_or(n_layers); }
  /// E, see embedding_width.
  int64_t table_width() const { return embedding_width.value_or(d_model); }
  /// The width of the tables of positions and segments, and of the norm on their sum with vectors of tokens.
  int64_t sum_width() const { return embedding_map == EmbeddingMap::first ? d_model : table_width(); }
  /// Whether layer `layer` of a stack of n layers has the weights of the layer before it, see layer_groups.
  bool repeats_layer(int64_t layer, int64_t n) const {
    if (!layer_groups || layer == 0) return false;
    return layer * *layer_groups / n == (layer - 1) * *layer_groups / n;
  }
  /// The mixer of layer `layer` of a stack.
  const Selection& attention_of(int64_t layer) const {
    return attention[static_cast<size_t>(layer) % attention.size()];
  }
};

/// The same configuration with values for the keys whose default follows from other keys.
ModelConfig resolved(ModelConfig config);

/// The configuration's options for a norm over `size` numbers.
NormOptions norm_options(const ModelConfig& config, int64_t size);

}  // namespace zoo

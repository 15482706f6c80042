#include "models/config/layer_types.h"

#include <utility>
#include <vector>

#include "layers/weights/embedding.h"

namespace zoo {
namespace {

NormType norm(NormKind kind, std::string doc) {
  NormType type;
  type.name = name_of(kind);
  type.doc = std::move(doc);
  type.make = [kind](const Selection&) { return norm_formula(kind); };
  return type;
}

ActivationType activation(Activation kind, std::string doc) {
  ActivationType type;
  type.name = name_of(kind);
  type.doc = std::move(doc);
  type.make = [kind](const Selection&) { return activation_function(kind); };
  return type;
}

PositionType position(Position kind, std::string doc) {
  PositionType type;
  type.name = name_of(kind);
  type.doc = std::move(doc);
  return type;
}

PositionType sinusoidal() {
  auto type = position(Position::sinusoidal, "Sines and cosines are added to the vectors of tokens.");
  type.make_added = [](const ModelConfig& config) -> std::shared_ptr<AddedPositionsImpl> {
    auto options = SinusoidalPositionsOptions(config.sum_width())
                       .layout(config.sinusoid_layout)
                       .offset(config.position_offset);
    if (config.stored_sinusoids) options.stored(config.max_positions);
    return std::make_shared<SinusoidalPositionsImpl>(options);
  };
  return type;
}

PositionType learned() {
  auto type = position(Position::learned, "A learned vector for each position is added to those of tokens.");
  type.make_added = [](const ModelConfig& config) -> std::shared_ptr<AddedPositionsImpl> {
    return std::make_shared<LearnedPositionsImpl>(
        LearnedPositionsOptions(config.max_positions, config.sum_width()).offset(config.position_offset));
  };
  type.count = [](CostAccount& account, const std::string& name, const ModelConfig& config) {
    count_table(account, name, config.position_rows(), config.sum_width());
  };
  return type;
}

PositionType alibi() {
  auto type = position(Position::alibi, "Scores fall with the distance, in each head at its own rate.");
  type.make_bias = [](const ModelConfig& config, Direction) -> std::shared_ptr<ScoreBiasImpl> {
    return std::make_shared<AlibiBiasImpl>(AlibiBiasOptions(config.n_heads));
  };
  return type;
}

PositionType t5() {
  auto type = position(Position::t5, "A learned number for each range of distances is added to scores.");
  type.make_bias = [](const ModelConfig& config, Direction direction) -> std::shared_ptr<ScoreBiasImpl> {
    return std::make_shared<T5BiasImpl>(T5BiasOptions(config.n_heads)
                                            .direction(direction)
                                            .n_buckets(config.relative_buckets)
                                            .max_distance(config.relative_max_distance));
  };
  type.count = [](CostAccount& account, const std::string& name, const ModelConfig& config) {
    count_table(account, account.path(name, "buckets"), config.relative_buckets, config.n_heads);
  };
  return type;
}

ConvolutionalPositionsOptions convolution_options(const ModelConfig& config) {
  const auto& keys = config.position.as<ConvolutionPositionConfig>();
  return ConvolutionalPositionsOptions(config.sum_width()).kernel_size(keys.kernel_size).groups(keys.groups);
}

PositionType convolution() {
  auto type = position(Position::convolution,
                       "A convolution over the vectors of an encoder, whose outputs are added to them.");
  type.make_options = options_of<ConvolutionPositionConfig>();
  type.make_found = [](const ModelConfig& config) -> std::shared_ptr<FoundPositionsImpl> {
    return std::make_shared<ConvolutionalPositionsImpl>(convolution_options(config));
  };
  type.count_found = [](CostAccount& account, const std::string& name, const ModelConfig& config,
                        double n_tokens) {
    count_convolutional_positions(account, name, convolution_options(config), n_tokens);
  };
  return type;
}

PositionType grid() {
  auto type = position(Position::grid,
                       "A learned number for each distance on the grid of a picture is added to scores.");
  type.needs_grid = true;
  type.make_bias = [](const ModelConfig& config, Direction) -> std::shared_ptr<ScoreBiasImpl> {
    return std::make_shared<GridBiasImpl>(GridBiasOptions(config.n_heads, config.grid.value()));
  };
  type.count = [](CostAccount& account, const std::string& name, const ModelConfig& config) {
    count_table(account, account.path(name, "numbers"), config.grid.value().n_distances(), config.n_heads);
  };
  return type;
}

std::vector<PositionType> library_positions() {
  return {position(Position::none, "The model does not see the order, except by causality."),
          sinusoidal(),
          learned(),
          position(Position::rotary, "Queries and keys are turned by angles that grow with the position."),
          alibi(),
          t5(),
          position(Position::shaw, "A learned vector for each distance is added to keys."),
          convolution(),
          grid()};
}

}  // namespace

void describe(ConfigVisitor& v, ConvolutionPositionConfig& c) {
  constexpr double widest = 1 << 12;
  v.field("kernel_size", c.kernel_size, "Places that the kernel reads.", Limits::between(1, widest));
  v.field(
      "groups", c.groups,
      "Groups of neighbouring numbers of a vector, each of which reads itself only; a divisor of d_model.",
      Limits::between(1, 1 << 20));
}

Registry<NormType>& norm_types() {
  static Registry<NormType> types(
      "norm",
      {norm(NormKind::layer_norm, "Mean 0 and deviation 1, then a gain and a bias."),
       norm(NormKind::layer_norm_annotated,
            "Layer norm as \"The Annotated Transformer\" has it: n - 1, epsilon outside."),
       norm(NormKind::rms_norm, "Root mean square 1, then a gain."),
       norm(NormKind::rms_norm_outside, "Root mean square 1 with epsilon outside the root, then a gain."),
       norm(NormKind::layer_norm_plain, "Mean 0 and deviation 1, without weights (OLMo).")});
  return types;
}

Registry<ActivationType>& activation_types() {
  static Registry<ActivationType> types(
      "activation", {activation(Activation::relu, "max(0, x)."), activation(Activation::gelu, "x Φ(x)."),
                     activation(Activation::gelu_tanh, "An approximation of gelu by tanh (GPT-2)."),
                     activation(Activation::silu, "x times its sigmoid."),
                     activation(Activation::quick_gelu, "x sigmoid(1.702 x) (CLIP)."),
                     activation(Activation::swiglu, "A gate with silu."),
                     activation(Activation::geglu, "A gate with gelu."),
                     activation(Activation::geglu_tanh, "A gate with gelu_tanh."),
                     activation(Activation::reglu, "A gate with relu."),
                     activation(Activation::swiglu_clamped,
                                "A gate with x sigmoid(1.702 x), both parts within 7 (gpt-oss).")});
  return types;
}

Registry<PositionType>& position_types() {
  static Registry<PositionType> types("position", library_positions());
  return types;
}

std::shared_ptr<const ActivationFunction> activation_of(const ModelConfig& config) {
  return activation_types().at(config.activation).make(config.activation);
}

MakeFoundPositions found_positions_of(const ModelConfig& config) {
  const auto& type = position_types().at(config.position);
  if (!type.make_found) return nullptr;
  return [&type, config] { return type.make_found(config); };
}

void count_found_positions(CostAccount& account, const std::string& name, const ModelConfig& config,
                           double n_tokens) {
  const auto& type = position_types().at(config.position);
  if (type.make_found && type.count_found) type.count_found(account, name, config, n_tokens);
}

const PositionType& score_bias_type(const ModelConfig& config) {
  const auto& type = position_types().at(config.position);
  return type.make_bias ? type : position_types().at(config.score_position);
}

bool needs_scores(const ModelConfig& config) {
  return config.position == Position::shaw || score_bias_type(config).make_bias;
}

}  // namespace zoo

#include "models/stack.h"

#include <array>
#include <utility>

#include <fmt/format.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/autocast.h"
#include "base/error.h"
#include "base/named_enum.h"
#include "layers/weights/description.h"
#include "models/config/layer_types.h"
#include "models/embedder.h"
#include "models/mixers/mixers.h"

namespace zoo {

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
      .rounded(r.rounded)
      .attention_factor(r.attention_factor)
      .low_frequency_factor(r.low_frequency_factor)
      .high_frequency_factor(r.high_frequency_factor)
      .divisors(r.divisors);
}

namespace {

/// The rotary options of the layers with a window, which may have a base of their own.
RotaryOptions local_rotary_options(const ModelConfig& config) {
  return rotary_options(config)
      .theta(*config.rotary.local_theta)
      .scaling(RotaryScaling::none)
      .factor(1)
      .rounded(true);
}

/// The tensors of a context, besides x, that may need gradients. Masks and rotary tables never do.
std::array<torch::Tensor*, 5> differentiable(LayerContext& context) {
  return {&context.self.bias, &context.self.query_positions, &context.cross.memory,
          &context.cross.query_positions, &context.cross.memory_positions};
}

/// layer(x, context), recomputed in the backward pass. Tensors that may need gradients become its inputs. The
/// layer also uses the modules in `shared`.
torch::Tensor recomputed_layer(const TransformerLayer& layer, const torch::Tensor& x,
                               const LayerContext& context, const SharedModules& shared) {
  std::vector<torch::Tensor> inputs = {x};
  std::vector<size_t> handed_over;
  LayerContext kept = context;
  const auto tensors = differentiable(kept);
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (!tensors[i]->defined()) continue;
    inputs.push_back(std::exchange(*tensors[i], {}));
    handed_over.push_back(i);
  }
  const auto call = [module = layer.ptr(), kept, handed_over,
                     table = context.self.rotary ? *context.self.rotary : RotaryTable{},
                     range = context.self.range ? *context.self.range : PositionRange()](const auto& given) {
    LayerContext again = kept;
    again.self.rotary = &table;
    again.self.range = &range;
    const auto places = differentiable(again);
    for (size_t i = 0; i < handed_over.size(); ++i) *places[handed_over[i]] = given[i + 1];
    return module->forward(given.front(), again);
  };
  auto parameters = layer->parameters();
  for (const auto& [name, module] : shared.all())
    for (const auto& parameter : module->parameters()) parameters.push_back(parameter);
  return recomputed(call, inputs, parameters);
}

/// The places of one layer.
class ObservedLayer {
 public:
  ObservedLayer() = default;
  ObservedLayer(ActivationObserver& observer, StackSide side, int64_t layer, StackRole role) {
    const auto at = [&](ActivationKind kind) {
      return ObservedPlace{.observer = &observer, .place = {.kind = kind, .layer = layer, .side = side}};
    };
    self_heads_ = at(ActivationKind::attention_heads);
    cross_heads_ = at(ActivationKind::cross_attention_heads);
    sub_layers_.push_back(at(ActivationKind::attention));
    if (role == StackRole::decoder_with_memory) sub_layers_.push_back(at(ActivationKind::cross_attention));
    sub_layers_.push_back(at(ActivationKind::feed_forward));
  }
  /// The context refers to this object from now on.
  void enter(LayerContext& context) const {
    context.self.heads = &self_heads_;
    context.cross.heads = &cross_heads_;
    context.sub_layers = sub_layers_;
  }

 private:
  ObservedPlace self_heads_, cross_heads_;
  std::vector<ObservedPlace> sub_layers_;
};

ExpertsOptions experts_options(const ModelConfig& config, const ExpertsConfig& experts) {
  const auto network = [&](int64_t d_ff) { return feed_forward_options(config).d_ff(d_ff); };
  auto options = ExpertsOptions(network(experts.d_ff.value_or(config.feed_forward_width())), experts.count,
                                experts.active)
                     .router(experts.router)
                     .router_bias(experts.router_bias)
                     .normalize(experts.normalize)
                     .scale(experts.scale)
                     .chooser(experts.chooser)
                     .choice_bias(experts.choice_bias)
                     .bias_rate(experts.bias_rate)
                     .capacity(experts.capacity)
                     .groups(experts.groups)
                     .active_groups(experts.active_groups)
                     .group_score(experts.group_score)
                     .shared_gate(experts.shared_gate)
                     .balance(experts.balance)
                     .balance_over(experts.balance_over)
                     .z_loss(experts.z_loss);
  if (experts.shared_d_ff) options.shared(network(*experts.shared_d_ff));
  return options;
}

bool has_final_norm(const ModelConfig& config) {
  return config.final_norm && wants_final_norm(config.norm_placement);
}

int64_t n_layers_of(const ModelConfig& config, StackRole role) {
  return role == StackRole::decoder_with_memory ? config.decoder_layers() : config.n_layers;
}

/// The rate grows in proportion to the number of the layer, from 0 (Huang et al. 2016).
double stochastic_depth(const ModelConfig& config, StackRole role, int64_t layer) {
  const int64_t last = n_layers_of(config, role) - 1;
  return last == 0 ? 0 : config.stochastic_depth * static_cast<double>(layer) / static_cast<double>(last);
}

}  // namespace

FeedForwardOptions feed_forward_options(const ModelConfig& config) {
  return FeedForwardOptions(config.d_model, config.feed_forward_width())
      .activation(activation_of(config))
      .bias(config.ff_bias.value_or(config.bias))
      .dropout(config.activation_dropout)
      .gate(config.gate);
}

TransformerLayerOptions layer_options(const ModelConfig& config, StackRole role, int64_t layer,
                                      std::shared_ptr<SharedModules> shared) {
  const MakeMixer make = [config, role, layer, shared = std::move(shared)] {
    const MixerPlace place{.model = config, .role = role, .layer = layer, .shared = shared.get()};
    return make_mixer(mixer_types().at(place.selection()), place);
  };
  auto options =
      TransformerLayerOptions(make, feed_forward_options(config), norm_options(config, config.d_model))
          .norm_placement(config.norm_placement)
          .dropout(config.dropout)
          .layer_scale(config.layer_scale)
          .residual_scale(config.residual_scale)
          .stochastic_depth(stochastic_depth(config, role, layer))
          .first_norm(config.first_norm || layer > 0);
  if (config.experts && config.experts->in_layer(layer))
    options.experts(experts_options(config, *config.experts));
  if (role == StackRole::decoder_with_memory) options.cross_attention(cross_attention_options(config));
  return options;
}

StackImpl::StackImpl(const ModelConfig& config, StackRole role)
    : config_(config), role_(role), shared_(std::make_shared<SharedModules>()) {
  if (config.position == Position::rotary) rotary = register_module("rotary", Rotary(rotary_options(config)));
  if (config.position == Position::rotary && config.rotary.local_theta)
    local_rotary = register_module("local_rotary", Rotary(local_rotary_options(config)));
  if (const auto& type = score_bias_type(config); type.make_bias) {
    const auto direction = role == StackRole::encoder ? Direction::bidirectional : Direction::causal;
    if (config.score_bias_by_layer) {
      torch::nn::ModuleList biases;
      for (int64_t i = 0; i < n_layers_of(config, role); ++i)
        biases->push_back(position_biases.emplace_back(type.make_bias(config, direction)));
      register_module("position_biases", biases);
    } else {
      position_bias = register_module("position_bias", type.make_bias(config, direction));
    }
  }
  torch::nn::ModuleList list;
  const int64_t n_layers = n_layers_of(config, role);
  for (int64_t i = 0; i < n_layers; ++i) {
    if (config.repeats_layer(i, n_layers))
      layers.push_back(layers.back());
    else
      list->push_back(layers.emplace_back(layer_options(config, role, i, shared_)));
  }
  register_module("layers", list);
  for (const auto& [name, module] : shared_->all()) register_module(name, module);
  if (has_final_norm(config)) {
    final_norm = register_module("final_norm", Norm(norm_options(config, config.d_model)));
  }
}

void StackImpl::take_settings(const torch::nn::Module& from) {
  const auto& other = dynamic_cast<const StackImpl&>(from);
  checkpointing_ = other.checkpointing_;
  cache_format_ = other.cache_format_;
}

void StackImpl::pretty_print(std::ostream& stream) const {
  stream << Description("Stack")
                .add("role", role_)
                .add("d_model", config_.d_model)
                .add("n_layers", layers.size())
                .add("position", config_.position.type);
}

void StackImpl::begin(DecodingState& state, const torch::Tensor& memory, std::vector<int64_t> lengths,
                      const torch::Tensor& memory_positions) {
  std::vector<std::unique_ptr<MemoryState>> memories;
  for (auto& layer : layers) {
    state.layers().push_back(layer->self_attention->new_state(state.n_rows()));
    state.layers().back()->store_in(cache_format_);
    if (memory.defined()) memories.push_back(layer->cross_attention->remember(memory, memory_positions));
  }
  if (memory.defined()) state.set_memories(std::move(memories), std::move(lengths));
}

/// Whether a layer has the angles of windows.
bool StackImpl::is_local(int64_t layer) const {
  return local_rotary && mixer_types().at(config_.attention_of(layer)).is_local;
}

torch::Tensor StackImpl::bias_of(size_t layer, const PositionRange& range, torch::Device device) const {
  if (!position_biases.empty()) return position_biases[layer]->at(range, device);
  return position_bias ? position_bias->at(range, device) : torch::Tensor();
}

void StackImpl::observe(ActivationObserver* observer, StackSide side) {
  observer_ = observer;
  side_ = side;
}

torch::Tensor StackImpl::observed(ActivationKind kind, int64_t layer, const torch::Tensor& x) const {
  if (!observer_) return x;
  return observer_->on({.kind = kind, .layer = layer, .side = side_}, x);
}

torch::Tensor StackImpl::normalised(ResidualSum& x) { return x.normed_by(final_norm, NormReader::any); }

ResidualSum StackImpl::before_layer(int64_t layer, ResidualSum x) const {
  const bool rounds = residual_ == ResidualStream::bf16 && is_training() &&
                      autocast_type(x.like().device().type()) == torch::kBFloat16;
  if (rounds && x.type() != torch::kBFloat16) x = ResidualSum(x.value().to(torch::kBFloat16));
  return observer_ ? ResidualSum(observed(ActivationKind::residual, layer, x.value())) : x;
}

torch::Tensor StackImpl::forward(const StackInput& input) {
  auto x = before_layer(0, ResidualSum(input.x));
  const auto memory =
      input.memory.defined() ? observed(ActivationKind::memory, 0, input.memory) : input.memory;
  const auto device = input.x.device();
  const PositionRange range = input.state ? input.range : PositionRange(0, x.like().size(1));
  const auto table = rotary ? rotary(range, device) : RotaryTable{};
  const auto local_table = local_rotary ? local_rotary(range, device) : RotaryTable{};
  const Mask mask = range.differs_by_row() ? input.mask.from(range.offsets()) : input.mask;

  LayerContext context;
  context.self = {.mask = mask.shared(),
                  .range = &range,
                  .rotary = &table,
                  .bias = position_bias ? bias_of(0, range, device) : torch::Tensor(),
                  .query_positions = input.layer_positions,
                  .ids = input.ids,
                  .maps = input.self_maps};
  const MemoryState* const first_memory = input.state ? input.state->memory(0) : nullptr;
  if (first_memory || input.memory.defined()) {
    const Mask hidden = first_memory ? input.state->memory_mask() : input.memory_mask;
    context.cross = {.mask = hidden.shared(),
                     .query_positions = input.layer_positions,
                     .memory_positions = input.memory_positions,
                     .maps = input.cross_maps};
  }
  const bool recompute = checkpointing_ == ActivationCheckpointing::every_layer && is_training() &&
                         torch::GradMode::is_enabled() && !input.state && !input.self_maps &&
                         !input.cross_maps && !observer_;
  ObservedLayer places;
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto number = static_cast<int64_t>(i);
    context.self.rotary = !config_.rotary.is_turned(number) ? nullptr
                          : is_local(number)                ? &local_table
                                                            : &table;
    if (!position_biases.empty()) context.self.bias = bias_of(i, range, device);
    if (input.state) {
      context.self.state = input.state->layers()[i].get();
      context.cross.remembered = input.state->memory(i);
    }
    // Each layer gets its own view, so that the memory's gradients are added layer by layer. Rounding is then
    // the same with and without recomputation.
    if (memory.defined()) context.cross.memory = memory.view_as(memory);
    if (observer_) {
      places = ObservedLayer(*observer_, side_, static_cast<int64_t>(i), role_);
      places.enter(context);
    }
    if (input.layer_inputs) input.layer_inputs->push_back(x.value());
    x = recompute ? ResidualSum(recomputed_layer(layers[i], x.value(), context, *shared_))
                  : layers[i]->advance(std::move(x), context);
    // Some sub-layers compute in fp32, and so would the sums from there on.
    x = before_layer(number + 1, std::move(x));
    if (input.layer_outputs) input.layer_outputs->push_back(normalised(x));
  }
  return input.layer_outputs ? input.layer_outputs->back() : normalised(x);
}

void StackImpl::store_cache(CacheFormat format) {
  if (role_ == StackRole::encoder) return;
  if (format != CacheFormat::fp32) {
    if (const auto device = parameters().front().device(); !device.is_cpu())
      throw UsageError(fmt::format(
          "generation.cache {} needs a CPU, but the model is on {}: there, keys and values stay as "
          "they are computed; use fp32",
          name_of(format), device.str()));
    for (const auto& layer : layers) layer->self_attention->new_state(1)->store_in(format);
  }
  cache_format_ = format;
}

void store_cache(torch::nn::Module& model, CacheFormat format) {
  for (const auto& module : model.modules()) {
    if (auto* const stack = dynamic_cast<StackImpl*>(module.get())) stack->store_cache(format);
  }
}

void count_stack(CostAccount& account, const std::string& name, const ModelConfig& config, StackRole role,
                 const AttentionShape& shape) {
  if (const auto& type = score_bias_type(config); type.make_bias && type.count)
    for (int64_t i = 0; i < (config.score_bias_by_layer ? n_layers_of(config, role) : 1); ++i)
      type.count(account,
                 config.score_bias_by_layer ? account.path(name, "position_biases", i)
                                            : account.path(name, "position_bias"),
                 config);
  for (int64_t i = 0; i < n_layers_of(config, role); ++i) {
    const auto layer = account.path(name, "layers", i);
    const MixerPlace place{.model = config, .role = role, .layer = i};
    mixer_types()
        .at(place.selection())
        .count(account, account.path(layer, "self_attention"), place,
               {.batch_size = shape.batch_size, .n_queries = shape.n_queries, .n_keys = shape.n_queries});
    count_transformer_layer(account, layer, layer_options(config, role, i), shape);
  }
  if (has_final_norm(config))
    count_norms(account, account.path(name, "final_norm"), norm_options(config, config.d_model), 1,
                static_cast<double>(shape.batch_size * shape.n_queries));
}

}  // namespace zoo

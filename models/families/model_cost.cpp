#include "models/families/model_cost.h"

#include <cmath>
#include <map>
#include <memory>

#include "layers/experts.h"
#include "layers/weights/construction.h"
#include "models/families/families.h"

namespace zoo {
namespace {

/// A row of `length` tokens on each side.
PassShape row_of(int64_t length, const ModelFamily& family, const ModelPurpose& purpose) {
  return {.length = length,
          .decoder_length = family.shape == FamilyShape::encoder_decoder ? length : 0,
          .n_targets = predicts_once(purpose.head) ? 1 : length};
}

/// The model's modules and the shapes of their parameters.
std::shared_ptr<Model> shapes_of(const ModelConfig& config, const ModelPurpose& purpose) {
  const ConstructionScope scope(Construction::shapes_only);
  return model_families().at(config.architecture).make(config, purpose);
}

/// Adds the parameters of a model to the layers whose names are theirs, or those of modules that hold them. A
/// parameter for which a family counts no cost gets a layer of its own.
void add_parameters(std::vector<LayerCost>& layers, const Model& model) {
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < layers.size(); ++i) places.emplace(layers[i].name, i);
  for (const auto& parameter : model.named_parameters()) {
    auto name = parameter.key();
    auto place = places.find(name);
    while (place == places.end() && name.find('.') != name.npos) {
      name.resize(name.rfind('.'));
      place = places.find(name);
    }
    if (place == places.end()) {
      place = places.emplace(parameter.key(), layers.size()).first;
      layers.push_back({.name = parameter.key(), .kind = "parameter", .shape = {}});
    }
    layers[place->second].parameters += parameter.value().numel();
  }
}

int64_t idle_parameters(const Model& model) {
  int64_t n = 0;
  for (const auto& experts : experts_of(model)) n += experts->idle_parameters();
  return n;
}

}  // namespace

PassShape pass_shape(const Batch& batch) {
  PassShape shape{.batch_size = batch.n_rows(),
                  .length = batch.input.defined() ? batch.input.length() : 0,
                  .decoder_length = batch.decoder.defined() ? batch.decoder.length() : 0,
                  .n_targets = batch.n_targets()};
  for (const auto& [name, tensor] : batch.fields) shape.fields.emplace(name, tensor.sizes().vec());
  return shape;
}

double parameter_count(const ModelConfig& config, const ModelPurpose& purpose) {
  check_model(config, purpose);
  double n = 0;
  for (const auto& parameter : shapes_of(config, purpose)->parameters())
    n += static_cast<double>(parameter.numel());
  return n;
}

double forward_flops(const ModelConfig& config, const ModelPurpose& purpose, const PassShape& shape) {
  CostAccount account(CostAccount::Detail::totals);
  model_families().at(config.architecture).count(account, config, purpose, shape);
  return account.flops();
}

ModelCost model_cost(const ModelConfig& config, const ModelPurpose& purpose, int64_t length) {
  check_model(config, purpose);
  const auto& family = model_families().at(config.architecture);
  const bool two_sides = family.shape == FamilyShape::encoder_decoder;
  CostAccount account(CostAccount::Detail::layers);
  family.count(account, config, purpose, row_of(length, family, purpose));

  const auto n_tokens = static_cast<double>(length), n_read = two_sides ? 2 * n_tokens : n_tokens;
  ModelCost cost;
  double activation_bytes = 0;
  for (const auto& entry : account.entries()) {
    const double per_token = entry.activation_bytes / (n_tokens * static_cast<double>(entry.n_sides));
    cost.layers.push_back({.name = entry.name,
                           .kind = entry.kind,
                           .shape = entry.shape,
                           .flops_per_token = entry.flops / n_tokens,
                           .activation_bytes_per_token = std::llround(std::floor(per_token)),
                           .state_bytes_per_token = entry.state_bytes_per_token,
                           .state_bytes = entry.state_bytes});
    activation_bytes += entry.activation_bytes;
    const bool of_encoder = family.has_memory && entry.name.starts_with("encoder.");
    if (entry.kind != "cross-attention" && !of_encoder) {
      cost.cache_bytes_per_token += entry.state_bytes_per_token;
      cost.state_bytes += entry.state_bytes;
    }
  }
  const auto model = shapes_of(config, purpose);
  add_parameters(cost.layers, *model);
  for (const auto& layer : cost.layers) cost.parameters += layer.parameters;
  cost.active_parameters = cost.parameters - idle_parameters(*model);
  cost.flops_per_token = account.flops() / n_read;
  cost.activation_bytes_per_token = std::llround(std::floor(activation_bytes / n_read));
  cost.weight_bytes = cost.parameters * kFloatBytes;
  cost.training_bytes = 4 * cost.weight_bytes;
  return cost;
}

ModelCost unit_cost(const ModelConfig& config, const ModelPurpose& purpose, int64_t length) {
  const auto fixed = input_length(config, purpose);
  auto cost = model_cost(config, purpose, fixed.value_or(length));
  if (!fixed) return cost;
  const int64_t n = *fixed;
  cost.flops_per_token *= static_cast<double>(n);
  cost.activation_bytes_per_token *= n;
  for (auto& layer : cost.layers) {
    layer.flops_per_token *= static_cast<double>(n);
    layer.activation_bytes_per_token *= n;
  }
  return cost;
}

}  // namespace zoo

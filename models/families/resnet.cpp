#include "models/families/resnet.h"

#include <torch/types.h>

#include "layers/weights/description.h"

namespace zoo {
namespace {

ResnetOptions network_options(const ModelConfig& config, const ModelPurpose& purpose) {
  return {purpose.image.channels, config.architecture.as<ResnetConfig>()};
}

/// The head reads the network's channels.
ModelConfig head_config(ModelConfig config, const ModelPurpose& purpose) {
  config.d_model = network_options(config, purpose).n_outputs();
  return config;
}

void count_resnet_model(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose,
                        const PassShape& shape) {
  const auto options = network_options(config, purpose);
  const auto image = image_shape(shape, purpose.image);
  count_resnet(account, "network", options, shape.batch_size, image.height, image.width);
  count_head(account, head_config(config, purpose), purpose, Pooling::none,
             static_cast<double>(shape.batch_size));
}

}  // namespace

ResnetModel::ResnetModel(const ModelConfig& config, const ModelPurpose& purpose)
    : config_(config), purpose_(purpose) {
  network_ = register_module("network", Resnet(network_options(config, purpose)));
  head_ = register_module("head", ModelHead(head_config(config, purpose), purpose, nullptr));
}

torch::Tensor ResnetModel::features(const Batch& batch) {
  return head_->prepare(network_(batch.field(fields::kImages)).mean({2, 3}));
}

torch::Tensor ResnetModel::hidden_states(const Batch& batch) {
  return network_(batch.field(fields::kImages)).flatten(2).transpose(1, 2);
}

void ResnetModel::attention_maps(const Batch&, AttentionMaps&) {
  TORCH_CHECK(false, "a resnet has no attention");
}

std::shared_ptr<torch::nn::Module> ResnetModel::fresh(const std::optional<torch::Device>&) const {
  return std::make_shared<ResnetModel>(config_, purpose_);
}

void ResnetModel::pretty_print(std::ostream& stream) const {
  stream << Description("ResnetModel").add("head", purpose_.head).add("n_outputs", n_outputs());
}

ModelFamily resnet_family() {
  ModelFamily family;
  family.name = "resnet";
  family.doc = "Residual network: convolutions over an image. It uses no other key of model: than dropout.";
  family.make_options = options_of<ResnetConfig>();
  family.heads = {HeadKind::classification, HeadKind::regression, HeadKind::none};
  family.make = [](const ModelConfig& config, const ModelPurpose& purpose) -> std::shared_ptr<Model> {
    return std::make_shared<ResnetModel>(config, purpose);
  };
  family.count = count_resnet_model;
  // The mean over all pixels.
  family.set_defaults = [](ModelConfig& config) { config.dropout = 0; };
  family.input_length = [](const ModelConfig&, const ModelPurpose&) -> int64_t { return 1; };
  family.no_maps = "has no attention";
  return family;
}

}  // namespace zoo

// Residual networks that predict a class, or numbers, from an image (He et al. 2016): a linear map of the
// mean over the pixels of the last map of features.

#include "models/embedders/resnet.h"

#include <torch/types.h>

#include "layers/weights/description.h"
#include "models/families/family_model.h"

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

class ResnetModel final : public Cloneable<ResnetModel, FamilyModel> {
 public:
  ResnetModel(const ModelConfig& config, const ModelPurpose& purpose) : Cloneable(config, purpose) {
    network_ = register_module("network", Resnet(network_options(config, purpose)));
    head_ = register_module("head", ModelHead(head_config(config, purpose), purpose, nullptr));
  }

  torch::Tensor features(const Batch& batch) override {
    return head_->prepare(network_(batch.field(fields::kImages)).mean({2, 3}));
  }
  /// (B, h·w, C): the last map of features, row by row.
  torch::Tensor hidden_states(const Batch& batch) override {
    return network_(batch.field(fields::kImages)).flatten(2).transpose(1, 2);
  }
  void attention_maps(const Batch&, AttentionMaps&) override {
    TORCH_CHECK(false, "a resnet has no attention");
  }
  bool mixes_rows() const override { return network_->mixes_rows(); }
  void pretty_print(std::ostream& stream) const override {
    stream << Description(type_name()).add("head", purpose_.head).add("n_outputs", n_outputs());
  }

 private:
  Resnet network_{nullptr};
};

void count_resnet_model(CostAccount& account, const ModelConfig& config, const ModelPurpose& purpose,
                        const PassShape& shape) {
  const auto image = image_shape(shape, purpose.image);
  count_resnet(account, "network", network_options(config, purpose), shape.batch_size, image.height,
               image.width);
  count_head(account, head_config(config, purpose), purpose, Pooling::none,
             static_cast<double>(shape.batch_size));
}

}  // namespace

ModelFamily resnet_family() {
  ModelFamily family;
  family.name = "resnet";
  family.doc = "Residual network: convolutions over an image. It uses no other key of model: than dropout.";
  family.make_options = options_of<ResnetConfig>();
  family.heads = {HeadKind::classification, HeadKind::regression, HeadKind::none};
  family.make = makes<ResnetModel>();
  family.count = count_resnet_model;
  // The mean over all pixels.
  family.set_defaults = [](ModelConfig& config) { config.dropout = 0; };
  family.input_length = [](const ModelConfig&, const ModelPurpose&) -> int64_t { return 1; };
  family.no_maps = "has no attention";
  return family;
}

}  // namespace zoo

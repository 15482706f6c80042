#include <torch/types.h>

#include <zoo/models/embedder.h>
#include <zoo/models/heads.h>
#include <zoo/models/stack.h>

#include "types.h"

namespace {

struct GridEncoderOptions {
  int64_t n_features = 3;
};
void describe(zoo::ConfigVisitor& v, GridEncoderOptions& options) {
  v.field("n_features", options.n_features, "Numbers at each place of the grid.", zoo::Limits::at_least(1));
}

/// Field "grid" (B, H, W, F) to vectors (B, H·W, D), and the positions of a grid for every layer.
class GridEmbedder final : public zoo::EmbedderImpl {
 public:
  GridEmbedder(int64_t n_features, int64_t d_model) : d_model_(d_model) {
    projection = register_module("projection", zoo::Linear(zoo::LinearOptions(n_features, d_model)));
  }
  zoo::Embedded forward(const zoo::Batch& batch) override {
    const auto& grid = batch.field("grid");
    const int64_t height = grid.size(1), width = grid.size(2);
    return {.vectors = projection(grid.flatten(1, 2)),
            .layer_positions = zoo::grid_positions(height, width, d_model_).to(grid.device()).unsqueeze(0)};
  }
  zoo::Linear projection{nullptr};

 private:
  int64_t d_model_;
};

class GridEncoder final : public zoo::Model {
 public:
  GridEncoder(const zoo::ModelConfig& config, const zoo::ModelPurpose& purpose)
      : config_(config), purpose_(purpose) {
    const auto& options = config.architecture.as<GridEncoderOptions>();
    embedder_ =
        register_module("embedder", std::make_shared<GridEmbedder>(options.n_features, config.d_model));
    encoder_ = register_module("encoder", zoo::Stack(config, zoo::StackRole::encoder));
    head_ = register_module("head", zoo::ModelHead(config, purpose, nullptr));
  }
  torch::Tensor features(const zoo::Batch& batch) override {
    return head_->prepare(hidden_states(batch).mean(1));
  }
  torch::Tensor logits(const torch::Tensor& features) override { return head_->project(features); }
  int64_t n_outputs() const override { return head_->n_outputs(); }
  torch::Tensor hidden_states(const zoo::Batch& batch) override { return encode(batch, nullptr); }
  void attention_maps(const zoo::Batch& batch, zoo::AttentionMaps& maps) override {
    encode(batch, &maps.encoder);
  }

 protected:
  std::shared_ptr<torch::nn::Module> fresh(const std::optional<torch::Device>&) const override {
    return std::make_shared<GridEncoder>(config_, purpose_);
  }

 private:
  torch::Tensor encode(const zoo::Batch& batch, std::vector<torch::Tensor>* maps) {
    const auto embedded = embedder_->forward(batch);
    return encoder_({.x = embedded.vectors, .layer_positions = embedded.layer_positions, .self_maps = maps});
  }

  zoo::ModelConfig config_;
  zoo::ModelPurpose purpose_;
  std::shared_ptr<GridEmbedder> embedder_;
  zoo::Stack encoder_{nullptr};
  zoo::ModelHead head_{nullptr};
};

void count(zoo::CostAccount& account, const zoo::ModelConfig& config, const zoo::ModelPurpose& purpose,
           const zoo::PassShape& shape) {
  const auto found = shape.fields.find("grid");
  const int64_t n = found == shape.fields.end() ? shape.length : found->second[1] * found->second[2];
  zoo::count_linear(account, account.path("embedder", "projection"), "linear",
                    {config.architecture.as<GridEncoderOptions>().n_features, config.d_model},
                    static_cast<double>(shape.batch_size * n));
  zoo::count_stack(account, "encoder", config, zoo::StackRole::encoder,
                   {.batch_size = shape.batch_size, .n_queries = n, .n_keys = n});
  zoo::count_head(account, config, purpose, zoo::Pooling::none, static_cast<double>(shape.batch_size));
}

}  // namespace

zoo::ModelFamily grid_encoder() {
  zoo::ModelFamily family;
  family.name = "grid_encoder";
  family.doc = "An encoder of grids of vectors.";
  family.make_options = zoo::options_of<GridEncoderOptions>();
  family.heads = {zoo::HeadKind::regression, zoo::HeadKind::classification};
  family.make = [](const zoo::ModelConfig& config,
                   const zoo::ModelPurpose& purpose) -> std::shared_ptr<zoo::Model> {
    return std::make_shared<GridEncoder>(config, purpose);
  };
  family.count = count;
  family.example = [](const zoo::ModelConfig& config, const zoo::ModelPurpose&, int64_t length) {
    zoo::Batch batch;
    batch.fields = {
        {"grid", torch::zeros({1, 1, length, config.architecture.as<GridEncoderOptions>().n_features})}};
    return batch;
  };
  family.validate = [](const zoo::ModelConfig& config, const zoo::Complain& complain) {
    if (config.d_model % 2 != 0) complain("d_model", "must be even: positions on a grid have two halves");
  };
  return family;
}

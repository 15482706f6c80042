#include <tuple>

#include <torch/types.h>

#include <zoo/models/families/family_model.h>

#include "types.h"

namespace {

struct GridEncoderOptions {
  int64_t n_features = 3;
};
void describe(zoo::ConfigVisitor& v, GridEncoderOptions& options) {
  v.field("n_features", options.n_features, "Numbers at each place of the grid.", zoo::Limits::at_least(1));
}

/// Field "grid" (B, H, W, F) to vectors (B, H·W, D), and the positions of a grid for every layer.
class GridEmbedder final : public zoo::Cloneable<GridEmbedder, zoo::EmbedderImpl> {
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
  auto arguments() const { return std::tuple(projection->n_inputs(), d_model_); }
  zoo::Linear projection{nullptr};

 private:
  int64_t d_model_;
};

class GridEncoder final : public zoo::Cloneable<GridEncoder, zoo::EncodingModel> {
 public:
  GridEncoder(const zoo::ModelConfig& config, const zoo::ModelPurpose& purpose) : Cloneable(config, purpose) {
    const auto& options = config.architecture.as<GridEncoderOptions>();
    make_encoder("embedder", std::make_shared<GridEmbedder>(options.n_features, config.d_model));
    head_ = register_module("head", zoo::ModelHead(config, purpose, nullptr));
  }
  torch::Tensor features(const zoo::Batch& batch) override {
    return head_->prepare(hidden_states(batch).mean(1));
  }
};

void count(zoo::CostAccount& account, const zoo::ModelConfig& config, const zoo::ModelPurpose& purpose,
           const zoo::PassShape& shape) {
  const auto sizes = shape.sizes_of("grid");
  const int64_t n = sizes.empty() ? shape.length : sizes[1] * sizes[2];
  zoo::count_linear(account, account.path("embedder", "projection"), "linear",
                    {config.architecture.as<GridEncoderOptions>().n_features, config.d_model},
                    static_cast<double>(shape.batch_size * n));
  zoo::count_encoder(account, config, shape.batch_size, n);
  zoo::count_head(account, config, purpose, zoo::Pooling::none, static_cast<double>(shape.batch_size));
}

}  // namespace

zoo::ModelFamily grid_encoder() {
  zoo::ModelFamily family;
  family.name = "grid_encoder";
  family.doc = "An encoder of grids of vectors.";
  family.make_options = zoo::options_of<GridEncoderOptions>();
  family.heads = {zoo::HeadKind::regression, zoo::HeadKind::classification};
  family.make = zoo::makes<GridEncoder>();
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

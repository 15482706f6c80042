#include "models/vision/feature_map_embedder.h"

#include <numbers>

#include <torch/types.h>

#include "layers/positions/positions.h"
#include "layers/weights/description.h"

namespace zoo {
namespace {

LinearOptions projection_options(const FeatureMapEmbedderOptions& options) {
  return LinearOptions(options.backbone().n_outputs(), options.d_model());
}

/// The coordinates 1 … n of places, (B, n), scaled so that the last visible one has 2π: (B, n) float.
/// n_visible: (B) int64.
torch::Tensor coordinates(int64_t n, const torch::Tensor& n_visible) {
  constexpr double epsilon = 1e-6;
  const auto numbers = torch::arange(1, n + 1, torch::dtype(torch::kFloat).device(n_visible.device()));
  return numbers / (n_visible.unsqueeze(1) + epsilon) * (2 * std::numbers::pi);
}

/// The number of places, among `n`, whose first pixel is one of the first `visible` of `pixels`: (B) int64.
torch::Tensor visible_places(const torch::Tensor& visible, int64_t pixels, int64_t n) {
  return (visible * n + pixels - 1).div(pixels, "floor");
}

/// Whether each of n places is among the first n_visible: (B, n) bool.
torch::Tensor among_first(int64_t n, const torch::Tensor& n_visible) {
  return torch::arange(n, n_visible.options()).lt(n_visible.unsqueeze(1));
}

}  // namespace

FeatureMapEmbedderImpl::FeatureMapEmbedderImpl(const FeatureMapEmbedderOptions& options_)
    : options(options_) {
  backbone = register_module("backbone", Resnet(options.backbone()));
  projection = register_module("projection", Linear(projection_options(options)));
}

Embedded FeatureMapEmbedderImpl::forward(const Batch& batch) {
  const auto& images = batch.field("images");
  const auto map = backbone(images);  // (B, channels, rows, columns)
  const int64_t n_rows = map.size(2), n_columns = map.size(3);
  Embedded result{.vectors = projection(map.flatten(2).transpose(1, 2))};
  const auto sizes = batch.fields.find("image_sizes");
  const bool has_padding = sizes != batch.fields.end();
  const auto whole = torch::tensor({{images.size(2), images.size(3)}}, torch::kInt64).to(images.device());
  const auto visible = has_padding ? sizes->second : whole;  // (B or 1, 2)
  const auto rows = visible_places(visible.select(1, 0), images.size(2), n_rows);
  const auto columns = visible_places(visible.select(1, 1), images.size(3), n_columns);
  result.layer_positions =
      grid_positions(coordinates(n_rows, rows), coordinates(n_columns, columns), options.d_model())
          .to(result.vectors.scalar_type());
  if (has_padding) {
    result.visible = among_first(n_rows, rows)
                         .unsqueeze(2)
                         .logical_and(among_first(n_columns, columns).unsqueeze(1))
                         .flatten(1);
  }
  return result;
}

std::shared_ptr<torch::nn::Module> FeatureMapEmbedderImpl::fresh(const std::optional<torch::Device>&) const {
  return std::make_shared<FeatureMapEmbedderImpl>(options);
}

void FeatureMapEmbedderImpl::pretty_print(std::ostream& stream) const {
  stream << Description("FeatureMapEmbedder").add("d_model", options.d_model());
}

void count_feature_map_embedder(CostAccount& account, const std::string& name,
                                const FeatureMapEmbedderOptions& options, int64_t batch_size, int64_t height,
                                int64_t width) {
  const auto map = resnet_output(options.backbone(), height, width);
  count_resnet(account, account.path(name, "backbone"), options.backbone(), batch_size, height, width);
  count_linear(account, account.path(name, "projection"), "linear", projection_options(options),
               static_cast<double>(batch_size * map.height * map.width));
}

}  // namespace zoo

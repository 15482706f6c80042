#include "models/embedders/feature_map_embedder.h"

#include <algorithm>
#include <numbers>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "layers/attention/positions.h"
#include "layers/weights/construction.h"
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
  if (options.position() == Position::learned) {
    const auto table = [&] {
      return torch::zeros({options.max_places(), options.d_model() / 2}, parameter_options());
    };
    row_table = register_parameter("row_table", table());
    column_table = register_parameter("column_table", table());
  }
}

torch::Tensor FeatureMapEmbedderImpl::learned_positions(int64_t n_rows, int64_t n_columns) const {
  const int64_t most = options.max_places();
  if (std::max(n_rows, n_columns) > most) {
    throw DataError(
        fmt::format("a feature map of {} × {} places is larger than model.architecture.max_places, {}: give "
                    "smaller pictures",
                    n_rows, n_columns, most));
  }
  const int64_t half = options.d_model() / 2;
  const auto columns = column_table.slice(0, 0, n_columns).unsqueeze(0).expand({n_rows, n_columns, half});
  const auto rows = row_table.slice(0, 0, n_rows).unsqueeze(1).expand({n_rows, n_columns, half});
  return torch::cat({columns, rows}, 2).flatten(0, 1).unsqueeze(0);
}

Embedded FeatureMapEmbedderImpl::forward(const Batch& batch) {
  const auto& images = batch.field(fields::kImages);
  const auto map = backbone(images);  // (B, channels, rows, columns)
  const int64_t n_rows = map.size(2), n_columns = map.size(3);
  Embedded result{.vectors = projection(map.flatten(2).transpose(1, 2))};
  const auto sizes = batch.fields.find(fields::kImageSizes);
  const bool has_padding = sizes != batch.fields.end();
  const auto whole = torch::tensor({{images.size(2), images.size(3)}}, torch::kInt64).to(images.device());
  const auto visible = has_padding ? sizes->second : whole;  // (B or 1, 2)
  const auto rows = visible_places(visible.select(1, 0), images.size(2), n_rows);
  const auto columns = visible_places(visible.select(1, 1), images.size(3), n_columns);
  const auto positions =
      row_table.defined()
          ? learned_positions(n_rows, n_columns)
          : grid_positions(coordinates(n_rows, rows), coordinates(n_columns, columns), options.d_model());
  result.layer_positions = positions.to(result.vectors.scalar_type());
  if (has_padding) {
    result.visible = among_first(n_rows, rows)
                         .unsqueeze(2)
                         .logical_and(among_first(n_columns, columns).unsqueeze(1))
                         .flatten(1);
  }
  return result;
}

void FeatureMapEmbedderImpl::visit_weights(const WeightVisitor& visit) const {
  for (const auto& table : {row_table, column_table})
    if (table.defined()) visit({table, 0, table.size(0), WeightUse::table});
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
  if (options.position() == Position::learned) {
    for (const auto* table : {"row_table", "column_table"})
      count_table(account, account.path(name, table), options.max_places(), options.d_model() / 2);
  }
}

}  // namespace zoo

#include "layers/attention/position_bias.h"

#include <bit>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <torch/nn/modules/embedding.h>
#include <torch/types.h>

#include "base/error.h"
#include "layers/weights/description.h"
#include "layers/weights/embedding.h"

namespace zoo {

torch::Tensor relative_positions(const PositionRange& range, torch::Device device) {
  const auto keys = torch::arange(range.n_keys(), torch::dtype(torch::kInt64).device(device));
  return keys - range.ids(device).unsqueeze(-1);
}

torch::Tensor alibi_slopes(int64_t n_heads) {
  const auto below = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n_heads)));
  std::vector<float> slopes;
  for (int64_t i = 1; i <= below; ++i) {
    slopes.push_back(
        static_cast<float>(std::exp2(-8.0 * static_cast<double>(i) / static_cast<double>(below))));
  }
  for (int64_t i = 1; std::ssize(slopes) < n_heads; i += 2) {
    slopes.push_back(
        static_cast<float>(std::exp2(-4.0 * static_cast<double>(i) / static_cast<double>(below))));
  }
  return torch::tensor(slopes);
}

torch::Tensor alibi_bias(const torch::Tensor& slopes, const PositionRange& range) {
  const auto distance = relative_positions(range, slopes.device()).abs().to(torch::kFloat32);
  // (T, S) or (B, T, S), for every head
  return -(slopes.view({1, -1, 1, 1}) * (distance.dim() == 3 ? distance.unsqueeze(1) : distance));
}

torch::Tensor AlibiBiasImpl::at(const PositionRange& range, torch::Device device) {
  if (slopes_.device() != device) slopes_ = slopes_.to(device);
  return alibi_bias(slopes_, range);
}

void AlibiBiasImpl::pretty_print(std::ostream& stream) const {
  stream << Description("AlibiBias").add("n_heads", options.n_heads());
}

torch::Tensor t5_buckets(const torch::Tensor& relative, Direction direction, int64_t n_buckets,
                         int64_t max_distance) {
  auto offset = torch::zeros_like(relative);
  auto distance = relative;
  if (direction == Direction::bidirectional) {  // half of the buckets are for later keys
    n_buckets /= 2;
    offset = relative.gt(0).to(torch::kInt64) * n_buckets;
    distance = relative.abs();
  } else {
    distance = -relative.clamp_max(0);
  }
  const int64_t n_exact = n_buckets / 2;
  // The float32 operations have the same order as in the reference, so rounding at bucket borders agrees.
  const auto logarithm = torch::log(distance.to(torch::kFloat32) / static_cast<double>(n_exact)) /
                         std::log(static_cast<double>(max_distance) / static_cast<double>(n_exact)) *
                         static_cast<double>(n_buckets - n_exact);
  const auto far = (n_exact + logarithm.to(torch::kInt64)).clamp_max(n_buckets - 1);
  return offset + torch::where(distance.lt(n_exact), distance, far);
}

namespace {

/// The bucket of each distance from -2·max_distance to 2·max_distance; what is farther has the bucket of the
/// ends. Always computed by the processor: logarithms of other devices round differently at the borders.
std::unique_ptr<PositionTable> make_bucket_table(const T5BiasOptions& options) {
  return std::make_unique<PositionTable>([options](const torch::Tensor& positions) {
    const auto relative = positions.to(torch::kCPU) - 2 * options.max_distance();
    return t5_buckets(relative, options.direction(), options.n_buckets(), options.max_distance())
        .to(positions.device());
  });
}

}  // namespace

T5BiasImpl::T5BiasImpl(const T5BiasOptions& options_)
    : options(options_), bucket_of_(make_bucket_table(options)) {
  const int64_t fewest = options.direction() == Direction::bidirectional ? 4 : 2;
  TORCH_CHECK(options.n_buckets() >= fewest, "t5 positions need at least ", fewest, " buckets, not ",
              options.n_buckets());
  buckets = register_module("buckets", make_table(options.n_buckets(), options.n_heads()));
}

torch::Tensor T5BiasImpl::forward(const PositionRange& range) {
  const auto device = buckets->weight.device();
  const int64_t far = 2 * options.max_distance();
  const auto relative = relative_positions(range, device).clamp(-far, far);
  const auto ids = bucket_of_->first_rows(2 * far + 1, device).index({relative + far});
  const auto bias = buckets(ids);  // (T, S, H) or (B, T, S, H)
  return bias.dim() == 3 ? bias.permute({2, 0, 1}).unsqueeze(0) : bias.permute({0, 3, 1, 2});
}

void T5BiasImpl::pretty_print(std::ostream& stream) const {
  stream << Description("T5Bias")
                .add("n_heads", options.n_heads())
                .add("n_buckets", options.n_buckets())
                .add("max_distance", options.max_distance())
                .add("direction", options.direction());
}

void T5BiasImpl::visit_weights(const WeightVisitor& visit) const {
  visit({buckets->weight, 0, options.n_buckets(), WeightUse::table});
}

torch::Tensor grid_distances(const GridShape& grid) {
  const int64_t T = grid.length(), n = grid.n_distances(), width = 2 * grid.columns - 1;
  auto result = torch::empty({T, T}, torch::kInt64);
  int64_t* to = result.mutable_data_ptr<int64_t>();
  for (int64_t query = -grid.n_before; query < grid.rows * grid.columns; ++query) {
    for (int64_t key = -grid.n_before; key < grid.rows * grid.columns; ++key) {
      if (query < 0 || key < 0) {
        *to++ = query >= 0 ? n - 2 : key >= 0 ? n - 3 : n - 1;
        continue;
      }
      const int64_t down = query / grid.columns - key / grid.columns + grid.rows - 1;
      const int64_t right = query % grid.columns - key % grid.columns + grid.columns - 1;
      *to++ = down * width + right;
    }
  }
  return result;
}

GridBiasImpl::GridBiasImpl(const GridBiasOptions& options_)
    : options(options_), distances_(grid_distances(options.grid())) {
  numbers = register_module("numbers", make_table(options.grid().n_distances(), options.n_heads()));
}

torch::Tensor GridBiasImpl::at(const PositionRange& range, torch::Device device) {
  if (range.first() != 0 || range.count() != options.grid().length()) {
    throw DataError(
        fmt::format("a picture has {} places, and this model reads {} x {} and {} before them: resize it",
                    range.count(), options.grid().rows, options.grid().columns, options.grid().n_before));
  }
  if (distances_.device() != device) distances_ = distances_.to(device);
  return numbers(distances_).permute({2, 0, 1}).unsqueeze(0);
}

void GridBiasImpl::pretty_print(std::ostream& stream) const {
  stream << Description("GridBias")
                .add("n_heads", options.n_heads())
                .add("rows", options.grid().rows)
                .add("columns", options.grid().columns);
}

void GridBiasImpl::visit_weights(const WeightVisitor& visit) const {
  visit({numbers->weight, 0, numbers->weight.size(0), WeightUse::table});
}

}  // namespace zoo

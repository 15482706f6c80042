#include "kernels/products/products.h"

#include <algorithm>

#include <ATen/Parallel.h>
#include <c10/util/accumulate.h>

#include "kernels/grain.h"
#include "kernels/isa/kernels.h"
#include "kernels/products/integer_rows.h"

namespace zoo {
namespace {

/// Rows whose sums a thread keeps while it reads a panel.
constexpr int64_t kChunk = 192;
/// With more rows, a panel in bf16 or fp16 is first converted to fp32, in tiles of kTile inputs.
constexpr int64_t kMostUnconverted = 24, kTile = 128;
/// A panel in integers is read in parts of so many groups, which stay in the first cache for all rows.
constexpr int64_t kGroupsAtOnce = 16;
/// Bytes of weights for which another thread is worth its start.
constexpr int64_t kGrainBytes = 32768;

/// Calls use(first, count) for blocks of at most `most` of n rows, of nearly the same size.
template <class Use>
void for_each_block(int64_t n, int64_t most, const Use& use) {
  const int64_t n_blocks = (n + most - 1) / most;
  for (int64_t b = 0; b < n_blocks; ++b) {
    const int64_t begin = n * b / n_blocks, end = n * (b + 1) / n_blocks;
    use(begin, end - begin);
  }
}

/// The sums of some rows of x with one panel: sums (rows, 32), zero at first.
class FloatPanels {
 public:
  FloatPanels(FloatRows x, int64_t n_rows, const PackedMatrix& matrix, const ProductKernels& kernels)
      : kernels_(kernels),
        x_(x),
        direct_(matrix.format() == PackedFormat::bf16 ? kernels.bf16 : kernels.fp16),
        to_tile_(matrix.format() == PackedFormat::bf16 ? kernels.bf16_tile : kernels.fp16_tile),
        n_rows_(n_rows) {
    if (n_rows_ <= kMostUnconverted) return;
    // In x, the same input of several rows may compete for the same places of the cache.
    x_tiles_ = torch::empty({(x_.stride + kTile - 1) / kTile, n_rows_, kTile});
    auto* const tiles = x_tiles_.mutable_data_ptr<float>();
    at::parallel_for(0, n_rows_, grain_rows(std::max<int64_t>(x_.stride, 1)),
                     [&](int64_t begin, int64_t end) {
                       for (int64_t r = begin; r < end; ++r) {
                         for (int64_t k = 0; k < x_.stride; k += kTile)
                           std::copy_n(x_.data + r * x_.stride + k, std::min(kTile, x_.stride - k),
                                       tiles + (k / kTile * n_rows_ + r) * kTile);
                       }
                     });
  }

  void add(const uint8_t* panel, int64_t first_row, int64_t n_rows, float* sums) const {
    if (!x_tiles_.defined()) {
      const FloatRows x{.data = x_.data + first_row * x_.stride, .stride = x_.stride};
      return add(direct_, panel, x, x_.stride, n_rows, sums);
    }
    alignas(64) float tile[kTile * kPanel];
    const float* x_tile = x_tiles_.const_data_ptr<float>() + first_row * kTile;
    for (int64_t k = 0; k < x_.stride; k += kTile, x_tile += n_rows_ * kTile) {
      const int64_t n = std::min(kTile, x_.stride - k);
      to_tile_(panel + k * kPanel * 2, n, tile);
      add(kernels_.fp32, reinterpret_cast<const uint8_t*>(tile), {.data = x_tile, .stride = kTile}, n, n_rows,
          sums);
    }
  }
  static float scale(const uint8_t*, int64_t) { return 1; }

 private:
  void add(const FloatKernel* kernels, const uint8_t* weights, FloatRows x, int64_t n_inputs, int64_t n_rows,
           float* sums) const {
    for_each_block(n_rows, kernels_.float_rows, [&](int64_t first, int64_t count) {
      kernels[count - 1](weights, {.data = x.data + first * x.stride, .stride = x.stride}, n_inputs,
                         sums + first * kPanel);
    });
  }

  const ProductKernels& kernels_;
  FloatRows x_;
  const FloatKernel* direct_;
  TileKernel to_tile_;
  int64_t n_rows_;
  torch::Tensor x_tiles_;  // (I / kTile, M, kTile), or undefined for few rows
};

class IntegerPanels {
 public:
  IntegerPanels(FloatRows x, int64_t n_rows, const PackedMatrix& matrix, const ProductKernels& kernels)
      : x_(x, n_rows),
        kernels_(matrix.format() == PackedFormat::int8 ? kernels.int8 : kernels.int4),
        most_rows_(kernels.integer_rows),
        header_(matrix.format() == PackedFormat::int8 ? kInt8Header : 0),
        group_bytes_(matrix.format() == PackedFormat::int8 ? kInt8Group : kInt4Group) {}

  void add(const uint8_t* panel, int64_t first_row, int64_t n_rows, float* sums) const {
    const int64_t n_groups = x_.rows().n_groups, at_once = n_rows <= most_rows_ ? n_groups : kGroupsAtOnce;
    for (int64_t group = 0; group < n_groups; group += at_once) {
      for_each_block(n_rows, most_rows_, [&](int64_t first, int64_t count) {
        const auto rows = x_.rows().from(first_row + first, group);
        kernels_[count - 1](panel + header_ + group * group_bytes_, rows, std::min(at_once, n_groups - group),
                            sums + first * kPanel);
      });
    }
  }
  float scale(const uint8_t* panel, int64_t output) const {
    return header_ > 0 ? reinterpret_cast<const float*>(panel)[output] : 1;
  }

 private:
  IntegerInputs x_;
  const IntegerKernel* kernels_;
  int64_t most_rows_, header_, group_bytes_;
};

/// y (M, count) from the sums of the panels.
template <class Panels>
void multiply(const Panels& panels, const PackedMatrix& matrix, const float* bias, OutputRange outputs,
              int64_t n_rows, float* y) {
  const auto* const weights = matrix.memory().const_data_ptr<uint8_t>();
  const int64_t bytes = matrix.panel_bytes(), end_output = outputs.first + outputs.count;
  const int64_t first_panel = outputs.first / kPanel, n_panels = panels_of(end_output) - first_panel;
  const int64_t n_chunks = (n_rows + kChunk - 1) / kChunk;
  const int64_t work = std::max<int64_t>(bytes * (1 + n_rows / n_chunks / 8), 1);
  at::parallel_for(0, n_chunks * n_panels, 1 + kGrainBytes / work, [&](int64_t begin, int64_t end) {
    alignas(64) float sums[kChunk * kPanel];
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t chunk = unit / n_panels, row = n_rows * chunk / n_chunks;
      const int64_t rows = n_rows * (chunk + 1) / n_chunks - row;
      const int64_t output = (first_panel + unit % n_panels) * kPanel;
      const auto* const panel = weights + output / kPanel * bytes;
      std::fill_n(sums, rows * kPanel, 0.0F);
      panels.add(panel, row, rows, sums);
      const int64_t from = std::max(output, outputs.first), to = std::min(output + kPanel, end_output);
      float scales[kPanel], offsets[kPanel] = {};
      for (int64_t o = from; o < to; ++o) {
        scales[o - from] = panels.scale(panel, o - output);
        if (bias) offsets[o - from] = bias[o - outputs.first];
      }
      for (int64_t r = 0; r < rows; ++r) {
        const float* const sum = sums + r * kPanel + from - output;
        float* const y_row = y + (row + r) * outputs.count + from - outputs.first;
        for (int64_t o = 0; o < to - from; ++o) y_row[o] = sum[o] * scales[o] + offsets[o];
      }
    }
  });
}

torch::Tensor empty_output(const torch::Tensor& x, int64_t n_outputs) {
  auto shape = x.sizes().vec();
  shape.back() = n_outputs;
  return torch::empty(shape, x.options().requires_grad(false));
}

const float* bias_data(const torch::Tensor& bias, int64_t n_outputs) {
  if (!bias.defined()) return nullptr;
  TORCH_CHECK(bias.is_cpu() && bias.scalar_type() == torch::kFloat && bias.is_contiguous() &&
                  bias.numel() == n_outputs,
              "a product of ", n_outputs, " outputs does not support a bias ", bias.sizes());
  return bias.const_data_ptr<float>();
}

void check_inputs(const torch::Tensor& x, int64_t n_inputs) {
  TORCH_CHECK(x.is_cpu() && x.scalar_type() == torch::kFloat && x.dim() > 0 && x.size(-1) == n_inputs,
              "a product of ", n_inputs, " inputs does not support an input ", x.sizes());
}

int64_t count_rows(const torch::Tensor& x) {
  return c10::multiply_integers(x.sizes().slice(0, static_cast<size_t>(x.dim() - 1)));
}

}  // namespace

torch::Tensor packed_product(const torch::Tensor& x, const PackedMatrix& matrix, const torch::Tensor& bias,
                             OutputRange outputs, CpuPath path) {
  TORCH_CHECK(matrix.defined() && matrix.memory().is_cpu(), "packed matrices stay on the CPU");
  TORCH_CHECK(outputs.first >= 0 && outputs.count >= 0 && outputs.first + outputs.count <= matrix.n_rows(),
              "a matrix of ", matrix.n_rows(), " rows has no rows ", outputs.first, " to ",
              outputs.first + outputs.count);
  const auto& products = kernels(path).products;
  check_inputs(x, matrix.n_columns());
  const auto contiguous = x.expect_contiguous();  // no copy, and no work, if it is contiguous
  const FloatRows rows{.data = contiguous->const_data_ptr<float>(), .stride = matrix.n_columns()};
  const int64_t n_rows = count_rows(x);
  const auto result = empty_output(x, outputs.count);
  if (result.numel() == 0) return result;
  auto* const y = result.mutable_data_ptr<float>();
  const auto* const b = bias_data(bias, outputs.count);
  if (matrix.format() == PackedFormat::int8 || matrix.format() == PackedFormat::int4) {
    multiply(IntegerPanels(rows, n_rows, matrix, products), matrix, b, outputs, n_rows, y);
  } else {
    multiply(FloatPanels(rows, n_rows, matrix, products), matrix, b, outputs, n_rows, y);
  }
  return result;
}

torch::Tensor packed_product(const torch::Tensor& x, const PackedMatrix& matrix, const torch::Tensor& bias,
                             CpuPath path) {
  return packed_product(x, matrix, bias, {.first = 0, .count = matrix.n_rows()}, path);
}

torch::Tensor rows_product(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias,
                           CpuPath path) {
  TORCH_CHECK(weight.is_cpu() && weight.scalar_type() == torch::kFloat && weight.is_contiguous(),
              "rows_product does not support this weight");
  const auto& products = kernels(path).products;
  const int64_t n_outputs = weight.size(0), n_inputs = weight.size(1);
  check_inputs(x, n_inputs);
  const auto contiguous = x.expect_contiguous();
  const int64_t n_rows_of_x = count_rows(x);
  const auto result = empty_output(x, n_outputs);
  if (result.numel() == 0) return result;
  auto* const y = result.mutable_data_ptr<float>();
  const auto* const b = bias_data(bias, n_outputs);
  const auto* const w = weight.const_data_ptr<float>();
  const auto* const inputs = contiguous->const_data_ptr<float>();
  // For one row the memory sets the pace, and one stream of it is faster than several side by side.
  const bool side_by_side = n_rows_of_x > 1;
  const int64_t n_units = (n_outputs + kDotOutputs - 1) / kDotOutputs;
  const int64_t work = std::max<int64_t>(n_inputs * kDotOutputs * 4, 1);
  at::parallel_for(0, n_units, 1 + kGrainBytes / work, [&](int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t output = unit * kDotOutputs, count = std::min<int64_t>(kDotOutputs, n_outputs - output);
      for_each_block(n_rows_of_x, kDotRows, [&](int64_t first, int64_t n_rows) {
        const FloatRows x_rows{.data = inputs + first * n_inputs, .stride = n_inputs};
        float* const y_block = y + first * n_outputs + output;
        if (side_by_side && count == kDotOutputs) {
          products.dots[n_rows - 1](w + output * n_inputs, n_inputs, x_rows, y_block, n_outputs);
        } else {
          for (int64_t o = 0; o < count; ++o)
            products.last_dots[n_rows - 1](w + (output + o) * n_inputs, n_inputs, x_rows, y_block + o,
                                           n_outputs);
        }
        if (!b) return;
        for (int64_t r = 0; r < n_rows; ++r)
          for (int64_t o = 0; o < count; ++o) y_block[r * n_outputs + o] += b[output + o];
      });
    }
  });
  return result;
}

}  // namespace zoo

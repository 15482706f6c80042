#pragma once
// Products of few rows on a GPU by a kernel of our own (gpu/product.cu), for decoding: the time of such a
// product is that of reading the matrix, which is read as it is stored, and what stands before and behind the
// product costs no pass of its own.

#include <cstdint>
#include <optional>
#include <vector>

#include <torch/types.h>

#include "kernels/gpu/gpu_program.h"
#include "kernels/gpu/product_call.h"

namespace zoo {

/// The most rows that the kernel serves.
constexpr int64_t kMostProductRows = 8;

/// A matrix W (O, I) and its bias.
struct StoredMatrix {
  torch::Tensor numbers;  // (O, I) float, bfloat16, half, or int8
  torch::Tensor scales;   // of int8, (O, 1) or (O, ⌈I/32⌉) float
  torch::Tensor bias;     // (O) float or the type of the product; undefined: none
};

/// Whether two matrices, or the halves of one, make the output together: act(gate) ⊙ up.
enum class ProductGate { none, first_is_gate };

/// y = residual + act(norm(x) Wᵀ + b).
struct ProductPlan {
  /// Of one output after the other. All have one type and one I.
  std::vector<StoredMatrix> matrices;
  /// x enters the product in this type, and the result is rounded to it. Matrices have this type, or int8.
  torch::ScalarType type = torch::kFloat;
  ProductNorm norm = ProductNorm::none;
  torch::Tensor gain = {}, norm_bias = {};  // (I) float; norm_bias may be undefined
  double gain_offset = 0;                   // is added to the gain
  double eps = 0;
  ProductAct act = ProductAct::none;
  ProductGate gate = ProductGate::none;
  torch::Tensor residual = {};  // (…, O) float or `type`, which is then y's type; undefined: y has `type`
};

/// x (…, I) float as products with whole numbers read it, on the CPU (kernels/products/integer_rows.h) and on
/// a GPU: each 32 inputs are whole numbers from -127 to 127 times a scale.
torch::Tensor rounded_by_groups(const torch::Tensor& x);

/// Whether the kernel can read this matrix in a product of this type.
bool has_gpu_product(const StoredMatrix& matrix, torch::ScalarType type);

/// x: (…, I) float or plan.type, at most kMostProductRows rows. Returns (…, O) without a gradient; a row of
/// the result depends on its row of x only. Inputs of int8 are rounded as on the CPU
/// (kernels/products/integer_rows.h). Nothing where the kernel does not serve: for other sizes and
/// types, where a gradient is wanted, on devices without our kernels, or if it does not agree with LibTorch's
/// operations there (gpu/checked_program.h).
std::optional<torch::Tensor> gpu_product(const torch::Tensor& x, const ProductPlan& plan);

/// The same by `program`.
torch::Tensor product_by(const KernelProgram& program, const torch::Tensor& x, const ProductPlan& plan);

}  // namespace zoo

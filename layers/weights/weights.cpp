#include "layers/weights/weights.h"

#include <algorithm>

#include <ATen/autocast_mode.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/utils.h>

#include "base/autocast.h"
#include "kernels/gpu_product.h"
#include "kernels/linear.h"
#include "kernels/products/products.h"

namespace zoo {
namespace {

using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

constexpr int64_t kInputsOfAScale = 32;

PackedFormat packed_format(WeightFormat format) {
  switch (format) {
    case WeightFormat::bf16:
      return PackedFormat::bf16;
    case WeightFormat::fp16:
      return PackedFormat::fp16;
    case WeightFormat::int8:
      return PackedFormat::int8;
    case WeightFormat::int4:
      return PackedFormat::int4;
    case WeightFormat::fp32:
      break;
  }
  C10_THROW_ERROR(ValueError, "this WeightFormat is not packed");
}

bool is_whole(WeightFormat format) { return format == WeightFormat::int8 || format == WeightFormat::int4; }

/// numbers (…, I) int8 times their scales (…, 1) or (…, ⌈I/32⌉): (…, I) float.
torch::Tensor scaled(const torch::Tensor& numbers, const torch::Tensor& scales) {
  const auto values = numbers.to(torch::kFloat);
  if (scales.size(-1) == 1) return values * scales;
  return values * scales.repeat_interleave(kInputsOfAScale, -1).narrow(-1, 0, values.size(-1));
}

/// x (…, I) float as products with whole numbers read it.
torch::Tensor with_rounded_inputs(const torch::Tensor& x) {
  const auto rounded = rounded_by_groups(x.detach());
  const bool recorded = torch::GradMode::is_enabled() && x.requires_grad();
  return recorded ? x + (rounded - x.detach()) : rounded;  // gradients reach x as if nothing were rounded
}

/// x Wᵀ for a matrix that is not trained: gradients reach x only. Only forward() uses the pointer; backward()
/// uses the rows in fp32 that forward() saves.
struct PackedProduct : torch::autograd::Function<PackedProduct> {
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& x, const PackedMatrix* matrix,
                               int64_t first, int64_t count) {
    if (x.requires_grad()) {
      const auto rows = torch::arange(first, first + count, torch::kInt64);
      context->save_for_backward({matrix->rows(rows)});
    }
    return packed_product(x, *matrix, {}, {.first = first, .count = count});
  }
  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    return {gradients[0].matmul(context->get_saved_variables()[0]), {}, {}, {}};
  }
};

/// The product in float32, whatever the type of x.
torch::Tensor product_with(const PackedMatrix& matrix, const torch::Tensor& x, const torch::Tensor& bias,
                           OutputRange outputs) {
  const auto type = x.scalar_type();
  const auto inputs = type == torch::kFloat ? x : x.to(torch::kFloat);
  const bool recorded =
      torch::GradMode::is_enabled() && (inputs.requires_grad() || (bias.defined() && bias.requires_grad()));
  auto y = recorded ? PackedProduct::apply(inputs, &matrix, outputs.first, outputs.count)
                    : packed_product(inputs, matrix, bias, outputs);
  if (recorded && bias.defined()) y = y + bias;
  return type == torch::kFloat ? y : y.to(type);
}

/// x Wᵀ + b for a matrix in fp32.
torch::Tensor float_product(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias) {
  const auto plain = [](const torch::Tensor& t) {
    return t.is_cpu() && t.scalar_type() == torch::kFloat &&
           !(torch::GradMode::is_enabled() && t.requires_grad());
  };
  const bool few = plain(x) && x.dim() > 0 && x.numel() <= kMostRows * x.size(-1) && plain(weight) &&
                   weight.is_contiguous() && (!bias.defined() || plain(bias)) &&
                   !at::autocast::is_autocast_enabled(at::kCPU);
  return few ? rows_product(x, weight, bias) : linear(x, weight, bias);
}

}  // namespace

WeightFormat fast_format(WeightFormat format, torch::Device device) {
  if (format == WeightFormat::fp16 && device.is_cpu() && best_path() == CpuPath::portable)
    return WeightFormat::bf16;
  return format;
}

int64_t WeightMatrix::bytes() const {
  return static_cast<int64_t>(numbers().nbytes() + (scales_.defined() ? scales_.nbytes() : 0));
}

const torch::Tensor& WeightMatrix::parameter() const {
  TORCH_CHECK(format_ == WeightFormat::fp32, "these weights are stored for inference and cannot be trained");
  return weight_;
}

torch::Tensor WeightMatrix::product(const torch::Tensor& x, const torch::Tensor& bias) const {
  if (packed_.defined()) return product_with(packed_, x, bias, {.first = 0, .count = packed_.n_rows()});
  if (reads_rounded(x)) return rounded_linear(x, weight_, rounded_, bias);
  if (format_ == WeightFormat::fp32) return float_product(x, weight_, bias);
  // On a GPU: multiplied in the format; whole numbers of many rows in float.
  const auto type = scales_.defined() ? x.scalar_type() : weight_.scalar_type();
  // Where all products have this type, what is computed of one stays in it (models/precision.h).
  const bool stays = scales_.defined() || autocast_type(weight_.device().type()) == type;
  if (auto y = gpu_product(x, {.matrices = {{weight_, scales_, bias}}, .type = type}))
    return stays ? *y : y->to(x.scalar_type());
  if (scales_.defined()) {
    const auto y = torch::linear(with_rounded_inputs(x.to(torch::kFloat)), scaled(weight_, scales_));
    return (bias.defined() ? y + bias : y).to(x.scalar_type());
  }
  const auto y = torch::linear(x.to(type), weight_, bias.defined() ? bias.to(type) : bias);
  return stays ? y : y.to(x.scalar_type());
}

torch::Tensor WeightMatrix::product(const torch::Tensor& x, const torch::Tensor& bias, int64_t first,
                                    int64_t count) const {
  const auto part_of_bias = bias.defined() ? bias.narrow(0, first, count) : bias;
  if (packed_.defined()) return product_with(packed_, x, part_of_bias, {.first = first, .count = count});
  WeightMatrix part;
  part.format_ = format_;
  part.weight_ = weight_.narrow(0, first, count);
  if (scales_.defined()) part.scales_ = scales_.narrow(0, first, count);
  if (reads_rounded(x)) {
    part.rounded_ = rounded_.narrow(0, first, count);
    part.rounded_version_ = part.weight_._version();
  }
  return part.product(x, part_of_bias);
}

torch::Tensor WeightMatrix::keep_rounded(torch::ScalarType type) {
  rounded_ = parameter().detach().to(type);
  note_rounding();
  return rounded_;
}

void WeightMatrix::note_rounding() { rounded_version_ = weight_._version(); }

bool WeightMatrix::reads_rounded(const torch::Tensor& x) const {
  return rounded_.defined() && is_rounding_current() &&
         autocast_type(x.device().type()) == rounded_.scalar_type();
}

torch::Tensor WeightMatrix::rows(const torch::Tensor& ids) const {
  if (packed_.defined()) return packed_.rows(ids);
  auto vectors = torch::embedding(weight_, ids);
  if (format_ == WeightFormat::fp32) return vectors;
  return scales_.defined() ? scaled(vectors, torch::embedding(scales_, ids)) : vectors.to(torch::kFloat);
}

torch::Tensor WeightMatrix::values() const {
  return rows(torch::arange(n_rows(), torch::dtype(torch::kInt64).device(numbers().device())));
}

WeightMatrix WeightMatrix::blank() const {
  auto result = *this;
  if (packed_.defined()) result.packed_ = packed_.blank();
  if (weight_.defined()) result.weight_ = torch::empty_like(weight_);
  if (scales_.defined()) result.scales_ = torch::empty_like(scales_);
  return result;
}

void WeightMatrix::convert(WeightFormat wanted) {
  const auto format = fast_format(wanted, numbers().device());
  if (format == format_) return;
  const torch::NoGradGuard no_grad;
  const auto values = parameter().detach();
  if (values.is_cpu()) {
    packed_ = PackedMatrix(values, packed_format(format));
    weight_ = torch::Tensor();
  } else if (is_whole(format)) {
    const auto [numbers, scales] =
        PackedMatrix(values.to(torch::kCPU), packed_format(format)).whole_numbers();
    weight_ = numbers.to(values.device());
    scales_ = scales.to(values.device());
  } else {
    weight_ = values.to(format == WeightFormat::bf16 ? torch::kBFloat16 : torch::kHalf);
  }
  format_ = format;
}

void MatrixModule::set_weight(torch::Tensor weight) {
  matrix_ = WeightMatrix(register_parameter("weight", std::move(weight)));
}

void MatrixModule::convert(WeightFormat format) {
  if (!matrix_.defined()) return;
  const auto before = matrix_.format();
  matrix_.convert(format);
  if (matrix_.format() != before) use_buffers();
}

void MatrixModule::convert_bias() {
  if (!matrix_.defined() || matrix_.numbers().is_cpu()) return;
  const auto type = matrix_.numbers().scalar_type();
  if (type != torch::kBFloat16 && type != torch::kHalf) return;
  if (auto* const bias = parameters_.find("bias"); bias && bias->defined())
    bias->set_data(bias->detach().to(type));
}

/// Makes the matrix, which is the parameter, buffers.
void MatrixModule::use_buffers() {
  parameters_.erase("weight");
  register_buffer("weight", matrix_.numbers());
  if (matrix_.scales().defined()) register_buffer("weight_scale", matrix_.scales());
}

void MatrixModule::take_settings(const torch::nn::Module& from) {
  const auto& other = dynamic_cast<const MatrixModule&>(from).matrix_;
  if (!other.defined() || other.format() == matrix_.format()) return;
  matrix_ = other.blank();
  use_buffers();
}

RoundedWeights::RoundedWeights(torch::nn::Module& model, torch::ScalarType type) {
  for (const auto& module : model.modules()) {
    auto owner = std::dynamic_pointer_cast<MatrixModule>(module);
    if (!owner || !owner->matrix().defined() || owner->matrix().format() != WeightFormat::fp32) continue;
    copies_.push_back(owner->own_matrix().keep_rounded(type));
    owners_.push_back(std::move(owner));
  }
}

RoundedWeights::~RoundedWeights() {
  for (const auto& owner : owners_) owner->own_matrix().forget_rounded();
}

void RoundedWeights::renew() {
  if (copies_.empty()) return;
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor> parameters;
  for (const auto& owner : owners_) parameters.push_back(owner->matrix().parameter());
  at::_foreach_copy_(copies_, parameters);
  note_renewal();
}

void RoundedWeights::note_renewal() {
  for (const auto& owner : owners_) owner->own_matrix().note_rounding();
}

std::vector<RoundedWeights::Copy> RoundedWeights::copies() const {
  std::vector<Copy> result;
  for (size_t i = 0; i < owners_.size(); ++i)
    result.push_back({.parameter = owners_[i]->matrix().parameter(), .rounded = copies_[i]});
  return result;
}

void RoundedWeights::renew_if_changed() {
  if (!std::ranges::all_of(owners_, [](const auto& owner) { return owner->matrix().is_rounding_current(); }))
    renew();
}

void store_weights(torch::nn::Module& model, WeightFormat format) {
  for (const auto& module : model.modules()) {
    auto* const owner = dynamic_cast<MatrixModule*>(module.get());
    if (!owner) continue;
    owner->convert(format);
    owner->convert_bias();
  }
}

}  // namespace zoo

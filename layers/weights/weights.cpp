#include "layers/weights/weights.h"

#include <torch/utils.h>

#include "layers/kernels/linear.h"

namespace zoo {
namespace {

constexpr double kLargestInt8 = 127;

/// x Wᵀ for an int8 matrix and its scales. x: (…, I).
torch::Tensor int8_product(const torch::Tensor& x, const torch::Tensor& numbers,
                           const torch::Tensor& scales) {
  if (!x.is_cpu())
    return torch::linear(x, numbers.to(x.scalar_type()) * scales.to(x.scalar_type()).unsqueeze(1));
  auto shape = x.sizes().vec();
  shape.back() = numbers.size(0);
  // x is always float32 here: for bfloat16 the kernel reads past the end of rows whose width is not a
  // multiple of 16.
  const auto rows = x.reshape({-1, x.size(-1)}).to(torch::kFloat).contiguous();
  return at::_weight_int8pack_mm(rows, numbers, scales).view(shape).to(x.scalar_type());
}

}  // namespace

int64_t WeightMatrix::bytes() const {
  return static_cast<int64_t>(weight_.nbytes() + (scales_.defined() ? scales_.nbytes() : 0));
}

const torch::Tensor& WeightMatrix::parameter() const {
  TORCH_CHECK(format_ == WeightFormat::fp32, "these weights are stored for inference and cannot be trained");
  return weight_;
}

torch::Tensor WeightMatrix::product(const torch::Tensor& x, const torch::Tensor& bias) const {
  switch (format_) {
    case WeightFormat::fp32:
      return linear(x, weight_, bias);
    case WeightFormat::bf16: {
      const auto y = torch::linear(x.to(torch::kBFloat16), weight_).to(x.scalar_type());
      return bias.defined() ? y + bias : y;
    }
    case WeightFormat::int8: {
      const auto y = int8_product(x, weight_, scales_);
      return bias.defined() ? y + bias : y;
    }
  }
  C10_THROW_ERROR(ValueError, "unknown WeightFormat");
}

torch::Tensor WeightMatrix::product(const torch::Tensor& x, const torch::Tensor& bias, int64_t first,
                                    int64_t count) const {
  WeightMatrix part;
  part.format_ = format_;
  part.weight_ = weight_.narrow(0, first, count);
  if (scales_.defined()) part.scales_ = scales_.narrow(0, first, count);
  return part.product(x, bias.defined() ? bias.narrow(0, first, count) : bias);
}

torch::Tensor WeightMatrix::rows(const torch::Tensor& ids) const {
  auto vectors = torch::embedding(weight_, ids);
  if (format_ == WeightFormat::fp32) return vectors;
  const auto values = vectors.to(torch::kFloat);
  return scales_.defined() ? values * scales_.index({ids}).unsqueeze(-1) : values;
}

void WeightMatrix::convert(WeightFormat format) {
  if (format == format_) return;
  const torch::NoGradGuard no_grad;
  const auto values = parameter().detach();
  if (format == WeightFormat::bf16) {
    weight_ = values.to(torch::kBFloat16);
  } else {
    const auto largest = values.abs().amax(1).to(torch::kFloat);
    scales_ = torch::where(largest > 0, largest / kLargestInt8, torch::ones_like(largest));
    weight_ = (values / scales_.unsqueeze(1)).round().to(torch::kChar).contiguous();
  }
  format_ = format;
}

void MatrixModule::set_weight(torch::Tensor weight) {
  matrix_ = WeightMatrix(register_parameter("weight", std::move(weight)));
}

void MatrixModule::convert(WeightFormat format) {
  if (!matrix_.defined() || format == matrix_.format()) return;
  matrix_.convert(format);
  parameters_.erase("weight");
  register_buffer("weight", matrix_.numbers());
  if (matrix_.scales().defined()) register_buffer("weight_scale", matrix_.scales());
}

void MatrixModule::take_settings(const torch::nn::Module& from) {
  convert(dynamic_cast<const MatrixModule&>(from).matrix_.format());
}

void store_weights(torch::nn::Module& model, WeightFormat format) {
  for (const auto& module : model.modules()) {
    if (auto* const owner = dynamic_cast<MatrixModule*>(module.get())) owner->convert(format);
  }
}

}  // namespace zoo

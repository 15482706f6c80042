#include "analysis/causes/frozen.h"

#include <algorithm>

#include <fmt/format.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"

namespace zoo {
namespace {

torch::Tensor numbers(const torch::Tensor& x) { return x.detach().to(torch::kCPU, torch::kDouble); }

}  // namespace

void Parts::add(std::string name, const torch::Tensor& part) {
  names_.push_back(std::move(name));
  parts_.push_back(numbers(part));
}

void Parts::add_to(const std::string& name, const torch::Tensor& part) {
  const auto found = std::ranges::find(names_, name);
  if (found == names_.end()) return add(name, part);
  auto& into = parts_[static_cast<size_t>(found - names_.begin())];
  into = into + numbers(part);
}

torch::Tensor Parts::sum() const { return torch::stack(parts_).sum(0); }

void Parts::transform(const std::function<torch::Tensor(const torch::Tensor&)>& map) {
  for (auto& part : parts_) part = numbers(map(part));
}

FrozenNorm::FrozenNorm(const NormImpl& norm, const torch::Tensor& whole)
    : centred_(norm.options.formula()->is_centred()),
      gain_(norm.weight.defined() ? numbers(norm.weight) + (norm.options.unit_offset() ? 1.0 : 0.0)
                                  : torch::ones({}, torch::kFloat64)),
      scale_(norm.options.formula()->divisor(numbers(whole), norm.options.eps())),
      bias_(norm.bias.defined() ? numbers(norm.bias) : torch::Tensor()) {
  if (!scale_.defined())
    throw UsageError(fmt::format("a logit cannot be divided among parts: the norm {} is no division",
                                 norm.options.formula()->name()));
}

torch::Tensor FrozenNorm::operator()(const torch::Tensor& part) const {
  const auto centred = centred_ ? part - part.mean(-1, /*keepdim=*/true) : part;
  return gain_ * centred / scale_;
}

void normalise(Parts& parts, const NormImpl& norm) {
  const auto whole = parts.sum();
  const FrozenNorm frozen(norm, whole);
  parts.transform(frozen);
  if (frozen.bias().defined()) parts.add_to("norms.bias", frozen.bias().expand_as(whole));
}

}  // namespace zoo

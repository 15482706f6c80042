#include "layers/attention/rotary.h"

#include <cmath>
#include <numbers>

#include <torch/types.h>
#include <torch/utils.h>

#include "kernels/gpu_rotary.h"
#include "layers/weights/description.h"

namespace zoo {
namespace {

int64_t turned_width(const RotaryOptions& options) { return options.width().value_or(options.head_dim()); }

// The (fractional) index of the pair that makes `turns` full rotations within the original context.
double pair_with_turns(const RotaryOptions& options, double turns) {
  const double context = static_cast<double>(options.original_max_positions());
  return static_cast<double>(turned_width(options)) * std::log(context / (turns * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(options.theta()));
}

torch::Tensor yarn_rates(const RotaryOptions& options, const torch::Tensor& rates) {
  const auto last = static_cast<double>(turned_width(options) - 1);
  const double first_pair = pair_with_turns(options, options.beta_fast()),
               last_pair = pair_with_turns(options, options.beta_slow());
  const double low = std::max(options.rounded() ? std::floor(first_pair) : first_pair, 0.0);
  double high = std::min(options.rounded() ? std::ceil(last_pair) : last_pair, last);
  if (low == high) high += 0.001;  // avoids a division by zero, as in the reference
  const auto ramp = ((torch::arange(rates.size(0), rates.options()) - low) / (high - low)).clamp(0, 1);
  return rates / options.factor() * ramp + rates * (1 - ramp);
}

torch::Tensor llama3_rates(const RotaryOptions& options, const torch::Tensor& rates) {
  const double context = static_cast<double>(options.original_max_positions());
  const double low = options.low_frequency_factor(), high = options.high_frequency_factor();
  const auto wavelengths = 2.0 * std::numbers::pi / rates;
  const auto blend = ((context / wavelengths - low) / (high - low)).clamp(0, 1);
  return (1 - blend) * rates / options.factor() + blend * rates;
}

/// The factor on cosine and sine: yarn's and longrope's temperature, otherwise 1.
double amplitude(const RotaryOptions& options) {
  if (options.scaling() == RotaryScaling::longrope) return options.attention_factor().value_or(1.0);
  if (options.scaling() != RotaryScaling::yarn) return 1.0;
  return options.attention_factor().value_or(options.factor() <= 1 ? 1.0
                                                                   : 0.1 * std::log(options.factor()) + 1.0);
}

/// Makes `function` (cosine or sine) of the angles at every position.
PositionTable::Make angles(const RotaryOptions& options, torch::Tensor (*function)(const torch::Tensor&)) {
  return
      [rates = rotary_rates(options), factor = amplitude(options), function](const torch::Tensor& positions) {
        return function(torch::outer(positions.to(torch::kFloat32), rates.to(positions.device()))) * factor;
      };
}

}  // namespace

torch::Tensor rotary_rates(const RotaryOptions& options) {
  const auto width = static_cast<double>(turned_width(options));
  double theta = options.theta();
  if (options.scaling() == RotaryScaling::ntk) theta *= std::pow(options.factor(), width / (width - 2.0));
  const auto exponents = torch::arange(0, turned_width(options), 2, torch::kFloat64) / width;
  auto rates = torch::pow(torch::full({}, theta, torch::kFloat64), exponents).reciprocal();
  if (options.scaling() == RotaryScaling::linear) rates = rates / options.factor();
  if (options.scaling() == RotaryScaling::yarn) rates = yarn_rates(options, rates);
  if (options.scaling() == RotaryScaling::llama3) rates = llama3_rates(options, rates);
  if (options.scaling() == RotaryScaling::longrope) {
    TORCH_CHECK(std::ssize(options.divisors()) == rates.size(0), "longrope divides ", rates.size(0),
                " angles, and has ", options.divisors().size(), " divisors");
    rates = rates / torch::tensor(options.divisors(), torch::kFloat64);
  }
  return rates.to(torch::kFloat32);
}

RotaryImpl::RotaryImpl(const RotaryOptions& options_)
    : options(options_),
      cos_(angles(options, [](const torch::Tensor& angle) { return angle.cos(); })),
      sin_(angles(options, [](const torch::Tensor& angle) { return angle.sin(); })) {
  const int64_t width = turned_width(options);
  TORCH_CHECK(width > 0 && width % 2 == 0 && width <= options.head_dim(),
              "rotary positions rotate pairs: the width ", width, " must be even and at most the head's ",
              options.head_dim());
}

void RotaryImpl::pretty_print(std::ostream& stream) const {
  stream << Description("Rotary")
                .add("head_dim", options.head_dim())
                .add("width", turned_width(options))
                .add("theta", options.theta())
                .add("layout", options.layout())
                .add("scaling", options.scaling());
}

RotaryTable RotaryImpl::forward(const PositionRange& range, torch::Device device) {
  const auto cos = cos_.rows(range, device), sin = sin_.rows(range, device);
  if (!range.differs_by_row()) return {{cos, sin, options.layout()}};
  return {{cos.unsqueeze(1), sin.unsqueeze(1), options.layout()}};
}

const RotaryTable::Factors& RotaryTable::factors_for(torch::ScalarType type) const {
  if (factors->own.defined() && factors->own.scalar_type() == type) return *factors;
  const torch::NoGradGuard no_grad;
  const auto c = cos.to(type), s = sin.to(type);
  if (layout == RotaryLayout::half) {
    *factors = {torch::cat({c, c}, -1), torch::cat({-s, s}, -1)};
  } else {
    *factors = {torch::stack({c, c}, -1).flatten(-2), torch::stack({-s, s}, -1).flatten(-2)};
  }
  return *factors;
}

torch::Tensor RotaryTable::apply(const torch::Tensor& x) const {
  if (has_cpu_rotary(x, *this)) return cpu_rotary(x, *this);
  if (auto y = gpu_rotary(x, *this)) return *y;
  if (!x.is_cpu()) {
    const auto& [own, other] = factors_for(x.scalar_type());
    const int64_t turned = own.size(-1), head = x.size(-1);
    const auto part = turned == head ? x : x.narrow(-1, 0, turned);
    const auto exchanged = layout == RotaryLayout::half ? part.roll(turned / 2, -1)
                                                        : part.unflatten(-1, {-1, 2}).flip(-1).flatten(-2);
    const auto y = torch::addcmul(part * own, exchanged, other);
    return turned == head ? y : torch::cat({y, x.narrow(-1, turned, head - turned)}, -1);
  }
  const int64_t pairs = cos.size(-1), width = 2 * pairs, head_dim = x.size(-1);
  const auto c = cos.to(x.dtype()), s = sin.to(x.dtype());
  const auto turned = width == head_dim ? x : x.narrow(-1, 0, width);
  torch::Tensor y;
  if (layout == RotaryLayout::half) {
    const auto a = turned.narrow(-1, 0, pairs), b = turned.narrow(-1, pairs, pairs);
    y = torch::cat({a * c - b * s, b * c + a * s}, -1);
  } else {
    const auto split = turned.unflatten(-1, {pairs, 2});
    const auto a = split.select(-1, 0), b = split.select(-1, 1);
    y = torch::stack({a * c - b * s, b * c + a * s}, -1).flatten(-2);
  }
  return width == head_dim ? y : torch::cat({y, x.narrow(-1, width, head_dim - width)}, -1);
}

}  // namespace zoo

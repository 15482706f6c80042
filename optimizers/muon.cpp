// Muon.

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>

#include "optimizers/library_rules.h"
#include "parallel/threads.h"

namespace zoo {
namespace {

/// The product of two matrices, or of each two of a batch.
torch::Tensor product(const torch::Tensor& a, const torch::Tensor& b) {
  return a.dim() == 2 ? a.mm(b) : a.bmm(b);
}
/// beta·c + alpha·ab
torch::Tensor product_and(const torch::Tensor& c, const torch::Tensor& a, const torch::Tensor& b, double beta,
                          double alpha = 1) {
  return a.dim() == 2 ? at::addmm(c, a, b, beta, alpha) : at::baddbmm(c, a, b, beta, alpha);
}
torch::Tensor norm_of(const torch::Tensor& x) {
  return x.dim() == 2 ? x.norm() : at::linalg_vector_norm(x, 2, {-2, -1}, /*keepdim=*/true);
}

/// Newton–Schulz iterations of fifth order towards UVᵀ, where USVᵀ = matrix, (R, C), or each of a batch,
/// (n, R, C). The polynomial with Jordan's coefficients rises fastest at zero, and leaves singular values of
/// 0.7 to 1.2 instead of 1, which does no harm.
torch::Tensor newton_schulz(const torch::Tensor& matrix, const MuonConfig& config) {
  constexpr double a = 3.4445, b = -4.7750, c = 2.0315, eps = 1e-7;
  const bool is_tall = matrix.size(-2) > matrix.size(-1);
  auto x = matrix.to(config.precision == MuonPrecision::bf16 ? torch::kBFloat16 : torch::kFloat);
  if (is_tall) x = x.mT();             // the smaller product
  x = x / norm_of(x).clamp_min_(eps);  // no singular value above 1
  for (int64_t i = 0; i < config.newton_schulz_steps; ++i) {
    const auto gram = product(x, x.mT());
    x = product_and(x, product_and(gram, gram, gram, b, c), x, a);
  }
  return is_tall ? x.mT() : x;
}

/// Gives matrices of all shapes comparable steps.
double lr_scale(MuonLrScale kind, const torch::Tensor& matrix) {
  const auto rows = static_cast<double>(matrix.size(0)), columns = static_cast<double>(matrix.size(1));
  switch (kind) {
    case MuonLrScale::original:
      return std::sqrt(std::max(1.0, rows / columns));
    case MuonLrScale::match_rms_adamw:
      return 0.2 * std::sqrt(std::max(rows, columns));
  }
  return 1;
}

/// Some rows of a parameter that are one matrix.
struct Matrix {
  size_t parameter;  // its number in the group
  int64_t first, count;
};

/// The matrices of a group. The largest come first, so that threads which take one after the other end at
/// about the same time; matrices of one shape stand together.
std::vector<Matrix> matrices_of(const ParameterGroup& group) {
  std::vector<Matrix> matrices;
  for (size_t i = 0; i < group.parameters.size(); ++i) {
    int64_t first = 0;
    for (const int64_t count : group.stacked_rows[i]) {
      matrices.push_back({i, first, count});
      first += count;
    }
    if (first == 0) matrices.push_back({i, 0, group.parameters[i].size(0)});
  }
  std::ranges::stable_sort(matrices, std::greater(), [&](const Matrix& matrix) {
    const auto& parameter = group.parameters[matrix.parameter];
    return std::pair(parameter.numel() / parameter.size(0) * matrix.count, matrix.count);
  });
  return matrices;
}

class Muon final : public UpdateRule {
 public:
  explicit Muon(const MuonConfig& config) : config_(config) {}

  std::vector<StateTensor> initial_state(const torch::Tensor& parameter) const override {
    return {{"momentum", at::zeros_like(parameter)}};
  }

  void update(const ParameterGroup& group, double lr) const override {
    const auto& momenta = group.state[0];
    at::_foreach_lerp_(momenta, group.gradients, 1 - config_.momentum);
    if (group.weight_decay != 0) at::_foreach_mul_(group.parameters, 1 - lr * group.weight_decay);
    const auto matrices = matrices_of(group);
    const auto take = [&](int64_t i) { take_step(group, matrices[static_cast<size_t>(i)], lr); };
    if (!momenta.front().is_cpu()) return update_batches(group, matrices, lr);
    // Threads that share the product of two small matrices wait for each other for as long as they compute.
    if (std::ssize(matrices) >= 2 * at::get_num_threads() && momenta.front().is_cpu()) {
      for_each_on_one_thread(std::ssize(matrices), take);
    } else {
      for (int64_t i = 0; i < std::ssize(matrices); ++i) take(i);
    }
  }

 private:
  void take_step(const ParameterGroup& group, const Matrix& matrix, double lr) const {
    const auto rows_of = [&](const std::vector<torch::Tensor>& tensors) {
      return tensors[matrix.parameter].narrow(0, matrix.first, matrix.count);
    };
    const auto momentum = rows_of(group.state[0]), parameter = rows_of(group.parameters);
    const auto direction =
        config_.nesterov ? rows_of(group.gradients).lerp(momentum, config_.momentum) : momentum;
    const auto flat = direction.flatten(1);  // a convolution has one row for each output channel
    parameter.add_(newton_schulz(flat, config_).reshape(parameter.sizes()),
                   -lr * lr_scale(config_.lr_scale, flat));
  }

  /// Matrices of one shape are one batch, of at most so many numbers.
  void update_batches(const ParameterGroup& group, const std::vector<Matrix>& matrices, double lr) const {
    constexpr int64_t most_numbers = int64_t{1} << 24;
    for (auto begin = matrices.begin(), end = begin; begin != matrices.end(); begin = end) {
      const auto size = [&](const Matrix& matrix) {
        return std::pair(matrix.count, group.parameters[matrix.parameter][0].numel());
      };
      const auto shape = size(*begin);
      const int64_t most =
          std::max<int64_t>(most_numbers / std::max<int64_t>(shape.first * shape.second, 1), 1);
      end = std::find_if(begin, matrices.end(), [&](const Matrix& other) { return size(other) != shape; });
      end = std::min(end, begin + std::min<std::ptrdiff_t>(most, end - begin));
      const std::span batch(begin, end);
      const auto rows_of = [&](const std::vector<torch::Tensor>& tensors) {
        std::vector<torch::Tensor> rows;
        for (const auto& matrix : batch)
          rows.push_back(tensors[matrix.parameter].narrow(0, matrix.first, matrix.count));
        return rows;
      };
      const auto momenta = rows_of(group.state[0]), parameters = rows_of(group.parameters);
      const auto directions =
          config_.nesterov ? at::_foreach_lerp(rows_of(group.gradients), momenta, config_.momentum) : momenta;
      auto flat = at::stack(directions).flatten(2);
      auto steps = newton_schulz(flat, config_).to(parameters.front().scalar_type()).unbind();
      for (size_t i = 0; i < steps.size(); ++i) steps[i] = steps[i].reshape(parameters[i].sizes());
      at::_foreach_add_(parameters, steps, -lr * lr_scale(config_.lr_scale, flat[0]));
    }
  }

  MuonConfig config_;
};

}  // namespace

std::unique_ptr<UpdateRule> make_muon(const OptimizerConfig& config) {
  return std::make_unique<Muon>(config.muon);
}

}  // namespace zoo

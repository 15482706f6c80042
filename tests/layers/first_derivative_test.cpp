// Our functions for the CPU have no second derivative and throw when one is asked for.

#include "kernels/first_derivative.h"

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "kernels/cpu_attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/gelu.h"
#include "kernels/rms_norm.h"
#include "kernels/swiglu.h"
#include "layers/attention/rotary.h"

namespace zoo {
namespace {

struct Case {
  std::string name;
  std::function<torch::Tensor(const torch::Tensor& x)> function;  // x: (2, 4, 16, 16)
};

std::vector<Case> cases() {
  std::vector<Case> list;
  list.push_back({"gelu", [](const torch::Tensor& x) { return gelu(x, Phi::exact); }});
  list.push_back({"swiglu", [](const torch::Tensor& x) { return swiglu(x); }});
  list.push_back({"rms_norm", [](const torch::Tensor& x) { return rms_norm(x, torch::ones({16}), 1e-6); }});
  list.push_back({"dropout", [](const torch::Tensor& x) { return dropout(x, 0.1); }});
  list.push_back({"rotary", [](const torch::Tensor& x) {
                    const PositionRange range(0, 16);
                    return Rotary(RotaryOptions(16))(range, torch::kCPU).apply(x);
                  }});
  list.push_back({"cross_entropy", [](const torch::Tensor& x) {
                    return cross_entropy_sum(2 * x.view({128, 16}), torch::zeros({128}, torch::kLong));
                  }});
  const auto x = torch::zeros({2, 4, 16, 16});
  if (has_cpu_attention(x, x, x)) {
    list.push_back({"attention", [](const torch::Tensor& q) {
                      return cpu_attention(
                          q, q, q, VisiblePairs(Bands{Band::all({.count = q.size(2)}, {.count = q.size(2)})}),
                          1.0);
                    }});
  }
  return list;
}

TEST(FirstDerivative, ASecondOneIsRefused) {
  for (const auto& [name, function] : cases()) {
    const auto x = torch::randn({2, 4, 16, 16}).requires_grad_();
    const auto y = function(x).square().sum();
    EXPECT_THROW(torch::autograd::grad({y}, {x}, {}, /*retain_graph=*/true, /*create_graph=*/true),
                 c10::Error)
        << name;
    EXPECT_NO_THROW(torch::autograd::grad({y}, {x})) << name;
  }
}

}  // namespace
}  // namespace zoo

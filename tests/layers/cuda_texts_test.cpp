// The texts of kernels for GPUs, compiled for the processor, and by NVIDIA's compiler where there is one.

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "kernels/cpu_rotary.h"
#include "kernels/gpu/cross_entropy_kernel.h"
#include "kernels/gpu/gpu_program.h"
#include "kernels/gpu/optimizer_call.h"
#include "kernels/gpu/optimizer_kernel.h"
#include "kernels/gpu/run_time_compiler.h"
#include "kernels/gpu_dropout.h"
#include "kernels/gpu_gate.h"
#include "kernels/gpu_norm.h"
#include "kernels/gpu_rotary.h"
#include "tests/support/errors.h"
#include "tests/support/texts_here.h"

namespace zoo::embedded {
extern const char cross_entropy_cuda[];
extern const char decoding_attention_call_cuda[];
extern const char decoding_attention_cuda[];
extern const char dropout_cuda[];
extern const char gate_cuda[];
extern const char norm_cuda[];
extern const char optimizer_call_cuda[];
extern const char optimizer_cuda[];
extern const char product_call_cuda[];
extern const char product_cuda[];
extern const char rotary_cuda[];
}  // namespace zoo::embedded

namespace zoo::testing {
namespace {

using ::testing::HasSubstr;

// Rows that begin at addresses of every kind, fewer classes than threads, and more.
TEST(CudaTexts, CrossEntropyIsThatOfTorch) {
  const TextsHere texts;
  for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    for (const int64_t n_classes : {1, 2, 5, 8, 255, 257, 1000, 5003}) {
      for (const double smoothing : {0.0, 0.1}) {
        SCOPED_TRACE(std::to_string(n_classes) + " classes, " + torch::toString(type));
        torch::manual_seed(1);
        const auto logits = (torch::randn({3, n_classes}) * 6).to(type);
        const auto targets = torch::randint(n_classes, {3});
        const auto theirs = logits.to(torch::kFloat, false, true).requires_grad_();
        const auto wanted =
            at::cross_entropy_loss(theirs, targets, {}, at::Reduction::None, -100, smoothing) * 0.25;
        wanted.sum().backward();
        const auto losses = cross_entropy_by(texts, logits, targets, smoothing, 0.25);
        EXPECT_TRUE(torch::allclose(losses, wanted.detach(), 1e-5, 1e-5)) << losses << wanted;
        const double tolerance = type == torch::kFloat ? 1e-5 : type == torch::kHalf ? 2e-3 : 8e-3;
        EXPECT_LE((logits.to(torch::kFloat) - theirs.grad()).abs().max().item<double>(), tolerance * 0.25);
      }
    }
  }
}

TEST(CudaTexts, CrossEntropyOfLargeLogitsAndOfWhatIsNoNumber) {
  const auto of = [](const std::vector<float>& row, int64_t target) {
    const auto logits = torch::tensor(row).unsqueeze(0);
    return cross_entropy_by(TextsHere(), logits, torch::tensor({target}, torch::kLong), 0, 1).item<double>();
  };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_NEAR(of({1e4F, -1e4F, 0}, 0), 0, 1e-6);
  EXPECT_NEAR(of({-1e4F, -1e4F, -1e4F}, 1), std::log(3.0), 1e-6);
  EXPECT_NEAR(of({-infinity, 1, -infinity}, 1), 0, 1e-6);
  EXPECT_TRUE(std::isnan(of({0, std::numeric_limits<float>::quiet_NaN(), 0}, 0)));
  EXPECT_FALSE(std::isfinite(of({0, infinity, 0}, 0)));
}

TEST(CudaTexts, RoundToTheNearestNumber) {
  for (const float x : {1.0F, 1.00390625F, 1.01171875F, 3.14159F, -2.7182818F, 1e-40F, 65504.0F, 3.3e38F}) {
    EXPECT_EQ(as_bf16_of_texts(x), static_cast<float>(c10::BFloat16(x))) << x;
    EXPECT_EQ(as_half_of_texts(x), static_cast<float>(c10::Half(x))) << x;
  }
}

void expect_near(const torch::Tensor& found, const torch::Tensor& wanted, double tolerance) {
  ASSERT_EQ(found.sizes(), wanted.sizes());
  const auto numbers = wanted.to(torch::kFloat);
  EXPECT_LE((found.to(torch::kFloat) - numbers).norm().item<double>(),
            tolerance * (numbers.norm().item<double>() + 1));
}

/// Compares outputs and gradients of two functions of some tensors. `tolerance`: of the output and of each
/// gradient.
template <class Ours, class Theirs>
void expect_same(const std::vector<torch::Tensor>& inputs, const torch::Tensor& gradient, const Ours& ours,
                 const Theirs& theirs, const std::vector<double>& tolerance) {
  const auto run = [&](const auto& function) {
    std::vector<torch::Tensor> leaves;
    for (const auto& input : inputs) leaves.push_back(input.detach().requires_grad_());
    const auto y = function(leaves);
    auto results = torch::autograd::grad({y}, leaves, {gradient.to(y.scalar_type())});
    results.insert(results.begin(), y.detach());
    return results;
  };
  const auto found = run(ours), wanted = run(theirs);
  for (size_t i = 0; i < wanted.size(); ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(found[i].scalar_type(), i == 0 ? gradient.scalar_type() : inputs[i - 1].scalar_type());
    expect_near(found[i], wanted[i], tolerance[i]);
  }
}

double rounding_of(torch::ScalarType type) { return type == torch::kFloat ? 1e-5 : 4e-3; }

TEST(CudaTexts, NormsAreThoseOfTorch) {
  const TextsHere texts;
  for (const auto out : {torch::kBFloat16, torch::kHalf}) {
    for (const auto in : {torch::kFloat, out}) {
      for (const int64_t width : {4, 7, 256, 770}) {
        for (const auto centre : {NormCentre::mean, NormCentre::zero}) {
          for (const bool has_bias : {true, false}) {
            if (has_bias && centre == NormCentre::zero) continue;
            SCOPED_TRACE(fmt::format("{}, {}, centred {}, bias {}", torch::toString(in), width,
                                     centre == NormCentre::mean, has_bias));
            torch::manual_seed(2);
            std::vector<torch::Tensor> inputs = {(torch::randn({5, width}) + 2).to(in),
                                                 torch::randn({width})};
            if (has_bias) inputs.push_back(torch::randn({width}));
            const auto gradient = torch::randn({5, width}).to(out);
            const auto bias_of = [&](const auto& leaves) { return has_bias ? leaves[2] : torch::Tensor(); };
            expect_same(
                inputs, gradient,
                [&](const auto& leaves) {
                  return norm_by({&texts, centre, out, 1e-5}, leaves[0], leaves[1], bias_of(leaves));
                },
                [&](const auto& leaves) {
                  const auto x = leaves[0].to(torch::kFloat);
                  return centre == NormCentre::mean
                             ? torch::layer_norm(x, {width}, leaves[1], bias_of(leaves), 1e-5)
                             : torch::rms_norm(x, {width}, leaves[1], 1e-5);
                },
                {4e-3, rounding_of(in), 1e-5, 1e-5});
          }
        }
      }
    }
  }
}

TEST(CudaTexts, GradientsOfNormsOfSumsReachWhatWasRead) {
  const TextsHere texts;
  const auto x = torch::randn({5, 7}), y = torch::randn({5, 7}), gain = torch::randn({7}),
             slopes = torch::randn({5, 7});
  const auto gradients_of = [&](const auto& output) {
    const std::vector<torch::Tensor> leaves = {x.detach().requires_grad_(), y.detach().requires_grad_()};
    return torch::autograd::grad({output(leaves[0], leaves[1])}, leaves, {slopes});
  };
  const auto both = [&](const auto& a, const auto& b) {
    return normed_sum_by({&texts, NormCentre::zero, torch::kFloat, 1e-5}, {.x = a, .y = b}, gain, {});
  };
  const auto of_norm = gradients_of([&](const auto& a, const auto& b) { return both(a, b).normed; });
  const auto of_sum = gradients_of([&](const auto& a, const auto& b) { return both(a, b).sum; });
  const auto wanted =
      gradients_of([&](const auto& a, const auto& b) { return torch::rms_norm(a + b, {7}, gain, 1e-5); });
  for (size_t i = 0; i < 2; ++i) {
    expect_near(of_norm[i], wanted[i], 1e-5);
    EXPECT_TRUE(torch::equal(of_sum[i], slopes)) << i;
  }
}

// Both outputs and the gradients that reach them. The slopes are numbers of every type.
TEST(CudaTexts, NormsOfSumsAreThoseOfTorch) {
  const TextsHere texts;
  for (const auto rounded : {torch::kBFloat16, torch::kHalf}) {
    for (const auto& [in, added, out] : {std::tuple(torch::kFloat, rounded, rounded),
                                         {torch::kFloat, torch::kFloat, rounded},
                                         {torch::kFloat, rounded, torch::kFloat},
                                         {torch::kFloat, torch::kFloat, torch::kFloat},
                                         {rounded, rounded, rounded}}) {
      for (const int64_t width : {4, 7, 256, 770}) {
        for (const auto centre : {NormCentre::mean, NormCentre::zero}) {
          SCOPED_TRACE(fmt::format("{} + {}, {}, {}, centred {}", torch::toString(in), torch::toString(added),
                                   torch::toString(out), width, centre == NormCentre::mean));
          torch::manual_seed(5);
          std::vector<torch::Tensor> inputs = {(torch::randn({5, width}) + 2).to(in),
                                               torch::randn({5, width}).to(added), torch::randn({width})};
          if (centre == NormCentre::mean) inputs.push_back(torch::randn({width}));
          const auto slopes = torch::randn({5, 2 * width}).to(torch::kBFloat16).to(torch::kFloat);
          const auto bias_of = [&](const auto& leaves) {
            return centre == NormCentre::mean ? leaves[3] : torch::Tensor();
          };
          const auto side_by_side = [](const torch::Tensor& a, const torch::Tensor& b) {
            return torch::cat({a.to(torch::kFloat), b.to(torch::kFloat)}, 1);
          };
          expect_same(
              inputs, slopes,
              [&](const auto& leaves) {
                const auto [sum, normed] =
                    normed_sum_by({&texts, centre, out, 1e-5}, {.x = leaves[0], .y = leaves[1]}, leaves[2],
                                  bias_of(leaves));
                EXPECT_EQ(normed.scalar_type(), out);
                EXPECT_TRUE(torch::equal(sum, leaves[0] + leaves[1])) << "to the bit";
                return side_by_side(normed, sum);
              },
              [&](const auto& leaves) {
                const auto sum = leaves[0] + leaves[1];
                const auto x = sum.to(torch::kFloat);
                return side_by_side(centre == NormCentre::mean
                                        ? torch::layer_norm(x, {width}, leaves[2], bias_of(leaves), 1e-5)
                                        : torch::rms_norm(x, {width}, leaves[2], 1e-5),
                                    sum);
              },
              {4e-3, rounding_of(in), rounding_of(added), 1e-5, 1e-5});
        }
      }
    }
  }
}

// The second tensor of the sum loses the elements that the processor would drop, forward and backward.
TEST(CudaTexts, NormsOfSumsWithDropoutDropWhatTheProcessorDrops) {
  const TextsHere texts;
  constexpr int64_t number = -0x123456789ABCDEF, rows = 5;
  const auto seed = torch::tensor({number}, torch::kLong);
  for (const auto& [in, added, out] : {std::tuple(torch::kFloat, torch::kBFloat16, torch::kBFloat16),
                                       {torch::kFloat, torch::kFloat, torch::kHalf},
                                       {torch::kFloat, torch::kHalf, torch::kFloat},
                                       {torch::kBFloat16, torch::kBFloat16, torch::kBFloat16}}) {
    for (const int64_t width : {8, 40, 776}) {
      for (const double p : {0.1, 0.5, 1.0}) {
        SCOPED_TRACE(fmt::format("{} + {}, {}, {}, {}", torch::toString(in), torch::toString(added),
                                 torch::toString(out), width, p));
        torch::manual_seed(5);
        const auto factors =
            dropout_factors(rows * width, p, static_cast<uint64_t>(number)).view({rows, width});
        const auto slopes = torch::randn({rows, 2 * width}).to(torch::kBFloat16).to(torch::kFloat);
        const auto side_by_side = [](const torch::Tensor& a, const torch::Tensor& b) {
          return torch::cat({a.to(torch::kFloat), b.to(torch::kFloat)}, 1);
        };
        expect_same(
            {(torch::randn({rows, width}) + 2).to(in), torch::randn({rows, width}).to(added),
             torch::randn({width})},
            slopes,
            [&](const auto& leaves) {
              const auto [sum, normed] =
                  normed_sum_by({&texts, NormCentre::zero, out, 1e-5},
                                {.x = leaves[0], .y = leaves[1], .p = p}, leaves[2], {}, seed);
              const auto exact = leaves[0].to(torch::kFloat) + leaves[1].to(torch::kFloat) * factors;
              EXPECT_TRUE(torch::allclose(sum.to(torch::kFloat), exact, rounding_of(in), 1e-6));
              return side_by_side(normed, sum);
            },
            [&](const auto& leaves) {
              const auto sum = leaves[0].to(torch::kFloat) + leaves[1].to(torch::kFloat) * factors;
              return side_by_side(torch::rms_norm(sum, {width}, leaves[2], 1e-5), sum);
            },
            {5e-3, rounding_of(in), rounding_of(added), rounding_of(in)});
      }
    }
  }
}

TEST(CudaTexts, GatedActivationsAreThoseOfTorch) {
  const TextsHere texts;
  constexpr int64_t f = 40;
  for (const auto function :
       {GateFunction::silu, GateFunction::gelu_exact, GateFunction::gelu_by_tanh, GateFunction::relu}) {
    for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
      SCOPED_TRACE(fmt::format("function {}, {}", static_cast<int>(function), torch::toString(type)));
      torch::manual_seed(3);
      const auto both = (torch::randn({2, 3, 2 * f}) * 3).to(type),
                 gradient = torch::randn({2, 3, f}).to(type);
      const auto of_torch = [&](const torch::Tensor& gate, const torch::Tensor& up) {
        const auto g = gate.to(torch::kFloat);
        const auto act = function == GateFunction::silu ? torch::silu(g)
                         : function == GateFunction::relu
                             ? torch::relu(g)
                             : torch::gelu(g, function == GateFunction::gelu_exact ? "none" : "tanh");
        return act * up.to(torch::kFloat);
      };
      const double rounding = rounding_of(type);
      expect_same(
          {both}, gradient, [&](const auto& leaves) { return gated_by(texts, function, leaves[0], {}); },
          [&](const auto& leaves) {
            return of_torch(leaves[0].narrow(-1, 0, f), leaves[0].narrow(-1, f, f));
          },
          {rounding, rounding});
      expect_same(
          {both.narrow(-1, 0, f), both.narrow(-1, f, f)}, gradient,
          [&](const auto& leaves) { return gated_by(texts, function, leaves[0], leaves[1]); },
          [&](const auto& leaves) { return of_torch(leaves[0], leaves[1]); }, {rounding, rounding, rounding});
    }
  }
}

TEST(CudaTexts, QuickGeluIsThatOfItsFormula) {
  const TextsHere texts;
  for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    SCOPED_TRACE(torch::toString(type));
    torch::manual_seed(7);
    expect_same(
        {(torch::randn({2, 3, 40}) * 4).to(type)}, torch::randn({2, 3, 40}).to(type),
        [&](const auto& leaves) { return quick_gelu_by(texts, leaves[0]); },
        [&](const auto& leaves) {
          const auto x = leaves[0].to(torch::kFloat);
          return x * torch::sigmoid(1.702 * x);
        },
        {rounding_of(type), rounding_of(type)});
  }
}

// The same elements are dropped forward and backward, whatever the types are.
TEST(CudaTexts, DropoutIsThatOfTheProcessor) {
  const TextsHere texts;
  constexpr int64_t number = -0x123456789ABCDEF;
  for (const auto& [x_type, y_type] : {std::pair(torch::kFloat, torch::kFloat),
                                       {torch::kFloat, torch::kBFloat16},
                                       {torch::kFloat, torch::kHalf},
                                       {torch::kBFloat16, torch::kBFloat16},
                                       {torch::kHalf, torch::kHalf}}) {
    for (const auto& [rows, width] : {std::pair(1, 8), {3, 40}, {7, 776}}) {
      for (const double p : {0.1, 0.5, 1.0}) {
        SCOPED_TRACE(fmt::format("{} + {}, {} rows of {}, {}", torch::toString(x_type),
                                 torch::toString(y_type), rows, width, p));
        torch::manual_seed(6);
        const auto factors =
            dropout_factors(rows * width, p, static_cast<uint64_t>(number)).view({rows, width});
        expect_same(
            {torch::randn({rows, width}).to(x_type), torch::randn({rows, width}).to(y_type)},
            torch::randn({rows, width}).to(x_type),
            [&](const auto& leaves) {
              return add_dropout_by(texts, leaves[0], leaves[1], p, torch::tensor({number}, torch::kLong));
            },
            [&](const auto& leaves) {
              return leaves[0].to(torch::kFloat) + leaves[1].to(torch::kFloat) * factors;
            },
            {rounding_of(x_type), rounding_of(x_type), rounding_of(y_type)});
      }
    }
  }
}

// The processor's own kernel has turned pairs as transformers does.
TEST(CudaTexts, RotaryPositionsAreThoseOfTheProcessor) {
  const TextsHere texts;
  for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kHalf}) {
    for (const auto layout : {RotaryLayout::half, RotaryLayout::interleaved}) {
      for (const int64_t pairs : {4, 3}) {
        for (const bool by_row : {false, true}) {
          for (const bool in_one :
               {false, true}) {  // queries beside keys and values, as a fused layer has them
            SCOPED_TRACE(fmt::format("{}, interleaved {}, {} pairs, by row {}, in one {}",
                                     torch::toString(type), layout == RotaryLayout::interleaved, pairs,
                                     by_row, in_one));
            torch::manual_seed(4);
            const auto angle = by_row ? torch::randn({2, 1, 5, pairs}) : torch::randn({5, pairs});
            const RotaryAngles angles = {angle.cos(), angle.sin(), layout};
            const auto memory = torch::randn({2, 5, in_one ? 9 : 3, 8}).to(type);
            const auto x = memory.narrow(2, in_one ? 3 : 0, 3).transpose(1, 2);
            expect_same(
                {x}, torch::randn({2, 3, 5, 8}).to(type),
                [&](const auto& leaves) { return rotary_by(texts, leaves[0], angles); },
                [&](const auto& leaves) { return cpu_rotary(leaves[0].to(torch::kFloat), angles); },
                {rounding_of(type), rounding_of(type)});
            EXPECT_EQ(rotary_by(texts, x, angles).stride(2), 24)
                << "the layout in memory is that of the input";
          }
        }
      }
    }
  }
}

/// Tensors of a few sizes, some with a copy in 16 bits, after some steps of an optimiser.
struct Stepped {
  std::vector<torch::Tensor> parameters, first, second, n_steps, rounded;

  template <class Step>
  Stepped(torch::ScalarType type, bool has_state, const Step& step) {
    torch::manual_seed(8);
    const auto n = static_cast<int64_t>(kOptimizerTensors) + 5;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t size = i == 3   ? 3 * kOptimizerNumbers
                           : i == 7 ? kOptimizerNumbers + 1
                           : i == 9 ? 0
                                    : 1 + i;
      parameters.push_back(torch::randn({size}));
      if (has_state) first.push_back(torch::zeros({size}));
      second.push_back(torch::zeros({size}));
      n_steps.push_back(torch::zeros({}));
      rounded.push_back(i % 3 == 0 ? torch::Tensor() : torch::zeros({size}, type));
    }
    for (int i = 0; i < 3; ++i) {
      std::vector<torch::Tensor> gradients;
      for (const auto& parameter : parameters) gradients.push_back(torch::randn_like(parameter));
      step(*this, gradients);
    }
  }
};

TEST(CudaTexts, StepsOfOptimizersAreThoseOfTorch) {
  const TextsHere texts;
  constexpr double lr = 0.02, decay = 0.3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  const auto by_torch = [&](StepRule rule, Stepped& of, const std::vector<torch::Tensor>& gradients) {
    const auto adam = [&](auto kernel) {
      at::_foreach_add_(of.n_steps, 1);
      kernel(of.parameters, gradients, of.first, of.second, at::TensorList{}, of.n_steps, lr, beta1, beta2,
             decay, eps, false, false);
    };
    if (rule == StepRule::adamw) adam([](auto&&... arguments) { at::_fused_adamw_(arguments...); });
    if (rule == StepRule::adam) adam([](auto&&... arguments) { at::_fused_adam_(arguments...); });
    if (rule == StepRule::sgd)
      at::_fused_sgd_(of.parameters, gradients, of.first, decay, of.first.empty() ? 0 : beta1, lr, 0, false,
                      false, false);
    for (size_t i = 0; rule == StepRule::lion && i < of.parameters.size(); ++i) {
      const auto sign = (beta1 * of.first[i] + (1 - beta1) * gradients[i]).sign();
      of.parameters[i].sub_(lr * (sign + decay * of.parameters[i]));
      of.first[i].mul_(beta2).add_(gradients[i], 1 - beta2);
    }
  };
  const auto ours = [&](StepRule rule, Stepped& of, const std::vector<torch::Tensor>& gradients) {
    const bool is_adam = rule == StepRule::adamw || rule == StepRule::adam;
    const std::vector<torch::Tensor> none;
    step_by(texts,
            {.rule = rule,
             .lr = lr,
             .weight_decay = decay,
             .beta1 = of.first.empty() ? 0 : beta1,
             .beta2 = beta2,
             .eps = eps},
            {.parameters = of.parameters,
             .gradients = gradients,
             .first = of.first,
             .second = is_adam ? of.second : none,
             .n_steps = is_adam ? of.n_steps : none,
             .rounded = of.rounded});
    at::_foreach_add_(of.n_steps, 1);
  };
  for (const auto type : {torch::kBFloat16, torch::kHalf}) {
    for (const auto& [rule, has_state] : {std::pair(StepRule::adamw, true),
                                          {StepRule::adam, true},
                                          {StepRule::lion, true},
                                          {StepRule::sgd, true},
                                          {StepRule::sgd, false}}) {
      SCOPED_TRACE(
          fmt::format("{}, rule {}, state {}", torch::toString(type), static_cast<int>(rule), has_state));
      const Stepped wanted(type, has_state,
                           [&, rule = rule](auto& of, const auto& g) { by_torch(rule, of, g); }),
          found(type, has_state, [&, rule = rule](auto& of, const auto& g) { ours(rule, of, g); });
      for (size_t i = 0; i < wanted.parameters.size(); ++i) {
        SCOPED_TRACE(i);
        EXPECT_TRUE(torch::allclose(found.parameters[i], wanted.parameters[i], 1e-5, 1e-6));
        if (has_state) {
          EXPECT_TRUE(torch::allclose(found.first[i], wanted.first[i], 1e-5, 1e-6));
        }
        if (found.rounded[i].defined()) {
          EXPECT_TRUE(torch::equal(found.rounded[i], found.parameters[i].to(type)));
        }
      }
    }
  }
}

TEST(RunTimeCompiler, IsMissingWithoutALibrary) {
  EXPECT_FALSE(RunTimeCompiler::load({"libno-such-compiler.so.1"}));
  EXPECT_FALSE(RunTimeCompiler::load({"libm.so.6"})) << "another library";
}

TEST(RunTimeCompiler, TheCacheTellsTextsCardsAndCompilersApart) {
  const auto name = cached_code_name("norm", "a", "sm_90", "13.0");
  EXPECT_THAT(name, ::testing::StartsWith("norm-sm_90-13.0-"));
  EXPECT_NE(name, cached_code_name("norm", "b", "sm_90", "13.0"));
  EXPECT_NE(name, cached_code_name("norm", "a", "sm_80", "13.0"));
  EXPECT_NE(name, cached_code_name("norm", "a", "sm_90", "12.8"));
}

// scripts/check_gpu_texts.sh sets $ZOO_NVRTC to the compiler of PyPI's package.
TEST(RunTimeCompiler, CompilesEveryTextForEveryCard) {
  const char* const library = std::getenv("ZOO_NVRTC");
  if (library == nullptr) GTEST_SKIP() << "$ZOO_NVRTC names no compiler";
  const auto compiler = RunTimeCompiler::load({library});
  ASSERT_TRUE(compiler) << library;
  const std::vector<std::pair<std::string, std::string>> texts = {
      {embedded::cross_entropy_cuda, "cross_entropy_bf16"},
      {std::string(embedded::decoding_attention_call_cuda) + embedded::decoding_attention_cuda,
       "decoding_attention_bf16_8"},
      {std::string(embedded::product_call_cuda) + embedded::product_cuda, "product_bf16_whole_8"},
      {embedded::dropout_cuda, "add_dropout_float_bf16_backward"},
      {embedded::gate_cuda, "gelu_by_tanh_bf16_backward"},
      {embedded::norm_cuda, "layer_norm_float_bf16_bf16_backward"},
      {std::string(embedded::optimizer_call_cuda) + embedded::optimizer_cuda, "optimizer_adamw"},
      {embedded::rotary_cuda, "rotary_interleaved_half"}};
  for (const GpuArchitecture& card : {GpuArchitecture{7, 5}, GpuArchitecture{8, 0}, GpuArchitecture{9, 0}}) {
    for (const auto& [text, function] : texts) {
      const auto code = compiler->compile(function, whole_text(text), card);
      EXPECT_THAT(code, ::testing::StartsWith("\x7f"
                                              "ELF"));
      EXPECT_THAT(code, HasSubstr(function));
    }
  }
  EXPECT_THAT(message_of<SystemError>([&] { compiler->compile("broken", "int x = y;", {8, 0}); }),
              HasSubstr("NVIDIA's compiler refuses broken for sm_80: "));
}

}  // namespace
}  // namespace zoo::testing

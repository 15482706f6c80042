// The texts of kernels for GPUs, compiled for the processor, and by NVIDIA's compiler where there is one.

#include <cstdlib>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "layers/kernels/gpu/gpu_program.h"
#include "layers/kernels/gpu/run_time_compiler.h"
#include "tests/support/cuda_shim.h"
#include "tests/support/errors.h"

namespace zoo::embedded {
extern const char cross_entropy_cuda[];
extern const char norm_cuda[];
}  // namespace zoo::embedded

namespace zoo::testing {
namespace text {
#include "layers/kernels/gpu/numbers.cu"
// Behind the numbers that all texts share.
#include "layers/kernels/gpu/cross_entropy.cu"
#include "layers/kernels/gpu/norm.cu"
}  // namespace text
namespace {

using ::testing::HasSubstr;

/// The losses of the rows; the gradient takes the place of the logits.
torch::Tensor run_cross_entropy(const torch::Tensor& logits, const torch::Tensor& targets, double smoothing,
                                double weight) {
  auto losses = torch::full({logits.size(0)}, std::numeric_limits<double>::quiet_NaN(), torch::kFloat);
  const auto* const classes = reinterpret_cast<const long long*>(targets.const_data_ptr<int64_t>());
  const auto run = [&](auto kernel, auto* rows) {
    run_blocks(static_cast<unsigned>(logits.size(0)), text::kThreads, [&] {
      kernel(rows, classes, losses.mutable_data_ptr<float>(), static_cast<int>(logits.size(1)),
             static_cast<float>(smoothing), static_cast<float>(weight));
    });
  };
  void* const data = logits.mutable_data_ptr();
  if (logits.scalar_type() == torch::kFloat) {
    run(text::cross_entropy_float, static_cast<float*>(data));
  } else if (logits.scalar_type() == torch::kHalf) {
    run(text::cross_entropy_half, static_cast<text::Half*>(data));
  } else {
    run(text::cross_entropy_bf16, static_cast<text::Bf16*>(data));
  }
  return losses;
}

// Rows that begin at addresses of every kind, fewer classes than threads, and more.
TEST(CudaTexts, CrossEntropyIsThatOfTorch) {
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
        const auto losses = run_cross_entropy(logits, targets, smoothing, 0.25);
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
    return run_cross_entropy(logits, torch::tensor({target}, torch::kLong), 0, 1).item<double>();
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
    text::Bf16 bf16;
    text::set(bf16, x);
    EXPECT_EQ(text::to_float(bf16), static_cast<float>(c10::BFloat16(x))) << x;
    text::Half half;
    text::set(half, x);
    EXPECT_EQ(text::to_float(half), static_cast<float>(c10::Half(x))) << x;
  }
}

/// Output and gradients of a norm: x (N, D).
struct NormResult {
  torch::Tensor y, x_gradient, gain_gradient, bias_gradient;
};

template <class In, class Out, bool kCentred>
NormResult run_norm(const torch::Tensor& x, const torch::Tensor& gain, const torch::Tensor& bias,
                    const torch::Tensor& gradient, double eps) {
  const auto n_rows = static_cast<int>(x.size(0)), width = static_cast<int>(x.size(1));
  constexpr unsigned n_blocks = 2;
  const auto floats = [](const torch::Tensor& t) {
    return t.defined() ? t.mutable_data_ptr<float>() : nullptr;
  };
  const auto means = torch::zeros({n_rows}), scales = torch::zeros({n_rows}),
             gain_sums = torch::zeros({n_blocks, width}),
             bias_sums = bias.defined() ? torch::zeros({n_blocks, width}) : torch::Tensor();
  const auto y = torch::empty_like(gradient), x_gradient = torch::empty_like(x);
  auto* const in = static_cast<In*>(x.mutable_data_ptr());
  run_blocks(static_cast<unsigned>(n_rows), text::kNormThreads, [&] {
    text::norm_forward<In, Out, kCentred>(in, floats(gain), floats(bias),
                                          static_cast<Out*>(y.mutable_data_ptr()), floats(means),
                                          floats(scales), width, static_cast<float>(eps));
  });
  run_blocks(n_blocks, text::kNormThreads, [&] {
    text::norm_backward<In, Out, kCentred>(
        static_cast<Out*>(gradient.mutable_data_ptr()), in, floats(gain), floats(means), floats(scales),
        static_cast<In*>(x_gradient.mutable_data_ptr()), floats(gain_sums), floats(bias_sums), n_rows, width);
  });
  return {y, x_gradient, gain_sums.sum(0), bias.defined() ? bias_sums.sum(0) : torch::Tensor()};
}

template <class In, class Out>
void expect_norms_of_torch(torch::ScalarType in, torch::ScalarType out) {
  for (const int64_t width : {2, 7, 256, 770}) {
    for (const bool centred : {true, false}) {
      for (const bool has_bias : {true, false}) {
        if (has_bias && !centred) continue;
        SCOPED_TRACE(std::string(torch::toString(in)) + ", " + std::to_string(width) +
                     (centred ? ", centred" : ""));
        torch::manual_seed(2);
        const auto x = (torch::randn({3, width}) + 2).to(in), gradient = torch::randn({3, width}).to(out);
        const auto gain = torch::randn({width}), bias = has_bias ? torch::randn({width}) : torch::Tensor();
        const auto found = centred ? run_norm<In, Out, true>(x, gain, bias, gradient, 1e-5)
                                   : run_norm<In, Out, false>(x, gain, bias, gradient, 1e-5);
        std::vector<torch::Tensor> leaves = {x.to(torch::kFloat, false, true).requires_grad_(),
                                             gain.clone().requires_grad_()};
        if (has_bias) leaves.push_back(bias.clone().requires_grad_());
        const auto y =
            centred ? torch::layer_norm(leaves[0], {width}, leaves[1], has_bias ? leaves[2] : bias, 1e-5)
                    : torch::rms_norm(leaves[0], {width}, leaves[1], 1e-5);
        y.backward(gradient.to(torch::kFloat));
        const auto near = [](const torch::Tensor& ours, const torch::Tensor& theirs, double tolerance) {
          const auto numbers = ours.to(torch::kFloat);
          EXPECT_LE((numbers - theirs).norm().item<double>(), tolerance * (theirs.norm().item<double>() + 1));
        };
        const double rounded = 4e-3;
        near(found.y, y.detach(), rounded);
        near(found.x_gradient, leaves[0].grad(), in == torch::kFloat ? 1e-5 : rounded);
        near(found.gain_gradient, leaves[1].grad(), 1e-5);
        if (has_bias) near(found.bias_gradient, leaves[2].grad(), 1e-5);
      }
    }
  }
}

TEST(CudaTexts, NormsAreThoseOfTorch) {
  expect_norms_of_torch<float, text::Bf16>(torch::kFloat, torch::kBFloat16);
  expect_norms_of_torch<float, text::Half>(torch::kFloat, torch::kHalf);
  expect_norms_of_torch<text::Bf16, text::Bf16>(torch::kBFloat16, torch::kBFloat16);
  expect_norms_of_torch<text::Half, text::Half>(torch::kHalf, torch::kHalf);
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
  const std::vector<std::pair<const char*, std::string>> texts = {
      {embedded::cross_entropy_cuda, "cross_entropy_bf16"},
      {embedded::norm_cuda, "layer_norm_float_bf16_backward"}};
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

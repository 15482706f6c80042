// Products with few rows and packed weights, on every path that the processor has, against sums in float64.

#include "kernels/products/products.h"

#include <limits>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "kernels/isa/panels.h"

namespace zoo {
namespace {

constexpr auto kPackedFormats = {PackedFormat::bf16, PackedFormat::fp16, PackedFormat::int8,
                                 PackedFormat::int4};
constexpr float kInfinity = std::numeric_limits<float>::infinity(),
                kNan = std::numeric_limits<float>::quiet_NaN();

bool in_integers(PackedFormat format) { return format == PackedFormat::int8 || format == PackedFormat::int4; }

std::vector<CpuPath> paths() {
  std::vector<CpuPath> result;
  for (const auto path : {CpuPath::portable, CpuPath::avx2, CpuPath::avx512})
    if (has_path(path)) result.push_back(path);
  return result;
}

template <class Use>
void for_each_path_and_format(const Use& use) {
  for (const auto path : paths()) {
    for (const auto format : kPackedFormats) {
      SCOPED_TRACE(::testing::Message()
                   << "path " << static_cast<int>(path) << ", format " << static_cast<int>(format));
      use(path, format);
    }
  }
}

torch::Tensor stored_values(const PackedMatrix& matrix) {
  return matrix.rows(torch::arange(matrix.n_rows()));
}

/// The largest error that a number of x (M, I) may have as a whole number: half a step of its group.
torch::Tensor rounding_of_inputs(const torch::Tensor& x) {
  const int64_t width = groups_of(x.size(1)) * kGroup;
  const auto padded = torch::constant_pad_nd(x.to(torch::kDouble), {0, width - x.size(1)});
  const auto steps = padded.abs().view({x.size(0), width / kGroup, kGroup}).amax(2) / 127;
  return (steps * 0.5001).repeat_interleave(kGroup, 1).narrow(1, 0, x.size(1));
}

/// Compares with the same product of the stored values, in float64.
void expect_product(const torch::Tensor& y, const torch::Tensor& x, const torch::Tensor& values,
                    const torch::Tensor& bias, bool integers) {
  const auto exact_x = x.to(torch::kDouble), w = values.to(torch::kDouble).t();
  auto expected = exact_x.mm(w);
  if (bias.defined()) expected += bias;
  ASSERT_EQ(y.sizes(), expected.sizes());
  auto bound = 2e-6 * exact_x.abs().mm(w.abs()) + 1e-6 * expected.abs() + 1e-30;
  if (integers) bound += rounding_of_inputs(x).mm(w.abs());
  EXPECT_TRUE((y - expected).abs().le(bound).all().item<bool>())
      << x.sizes() << " times " << values.sizes() << ": "
      << ((y - expected).abs() / bound).max().item<double>();
}

class Products : public ::testing::Test {
 protected:
  void SetUp() override { torch::manual_seed(1); }
};

TEST_F(Products, AreThoseOfTheStoredValuesForAnyShape) {
  for_each_path_and_format([](CpuPath path, PackedFormat format) {
    for (const int64_t n_outputs : {1, 33, 70}) {
      for (const int64_t n_inputs : {1, 31, 33, 150}) {
        const PackedMatrix matrix(torch::randn({n_outputs, n_inputs}), format);
        const auto bias = torch::randn({n_outputs}), values = stored_values(matrix);
        for (int64_t m = 0; m <= 17; ++m) {
          const auto x = torch::randn({m, n_inputs}) * torch::randn({m, 1}).exp();
          const auto b = m % 2 == 0 ? bias : torch::Tensor();
          expect_product(packed_product(x, matrix, b, path), x, values, b, in_integers(format));
        }
      }
    }
  });
}

TEST_F(Products, OfManyRowsAndInputsAreThoseOfTheStoredValues) {
  for_each_path_and_format([](CpuPath path, PackedFormat format) {
    const PackedMatrix matrix(torch::randn({45, 700}), format);
    const auto x = torch::randn({211, 700});
    expect_product(packed_product(x, matrix, {}, path), x, stored_values(matrix), {}, in_integers(format));
  });
}

TEST_F(Products, OfAMatrixInFp32AreExact) {
  for (const auto path : paths()) {
    for (const int64_t n_outputs : {1, 4, 7, 66}) {
      for (const int64_t n_inputs : {1, 5, 16, 47, 150}) {
        const auto weight = torch::randn({n_outputs, n_inputs}), bias = torch::randn({n_outputs});
        for (int64_t m = 0; m <= 17; ++m) {
          const auto x = torch::randn({m, n_inputs});
          const auto b = m % 2 == 0 ? bias : torch::Tensor();
          expect_product(rows_product(x, weight, b, path), x, weight, b, /*integers=*/false);
        }
      }
    }
  }
}

TEST_F(Products, WithoutInputsAreTheBias) {
  const auto bias = torch::randn({5}), x = torch::zeros({3, 0});
  for_each_path_and_format([&](CpuPath path, PackedFormat format) {
    const PackedMatrix matrix(torch::zeros({5, 0}), format);
    EXPECT_TRUE(torch::equal(packed_product(x, matrix, bias, path), bias.expand({3, 5})));
  });
  EXPECT_TRUE(torch::equal(rows_product(x, torch::zeros({5, 0}), bias), bias.expand({3, 5})));
}

// What makes a batch equal to its prompts one by one, bit for bit.
TEST_F(Products, OfARowDoNotDependOnOtherRows) {
  const auto x = torch::randn({230, 300}), weight = torch::randn({100, 300}), bias = torch::randn({100});
  const auto expect_independent = [&](const auto& product) {
    const auto whole = product(x);
    for (const int64_t m : {1, 2, 3, 5, 12, 13, 16, 25, 97, 200}) {
      const int64_t first = 230 - m;
      EXPECT_TRUE(torch::equal(product(x.narrow(0, first, m)), whole.narrow(0, first, m))) << m << " rows";
    }
  };
  for_each_path_and_format([&](CpuPath path, PackedFormat format) {
    const PackedMatrix matrix(weight, format);
    expect_independent([&](const torch::Tensor& rows) { return packed_product(rows, matrix, bias, path); });
  });
  for (const auto path : paths())
    expect_independent([&](const torch::Tensor& rows) { return rows_product(rows, weight, bias, path); });
}

TEST_F(Products, AreTheSameWithAnyNumberOfThreads) {
  const int n_threads = at::get_num_threads();
  const auto x = torch::randn({130, 300}), weight = torch::randn({1000, 300});
  for_each_path_and_format([&](CpuPath path, PackedFormat format) {
    const PackedMatrix matrix(weight, format);
    for (const int64_t m : {1, 16, 130}) {
      const auto rows = x.narrow(0, 0, m);
      at::set_num_threads(1);
      const auto packed = packed_product(rows, matrix, {}, path),
                 plain = rows_product(rows, weight, {}, path);
      for (const int threads : {2, 4}) {
        at::set_num_threads(threads);
        EXPECT_TRUE(torch::equal(packed_product(rows, matrix, {}, path), packed)) << threads;
        EXPECT_TRUE(torch::equal(rows_product(rows, weight, {}, path), plain)) << threads;
        EXPECT_TRUE(torch::equal(PackedMatrix(weight, format).memory(), matrix.memory())) << threads;
      }
    }
  });
  at::set_num_threads(n_threads);
}

TEST_F(Products, WithSomeOutputsAreAPartOfTheWhole) {
  const auto x = torch::randn({3, 90}), bias = torch::randn({100});
  for_each_path_and_format([&](CpuPath path, PackedFormat format) {
    const PackedMatrix matrix(torch::randn({100, 90}), format);
    const auto whole = packed_product(x, matrix, bias, path);
    for (const auto& [first, count] :
         std::vector<OutputRange>{{0, 100}, {0, 32}, {31, 2}, {40, 60}, {99, 1}, {50, 0}}) {
      const auto part = packed_product(x, matrix, bias.narrow(0, first, count), {first, count}, path);
      EXPECT_TRUE(torch::equal(part, whole.narrow(1, first, count))) << first << ", " << count;
    }
    EXPECT_THROW(packed_product(x, matrix, {}, {99, 2}, path), c10::Error);
  });
}

TEST_F(Products, TakeInputsOfAnyAlignmentAndShape) {
  for_each_path_and_format([](CpuPath path, PackedFormat format) {
    const PackedMatrix matrix(torch::randn({33, 50}), format);
    const auto x = torch::randn({2, 3, 50});
    const auto expected = packed_product(x.view({6, 50}), matrix, {}, path);
    auto memory = torch::zeros({301});
    const auto shifted = memory.narrow(0, 1, 300).view({6, 50}).copy_(x.view({6, 50}));
    EXPECT_TRUE(torch::equal(packed_product(shifted, matrix, {}, path), expected));
    EXPECT_TRUE(torch::equal(packed_product(x, matrix, {}, path), expected.view({2, 3, 33})));
    const auto strided = x.transpose(0, 2).contiguous().transpose(0, 2);
    EXPECT_TRUE(torch::equal(packed_product(strided, matrix, {}, path), expected.view({2, 3, 33})));
    EXPECT_TRUE(torch::equal(packed_product(x[1][2], matrix, {}, path), expected[5]));
    EXPECT_THROW(packed_product(torch::randn({2, 49}), matrix, {}, path), c10::Error);
    EXPECT_THROW(packed_product(x.to(torch::kDouble), matrix, {}, path), c10::Error);
  });
}

TEST_F(Products, OfNanAndInfinityAreNanAndInfinity) {
  const auto weight = torch::randn({40, 70});
  auto x = torch::randn({5, 70});
  x[1][3] = kNan;
  x[2][69] = kInfinity;
  x[3][40] = -kInfinity;
  const auto same = [](const torch::Tensor& a, const torch::Tensor& b) {
    return torch::equal(a.isnan(), b.isnan()) && torch::equal(a.isposinf(), b.isposinf()) &&
           torch::equal(a.isneginf(), b.isneginf());
  };
  for_each_path_and_format([&](CpuPath path, PackedFormat format) {
    const PackedMatrix matrix(weight, format);
    const auto y = packed_product(x, matrix, {}, path);
    if (in_integers(format)) {
      EXPECT_TRUE(y.narrow(0, 1, 3).isnan().all().item<bool>());
    } else {
      EXPECT_TRUE(same(y, torch::linear(x, stored_values(matrix))));
    }
    for (const int64_t row : {0, 4}) EXPECT_TRUE(y[row].isfinite().all().item<bool>()) << row;
  });
  for (const auto path : paths())
    EXPECT_TRUE(same(rows_product(x, weight, {}, path), torch::linear(x, weight)));
}

TEST_F(Products, OfTinyAndHugeNumbersAreFinite) {
  for_each_path_and_format([](CpuPath path, PackedFormat format) {
    const auto weight = torch::randn({3, 64}) * torch::tensor({1e-38F, 1.0F, 1e4F}).unsqueeze(1);
    const PackedMatrix matrix(weight, format);
    const auto x = torch::ones({3, 64}) * torch::tensor({1e-42F, 0.0F, 1e30F}).unsqueeze(1);
    const auto y = packed_product(x, matrix, {}, path);
    EXPECT_TRUE(y.isfinite().all().item<bool>()) << y;
    EXPECT_TRUE(y[1].eq(0).all().item<bool>());
  });
}

TEST_F(Products, RefusePathsThatTheProcessorLacks) {
  const PackedMatrix matrix(torch::randn({3, 4}), PackedFormat::int8);
  for (const auto path : {CpuPath::portable, CpuPath::avx2, CpuPath::avx512}) {
    if (has_path(path)) continue;
    EXPECT_THROW(packed_product(torch::randn({1, 4}), matrix, {}, path), c10::Error);
  }
  EXPECT_TRUE(has_path(best_path()));
}

TEST_F(Products, OfIntegersAreNearlyTheSameOnAllPaths) {
  const auto x = torch::randn({7, 130});
  for (const auto format : {PackedFormat::int8, PackedFormat::int4}) {
    const PackedMatrix matrix(torch::randn({40, 130}), format);
    const auto expected = packed_product(x, matrix, {}, CpuPath::portable);
    for (const auto path : paths()) {
      const auto error = (packed_product(x, matrix, {}, path) - expected).norm();
      EXPECT_LE(error.item<double>(), 1e-6 * expected.norm().item<double>()) << static_cast<int>(path);
    }
  }
}

TEST(PackedMatrices, RoundToTheNearest) {
  torch::manual_seed(2);
  const auto weight = torch::randn({50, 75});
  EXPECT_TRUE(torch::equal(stored_values({weight, PackedFormat::bf16}),
                           weight.to(torch::kBFloat16).to(torch::kFloat)));
  EXPECT_TRUE(
      torch::equal(stored_values({weight, PackedFormat::fp16}), weight.to(torch::kHalf).to(torch::kFloat)));
  const auto steps = weight.abs().amax(1, /*keepdim=*/true) / 127;
  const auto errors = (stored_values({weight, PackedFormat::int8}) - weight).abs();
  EXPECT_TRUE(errors.le(steps * (0.5 + 1e-4)).all().item<bool>());
}

// The simplest scale, of which the number largest in size becomes -8, is one of those that are tried.
TEST(PackedMatrices, OfInt4AreNearerThanWithTheSimplestScale) {
  torch::manual_seed(3);
  const auto weight = torch::randn({64, 320}), groups = weight.view({64, 10, 32});
  const auto extreme = groups.gather(2, groups.abs().argmax(2, /*keepdim=*/true));
  const auto scale = (extreme / -8).to(torch::kHalf).to(torch::kFloat);
  const auto simple = (groups / scale).round().clamp(-8, 7) * scale;
  const auto squares = [&](const torch::Tensor& values) {
    return (values.view({64, 10, 32}) - groups).square().sum(2);
  };
  const auto ours = squares(stored_values({weight, PackedFormat::int4}));
  EXPECT_TRUE(ours.le(squares(simple) * 1.001).all().item<bool>());
  EXPECT_LT(ours.sum().item<double>(), 0.9 * squares(simple).sum().item<double>());
}

// Numbers of a file in Q4_0: n · scale with n from -8 to 7, scale a half, and -8 in each group.
TEST(PackedMatrices, OfInt4KeepNumbersThatAreStoredInThisWay) {
  torch::manual_seed(5);
  auto numbers = torch::randint(-8, 8, {40, 3, 32}).to(torch::kFloat);
  numbers.select(2, 7).fill_(-8);
  const auto scales = (torch::randn({40, 3, 1}) * 0.01).to(torch::kHalf).to(torch::kFloat);
  const auto weight = (numbers * scales).view({40, 96});
  EXPECT_TRUE(torch::equal(stored_values({weight, PackedFormat::int4}), weight));
}

TEST(PackedMatrices, GiveTheRowsOfIds) {
  torch::manual_seed(4);
  for (const auto format : kPackedFormats) {
    const PackedMatrix matrix(torch::randn({70, 45}), format);
    const auto ids = torch::randint(70, {3, 5});
    const auto rows = matrix.rows(ids);
    ASSERT_EQ(rows.sizes(), (torch::IntArrayRef{3, 5, 45}));
    EXPECT_TRUE(torch::equal(rows, torch::embedding(stored_values(matrix), ids)));
    EXPECT_EQ(matrix.rows(torch::zeros({0}, torch::kInt64)).sizes(), (torch::IntArrayRef{0, 45}));
    EXPECT_THROW(matrix.rows(torch::tensor({70})), c10::Error);
    EXPECT_THROW(matrix.rows(torch::tensor({-1})), c10::Error);
  }
}

TEST(PackedMatrices, KeepNanInTheRowsThatHaveIt) {
  torch::manual_seed(5);
  auto weight = torch::randn({3, 64});
  weight[1][40] = kNan;
  weight[2][0] = kInfinity;
  for (const auto format : kPackedFormats) {
    const auto values = stored_values({weight, format});
    EXPECT_TRUE(values[0].isfinite().all().item<bool>());
    EXPECT_TRUE(values[1][40].isnan().item<bool>());
    EXPECT_FALSE(values[2][0].isfinite().item<bool>());
    if (format == PackedFormat::int4) {
      EXPECT_TRUE(values[1].narrow(0, 0, 32).isfinite().all().item<bool>());
    }
  }
}

TEST(PackedMatrices, TakeFewBytes) {
  const auto weight = torch::randn({64, 96});
  const auto bytes = [&](PackedFormat format) { return PackedMatrix(weight, format).memory().numel(); };
  EXPECT_EQ(bytes(PackedFormat::bf16), 2 * 64 * 96);
  EXPECT_EQ(bytes(PackedFormat::fp16), 2 * 64 * 96);
  EXPECT_EQ(bytes(PackedFormat::int8), 64 * 96 + 4 * 64);
  EXPECT_EQ(bytes(PackedFormat::int4), 64 * 96 / 2 + 2 * 64 * 3);
}

}  // namespace
}  // namespace zoo

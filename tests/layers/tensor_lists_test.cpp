#include "kernels/tensor_lists.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/utils.h>

namespace zoo {
namespace {

using Tensors = std::vector<torch::Tensor>;

/// Tensors smaller than, equal to and larger than the grain size; one is empty.
Tensors some_tensors(uint64_t seed) {
  torch::manual_seed(seed);
  Tensors tensors;
  for (const int64_t n : {3, 16384, 0, 70001, 1}) tensors.push_back(torch::randn({n}));
  tensors.push_back(torch::randn({300, 128}));
  tensors.push_back(torch::randn({}));
  return tensors;
}

Tensors copies(const Tensors& tensors) {
  Tensors result;
  for (const auto& tensor : tensors) result.push_back(tensor.clone());
  return result;
}

/// Runs the check on one thread and on three.
template <class Check>
void with_threads(const Check& check) {
  const int before = at::get_num_threads();
  for (const int n : {1, 3}) {
    SCOPED_TRACE(n);
    at::set_num_threads(n);
    check();
  }
  at::set_num_threads(before);
}

TEST(TensorLists, AreAddedNumberByNumber) {
  with_threads([] {
    const auto sums = some_tensors(1), terms = some_tensors(2), before = copies(sums);
    foreach_add_(sums, terms);
    for (size_t i = 0; i < sums.size(); ++i) EXPECT_TRUE(torch::equal(sums[i], before[i] + terms[i])) << i;
  });
}

TEST(TensorLists, AreAddedWhateverTheirOrderInMemoryIs) {
  const auto sum = torch::randn({64, 300}).t(), sliced = torch::randn({300, 100}).narrow(1, 3, 64),
             before = sum.clone();
  for (const auto& term :
       {torch::randn({300, 64}), torch::randn({64, 300}).t(), torch::randn({300, 1}).expand({300, 64})}) {
    sum.copy_(before);
    foreach_add_({sum}, {term});
    EXPECT_TRUE(torch::equal(sum, before + term));
    const auto part = sliced.clone(), all = sliced + term;
    sliced.copy_(part);
    foreach_add_({sliced}, {term});
    EXPECT_TRUE(torch::equal(sliced, all));
  }
}

TEST(TensorLists, HaveTheNormOfOneVector) {
  auto tensors = some_tensors(3);
  tensors.push_back(torch::randn({50, 40}).t());
  Tensors flat;
  for (const auto& tensor : tensors) flat.push_back(tensor.to(torch::kDouble).flatten());
  const double expected = torch::cat(flat).norm().item<double>();
  std::vector<float> norms;
  with_threads([&] { norms.push_back(total_norm(tensors).item<float>()); });
  EXPECT_NEAR(norms[0], expected, 1e-6 * expected);
  EXPECT_EQ(norms[0], norms[1]);
}

TEST(TensorLists, HaveNoNormWhereANumberIsNone) {
  auto tensors = some_tensors(4);
  tensors[3][70000] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(total_norm(tensors).isnan().item<bool>());
  tensors[3][70000] = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(total_norm(tensors).isinf().item<bool>());
}

TEST(TensorLists, AreMultiplied) {
  with_threads([] {
    auto tensors = some_tensors(5);
    tensors.push_back(torch::randn({50, 40}).t());
    const auto before = copies(tensors);
    for (const double factor : {0.37, 1.0}) {
      const auto by = torch::scalar_tensor(factor, torch::kFloat);
      const auto from = copies(tensors);
      foreach_mul_(tensors, by);
      for (size_t i = 0; i < tensors.size(); ++i) EXPECT_TRUE(torch::equal(tensors[i], from[i] * by)) << i;
    }
    EXPECT_FALSE(torch::equal(tensors[0], before[0]));
  });
}

TEST(TensorLists, OfOtherTypesAreLeftToLibTorch) {
  const Tensors sums = {torch::ones({3}, torch::kDouble), torch::ones({2})},
                terms = {torch::ones({3}, torch::kDouble), torch::ones({2})};
  foreach_add_(sums, terms);
  foreach_mul_(sums, torch::scalar_tensor(3.0, torch::kFloat));
  EXPECT_TRUE(torch::equal(sums[0], torch::full({3}, 6.0, torch::kDouble)));
  EXPECT_TRUE(torch::equal(sums[1], torch::full({2}, 6.0F)));
}

TEST(TensorLists, MayBeEmpty) {
  EXPECT_NO_THROW(foreach_add_(Tensors{}, Tensors{}));
  EXPECT_NO_THROW(foreach_mul_(Tensors{}, torch::scalar_tensor(2.0, torch::kFloat)));
}

}  // namespace
}  // namespace zoo

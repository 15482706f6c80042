#include "tasks/matching/retrieval.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>

namespace zoo {
namespace {

constexpr auto kRanks = std::to_array<int64_t>({1, 5});
constexpr int64_t kAtOnce = 256;  // rows of scores

/// Equal numbers for equal texts: (n) int64.
torch::Tensor numbers_of(const std::vector<std::string>& words, int64_t n) {
  std::map<std::string_view, int64_t> numbers;
  auto result = torch::empty({n}, torch::kInt64);
  for (int64_t i = 0; i < n; ++i)
    result[i] = numbers.emplace(words.at(static_cast<size_t>(i)), std::ssize(numbers)).first->second;
  return result;
}

}  // namespace

Metrics retrieval_metrics(ComparingModel& model, const torch::Tensor& images, const torch::Tensor& texts,
                          const std::vector<std::string>& words) {
  const int64_t n = images.size(0);
  const auto numbers = numbers_of(words, n).to(images.device());
  Metrics metrics;
  for (const bool finds_texts : {true, false}) {
    std::array<double, kRanks.size()> found{};
    for (int64_t begin = 0; begin < n; begin += kAtOnce) {
      const int64_t count = std::min(kAtOnce, n - begin);
      const auto part = [&](const torch::Tensor& all) { return all.narrow(0, begin, count); };
      const auto scores =
          finds_texts ? model.scores(part(images), texts) : model.scores(images, part(texts)).t();
      const auto best = std::get<1>(scores.topk(std::min(n, kRanks.back()), 1));  // (count, k)
      const auto is_right = numbers.index({best}) == part(numbers).unsqueeze(1);
      for (size_t i = 0; i < kRanks.size(); ++i)
        found[i] += is_right.narrow(1, 0, std::min(n, kRanks[i])).any(1).sum().item<double>();
    }
    for (size_t i = 0; i < kRanks.size(); ++i)
      metrics[fmt::format("{}_recall_at_{}", finds_texts ? "text" : "image", kRanks[i])] =
          found[i] / static_cast<double>(n);
  }
  return metrics;
}

}  // namespace zoo

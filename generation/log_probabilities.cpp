#include "generation/log_probabilities.h"

#include <algorithm>
#include <cmath>

#include <torch/types.h>

#include "models/model.h"

namespace zoo {

std::vector<double> log_probabilities(const torch::Tensor& logits, const std::vector<int64_t>& tokens) {
  const auto index = torch::tensor(tokens, torch::kInt64).to(logits.device()).unsqueeze(1);
  // LibTorch sums each row of a softmax alone, but not each row of a logsumexp.
  const auto values = logits.to(torch::kFloat64).log_softmax(1).gather(1, index).cpu().contiguous();
  std::vector<double> result(values.const_data_ptr<double>(),
                             values.const_data_ptr<double>() + values.numel());
  if (!std::ranges::all_of(result, [](double value) { return std::isfinite(value); })) fail_not_a_number();
  return result;
}

std::vector<std::vector<TokenLogprob>> likeliest_tokens(const torch::Tensor& logits, int64_t n) {
  const auto most = std::min(n, logits.size(1));
  const auto [values, ids] = logits.to(torch::kFloat64).log_softmax(1).topk(most, 1);
  const auto logprobs = values.cpu().contiguous(), tokens = ids.cpu().contiguous();
  const double* logprob = logprobs.const_data_ptr<double>();
  const int64_t* token = tokens.const_data_ptr<int64_t>();
  std::vector<std::vector<TokenLogprob>> result(static_cast<size_t>(logits.size(0)));
  for (auto& row : result) {
    for (int64_t i = 0; i < most; ++i) {
      if (std::isnan(*logprob)) fail_not_a_number();
      row.push_back({.id = *token++, .logprob = *logprob++});
    }
    std::ranges::sort(row, [](const TokenLogprob& a, const TokenLogprob& b) {
      return a.logprob != b.logprob ? a.logprob > b.logprob : a.id < b.id;
    });
  }
  return result;
}

}  // namespace zoo

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

}  // namespace zoo

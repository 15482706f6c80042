#include "training/tasks/label_likelihood.h"

#include <algorithm>

#include <torch/types.h>

#include "training/evaluation.h"

namespace zoo {

LabelLikelihood::LabelLikelihood(Model& model, const SpecialTokens& special,
                                 const std::vector<TokenIds>& answers, int64_t source_length)
    : model_(model), eos_(special.eos), source_length_(source_length) {
  size_t longest = 0;
  for (const auto& answer : answers) longest = std::max(longest, answer.size() + 1);
  const auto n = static_cast<int64_t>(answers.size()), width = static_cast<int64_t>(longest);
  auto tokens = torch::full({n, width}, special.pad, torch::kLong);
  auto real = torch::zeros({n, width});
  for (int64_t i = 0; i < n; ++i) {
    TokenIds ids = answers[static_cast<size_t>(i)];
    ids.push_back(eos_);
    const auto length = static_cast<int64_t>(ids.size());
    tokens[i].narrow(0, 0, length).copy_(torch::tensor(ids));
    real[i].narrow(0, 0, length).fill_(1);
  }
  tokens_ = tokens.to(model.device());
  real_ = real.to(model.device());
}

torch::Tensor LabelLikelihood::operator()(TokenIds source) const {
  const EvaluationMode mode(model_);
  auto& generative = *model_.generative();
  source.resize(std::min(source.size(), static_cast<size_t>(source_length_ - 1)));
  source.push_back(eos_);

  DecodingState state;
  const TokenBatch prompt{.ids = torch::tensor(source).unsqueeze(0).to(model_.device()), .lengths = {}};
  auto logits = generative.prefill(prompt, state);  // (1, V)
  const int64_t n_answers = tokens_.size(0);
  const auto same_row = torch::zeros({n_answers}, tokens_.options());
  state.reorder(same_row);  // from here on one row an answer
  logits = logits.index_select(0, same_row);

  auto total = torch::zeros({n_answers}, real_.options());
  for (int64_t t = 0; t < tokens_.size(1); ++t) {
    const auto token = tokens_.select(1, t);
    const auto log_probability =
        torch::log_softmax(logits.to(torch::kFloat), -1).gather(1, token.unsqueeze(1));
    total += log_probability.squeeze(1) * real_.select(1, t);
    if (t + 1 < tokens_.size(1)) logits = generative.step(token, state);
  }
  return total.to(torch::kCPU);
}

}  // namespace zoo

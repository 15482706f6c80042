#include "tasks/text/label_likelihood.h"

#include <algorithm>

#include <torch/types.h>

#include "models/inference_scope.h"
#include "tasks/evaluation.h"
#include "text/batches/padded_rows.h"

namespace zoo {

LabelLikelihood::LabelLikelihood(Model& model, const SpecialTokens& special,
                                 const std::vector<TokenIds>& answers, int64_t source_length)
    : model_(model), special_(special), source_length_(source_length) {
  size_t longest = 0;
  for (const auto& answer : answers) longest = std::max(longest, answer.size() + 1);
  const auto n = static_cast<int64_t>(answers.size()), width = static_cast<int64_t>(longest);
  auto tokens = torch::full({n, width}, special.pad, torch::kLong);
  auto real = torch::zeros({n, width});
  for (int64_t i = 0; i < n; ++i) {
    TokenIds ids = answers[static_cast<size_t>(i)];
    ids.push_back(special.eos);
    const auto length = static_cast<int64_t>(ids.size());
    tokens[i].narrow(0, 0, length).copy_(torch::tensor(ids));
    real[i].narrow(0, 0, length).fill_(1);
  }
  tokens_ = tokens.to(model.device());
  real_ = real.to(model.device());
}

torch::Tensor LabelLikelihood::operator()(std::vector<TokenIds> sources) const {
  const InferenceScope scope(model_);
  auto& generative = *model_.generative();
  for (auto& source : sources) {
    source.resize(std::min(source.size(), static_cast<size_t>(source_length_ - 1)));
    source.push_back(special_.eos);
  }
  DecodingState state;
  auto logits =
      generative.prefill({.input = padded(sources, special_.pad).to(model_.device())}, state);  // (B, V)
  const auto n_sources = static_cast<int64_t>(sources.size());
  const int64_t n_answers = tokens_.size(0), width = tokens_.size(1), n_rows = n_sources * n_answers;
  // From here on each row is one answer to one source: (B·C).
  std::vector<int64_t> source_of;
  for (int64_t row = 0; row < n_rows; ++row) source_of.push_back(row / n_answers);
  state.reorder(source_of);
  const auto tokens = tokens_.repeat({n_sources, 1}), real = real_.repeat({n_sources, 1});
  logits = logits.repeat_interleave(n_answers, 0).unsqueeze(1);  // (B·C, 1, V)
  if (width > 1) {
    const auto rest =
        generative.forward({.ids = tokens.narrow(1, 0, width - 1)}, state, LogitsAt::every_token());
    logits = torch::cat({logits, rest.view({n_rows, width - 1, -1})}, 1);
  }
  const auto log_probabilities =
      torch::log_softmax(logits.to(torch::kFloat), -1).gather(2, tokens.unsqueeze(2)).squeeze(2);
  const auto total = (log_probabilities * real).sum(1);
  return total.view({n_sources, n_answers}).to(torch::kCPU);
}

}  // namespace zoo

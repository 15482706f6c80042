#include "training/tasks/label_likelihood.h"

#include <algorithm>

#include <torch/types.h>

#include "data/text/padded_rows.h"
#include "training/tasks/evaluation.h"

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
  const EvaluationMode mode(model_);
  auto& generative = *model_.generative();
  std::vector<int64_t> lengths;
  for (auto& source : sources) {
    source.resize(std::min(source.size(), static_cast<size_t>(source_length_ - 1)));
    source.push_back(special_.eos);
    lengths.push_back(static_cast<int64_t>(source.size()));
  }
  PaddedRows rows(lengths, special_.pad);
  for (size_t b = 0; b < sources.size(); ++b)
    std::ranges::copy(sources[b], rows.row(static_cast<int64_t>(b)));

  DecodingState state;
  auto logits = generative.prefill(rows.batch().to(model_.device()), state);  // (B, V)
  const auto n_sources = static_cast<int64_t>(sources.size());
  const int64_t n_answers = tokens_.size(0);
  // From here on a row is an answer to a source: (B·C).
  const auto source_of = torch::arange(n_sources, tokens_.options()).repeat_interleave(n_answers);
  state.reorder(source_of);
  logits = logits.index_select(0, source_of);
  const auto tokens = tokens_.repeat({n_sources, 1}), real = real_.repeat({n_sources, 1});

  auto total = torch::zeros({n_sources * n_answers}, real.options());
  for (int64_t t = 0; t < tokens.size(1); ++t) {
    const auto token = tokens.select(1, t);
    const auto log_probability =
        torch::log_softmax(logits.to(torch::kFloat), -1).gather(1, token.unsqueeze(1));
    total += log_probability.squeeze(1) * real.select(1, t);
    if (t + 1 < tokens.size(1)) logits = generative.step(token, state);
  }
  return total.view({n_sources, n_answers}).to(torch::kCPU);
}

}  // namespace zoo

#include "generation/search.h"

#include <cmath>

#include <torch/types.h>

namespace zoo {
namespace {

/// log softmax(logits)[tokens]: (B)
std::vector<double> log_probabilities(const torch::Tensor& logits, const std::vector<int64_t>& tokens) {
  const auto index = torch::tensor(tokens, torch::kInt64).to(logits.device()).unsqueeze(1);
  const auto wide = logits.to(torch::kFloat64);
  const auto chosen = (wide.gather(1, index).squeeze(1) - wide.logsumexp(1)).cpu();
  const auto values = chosen.accessor<double, 1>();
  std::vector<double> result;
  for (int64_t i = 0; i < values.size(0); ++i) {
    if (!std::isfinite(values[i])) fail_not_a_number();
    result.push_back(values[i]);
  }
  return result;
}

}  // namespace

void Hypothesis::append(int64_t id, double logprob) {
  ids.push_back(id);
  logprobs.push_back(logprob);
  total += logprob;
}

double length_normalised(const Hypothesis& hypothesis, double penalty) {
  return hypothesis.total / std::pow(static_cast<double>(hypothesis.ids.size()), penalty);
}

SamplingSearch::SamplingSearch(GenerativeModel& model, torch::Device device, std::vector<TokenIds> prompts,
                               std::vector<SampleRow> rows, const LogitsProcessors& processors,
                               const Sampler& sampler, SearchLimits limits)
    : reader_(model, device),
      prompts_(std::move(prompts)),
      rows_(std::move(rows)),
      processors_(processors),
      sampler_(sampler),
      limits_(std::move(limits)),
      outputs_(rows_.size()) {
  if (limits_.max_new_tokens < 1) return;
  for (size_t i = 0; i < rows_.size(); ++i) {
    active_.push_back(i);
    parents_.push_back(static_cast<int64_t>(rows_[i].prompt));
    if (!limits_.decoders.empty()) decoders_.push_back(limits_.decoders[rows_[i].prompt]);
  }
}

torch::Tensor SamplingSearch::next_logits() {
  if (!started_) {
    // A prompt is read once, even if several outputs continue it.
    started_ = true;
    const auto logits = reader_.start(prompts_);
    return logits.index_select(0, torch::tensor(parents_, torch::kInt64).to(logits.device()));
  }
  std::vector<int64_t> tokens;
  for (const size_t row : active_) tokens.push_back(outputs_[row].ids.back());
  const auto logits = reader_.advance(parents_, tokens);
  for (size_t i = 0; i < active_.size(); ++i) parents_[i] = static_cast<int64_t>(i);
  return logits;
}

/// Whether the newest token of a row is its last one.
bool SamplingSearch::has_ended(size_t row) {
  const auto& ids = outputs_[row].ids;
  if (limits_.is_end(ids.back()) || std::ssize(ids) >= limits_.max_new_tokens) return true;
  if (decoders_.empty()) return false;
  decoders_[row].push(ids.back());
  return decoders_[row].stopped();
}

bool SamplingSearch::step() {
  if (active_.empty()) return false;
  const auto logits = next_logits();
  std::vector<SequenceView> views;
  std::vector<Draw> draws;
  for (const size_t row : active_) {
    views.push_back({prompts_[rows_[row].prompt], outputs_[row].ids});
    draws.push_back(rows_[row].draw);
    draws.back().position = outputs_[row].ids.size();
  }
  const auto tokens = sampler_.sample(process(processors_, logits, views), draws);
  const auto logprobs = log_probabilities(logits, tokens);

  size_t left = 0;
  for (size_t i = 0; i < active_.size(); ++i) {
    outputs_[active_[i]].append(tokens[i], logprobs[i]);
    if (has_ended(active_[i])) continue;
    active_[left] = active_[i];
    parents_[left] = parents_[i];
    ++left;
  }
  active_.resize(left);
  parents_.resize(left);
  return true;
}

}  // namespace zoo

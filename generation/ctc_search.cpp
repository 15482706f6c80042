#include "generation/ctc_search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <torch/types.h>

#include "kernels/log_sum.h"
#include "models/model.h"

namespace zoo {
namespace {

/// The classes of a row of scores.
struct Classes {
  int64_t count;
  int64_t blank;
};

CtcHypothesis best_path(const double* log_probs, int64_t n_vectors, const Classes& classes) {
  const auto [n_classes, blank] = classes;
  CtcHypothesis result;
  int64_t last = blank;
  for (int64_t t = 0; t < n_vectors; ++t) {
    const double* const row = log_probs + t * n_classes;
    const int64_t best = std::max_element(row, row + n_classes) - row;
    result.logprob += row[best];
    if (best != blank && best != last) result.ids.push_back(best);
    last = best;
  }
  return result;
}

/// A text without its last token, by its number, and that token.
struct LastStep {
  size_t before = 0;
  int64_t token = -1;  // -1: the empty text
  auto operator<=>(const LastStep&) const = default;
};

/// The texts that a search has kept, as a tree.
class TextTree {
 public:
  static constexpr size_t empty = 0;

  const LastStep& last_step(size_t text) const { return steps_[text]; }
  size_t number_of(const LastStep& step) {
    const auto [place, is_new] = numbers_.try_emplace(step, steps_.size());
    if (is_new) steps_.push_back(step);
    return place->second;
  }
  TokenIds ids(size_t text) const {
    TokenIds ids;
    for (; text != empty; text = steps_[text].before) ids.push_back(steps_[text].token);
    std::ranges::reverse(ids);
    return ids;
  }

 private:
  std::vector<LastStep> steps_ = {LastStep()};
  std::map<LastStep, size_t> numbers_ = {{LastStep(), empty}};
};

/// Log-probability of the paths to a text that end with a blank, and of the others.
struct Paths {
  double with_blank = kLogOfZero, with_token = kLogOfZero;
  double total() const { return log_sum(with_blank, with_token); }
};

struct KeptText {
  size_t number;
  Paths paths;
};

/// The texts that go on from `kept` with one more vector of log-probabilities.
std::map<LastStep, Paths> continued(const std::vector<KeptText>& kept, const TextTree& texts,
                                    const double* row, const Classes& classes) {
  const auto [n_classes, blank] = classes;
  std::map<LastStep, Paths> next;
  for (const auto& [text, paths] : kept) {
    const double total = paths.total();
    const auto step = texts.last_step(text);
    auto& same = next[step];
    same.with_blank = log_sum(same.with_blank, total + row[blank]);
    if (step.token >= 0) same.with_token = log_sum(same.with_token, paths.with_token + row[step.token]);
    for (int64_t token = 0; token < n_classes; ++token) {
      if (token == blank) continue;
      // Without a blank between them, equal neighbours are one token.
      const double before = token == step.token ? paths.with_blank : total;
      if (before == kLogOfZero || row[token] == kLogOfZero) continue;
      auto& longer = next[{.before = text, .token = token}];
      longer.with_token = log_sum(longer.with_token, before + row[token]);
    }
  }
  return next;
}

CtcHypothesis best_text(const double* log_probs, int64_t n_vectors, const Classes& classes, int64_t beam) {
  TextTree texts;
  std::vector<KeptText> kept = {{.number = TextTree::empty, .paths = {.with_blank = 0}}};
  for (int64_t t = 0; t < n_vectors; ++t) {
    const auto next = continued(kept, texts, log_probs + t * classes.count, classes);
    std::vector<std::pair<double, LastStep>> order;
    for (const auto& [step, paths] : next) order.emplace_back(-paths.total(), step);
    const auto n = std::min(order.size(), static_cast<size_t>(beam));
    std::ranges::partial_sort(order, order.begin() + static_cast<ptrdiff_t>(n));
    kept.clear();
    for (size_t i = 0; i < n; ++i) {
      const auto& step = order[i].second;
      kept.push_back({.number = texts.number_of(step), .paths = next.at(step)});
    }
  }
  return {.ids = texts.ids(kept.front().number), .logprob = kept.front().paths.total()};
}

}  // namespace

std::vector<CtcHypothesis> ctc_search(const torch::Tensor& log_probs, const torch::Tensor& lengths,
                                      int64_t beam, std::optional<int64_t> blank) {
  TORCH_CHECK(log_probs.dim() == 3 && beam >= 1, "ctc_search needs log-probabilities (B, T, C), not ",
              log_probs.sizes(), ", and at least one beam");
  const auto values = log_probs.detach().to(torch::kCPU, torch::kFloat64).contiguous();
  if (values.isnan().any().item<bool>()) fail_not_a_number();
  const auto own = lengths.defined() ? lengths.to(torch::kCPU, torch::kInt64).contiguous() : lengths;
  const int64_t B = values.size(0), T = values.size(1), C = values.size(2);
  const Classes classes{.count = C, .blank = blank.value_or(C - 1)};
  std::vector<CtcHypothesis> result;
  for (int64_t b = 0; b < B; ++b) {
    const int64_t n = own.defined() ? own.const_data_ptr<int64_t>()[b] : T;
    const double* const row = values.const_data_ptr<double>() + b * T * C;
    result.push_back(beam == 1 ? best_path(row, n, classes) : best_text(row, n, classes, beam));
  }
  return result;
}

}  // namespace zoo

#include "generation/beam_search.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

#include <torch/types.h>

#include "generation/sequence_reader.h"

namespace zoo {
namespace {

/// A possible next token of one of a prompt's beams.
struct Candidate {
  size_t beam;  // index into the prompt's beams
  int64_t token;
  double logprob;  // by the model
  /// Ranks the candidates: the beam's total plus the processed log-probability of this token.
  double total;
};

size_t beams_of_group(const BeamOptions& options) {
  return static_cast<size_t>(options.beams / options.groups);
}

/// The candidates of a group in one step: enough that all its beams may go on.
size_t n_candidates(const SearchLimits& limits, const BeamOptions& options) {
  return std::max<size_t>(2, 1 + limits.ends.size()) * beams_of_group(options);
}

struct Finished {
  Hypothesis hypothesis;
  double score;
};

/// One group of the beams of a prompt.
class GroupBeams {
 public:
  struct Running {
    Hypothesis hypothesis;
    double total = 0;      // of processed scores; equals hypothesis.total if processors only forbid tokens
    int64_t sequence = 0;  // index of the reader's sequence to which the newest token is appended
    std::optional<ContinuationDecoder> decoder = {};  // if there are stop texts
  };

  /// A group of the prompt number `number`. The arguments must outlive this object.
  GroupBeams(const SearchLimits& limits, const BeamOptions& options, const TokenIds& prompt, size_t number)
      : limits_(&limits), options_(&options), prompt_(&prompt), beams_(beams_of_group(options)) {
    auto& first = running_.emplace_back();
    first.sequence = static_cast<int64_t>(number);
    if (!limits.decoders.empty()) first.decoder.emplace(limits.decoders[number]);
  }

  std::vector<Running>& running() { return running_; }
  const std::vector<Running>& running() const { return running_; }
  const TokenIds& prompt() const { return *prompt_; }
  std::vector<Finished> take_finished() { return std::move(finished_); }

  /// Replaces the beams with their best continuations. Returns the tokens that were chosen.
  std::vector<int64_t> advance(std::vector<Candidate> candidates) {
    std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
      return std::tuple(-a.total, a.beam, a.token) < std::tuple(-b.total, b.beam, b.token);
    });
    candidates.resize(std::min(candidates.size(), n_candidates(*limits_, *options_)));
    std::vector<int64_t> chosen;
    std::vector<Running> next;
    for (size_t rank = 0; rank < candidates.size(); ++rank) {
      const auto& candidate = candidates[rank];
      if (rank >= beams_ && next.size() >= beams_) break;
      Running extended = running_[candidate.beam];
      extended.hypothesis.append(candidate.token, candidate.logprob);
      extended.total = candidate.total;
      auto& hypothesis = extended.hypothesis;
      hypothesis.end =
          limits_->end_of(*prompt_, hypothesis.ids, extended.decoder ? &*extended.decoder : nullptr);
      const bool ends = hypothesis.end.has_value();
      if (ends ? rank >= beams_ : next.size() >= beams_) continue;
      chosen.push_back(candidate.token);
      if (ends) {
        finish(std::move(extended));
      } else {
        next.push_back(std::move(extended));
      }
    }
    running_ = std::move(next);
    if (!running_.empty() && finished_.size() >= n_wanted() && !can_improve()) running_.clear();
    return chosen;
  }

 private:
  double score(double total, size_t length) const {
    return total / std::pow(static_cast<double>(length), options_->length_penalty);
  }

  /// Finished hypotheses after which the group may end.
  size_t n_wanted() const {
    if (options_->early_stopping != EarlyStopping::first_finished) return beams_;
    const double wanted = std::round(options_->patience * static_cast<double>(beams_));
    return std::max<size_t>(1, static_cast<size_t>(wanted));
  }

  void finish(Running beam) {
    const double new_score = score(beam.total, beam.hypothesis.ids.size());
    const auto place = std::ranges::upper_bound(finished_, new_score, std::greater<>(), &Finished::score);
    finished_.insert(place, {.hypothesis = std::move(beam.hypothesis), .score = new_score});
    if (finished_.size() > std::max(beams_, n_wanted())) finished_.pop_back();
  }

  /// Whether a running beam can still replace a finished hypothesis. As many as there are beams are finished.
  bool can_improve() const {
    if (options_->early_stopping == EarlyStopping::first_finished) return false;
    // Totals do not rise, except by a processor that favours tokens. A positive penalty divides by more for
    // longer hypotheses, so the greatest length gives an upper bound.
    const bool wait_for_longest =
        options_->early_stopping == EarlyStopping::never && options_->length_penalty > 0;
    const size_t length = wait_for_longest ? static_cast<size_t>(limits_->max_new_tokens)
                                           : running_.front().hypothesis.ids.size();
    return score(running_.front().total, length) > finished_.back().score;
  }

  const SearchLimits* limits_;
  const BeamOptions* options_;
  const TokenIds* prompt_;
  size_t beams_;                    // of this group
  std::vector<Running> running_;    // best first
  std::vector<Finished> finished_;  // best first
};

/// The likeliest tokens of every sequence, on the CPU.
struct Best {
  torch::Tensor scores;    // (B, k) float64, processed log-probabilities, in descending order
  torch::Tensor tokens;    // (B, k) int64
  torch::Tensor logprobs;  // (B, k) float64, by the model
};

Best best_tokens(const torch::Tensor& logits, const LogitsProcessors& processors,
                 const std::vector<SequenceView>& views, size_t n) {
  const auto k = static_cast<int64_t>(n);
  const auto logprobs = logits.log_softmax(1);
  const auto [scores, tokens] = process(processors, logprobs, views).topk(std::min(k, logits.size(1)), 1);
  // All three are transferred at once. A double holds every id exactly.
  const auto all = torch::stack({scores.to(torch::kFloat64), logprobs.gather(1, tokens).to(torch::kFloat64),
                                 tokens.to(torch::kFloat64)})
                       .cpu();
  if (all[0].isnan().any().item<bool>()) fail_not_a_number();
  return {.scores = all[0], .tokens = all[2].to(torch::kInt64), .logprobs = all[1]};
}

/// The continuations of a group's beams, each token less by `penalty` for each time it is in `chosen`.
std::vector<Candidate> candidates_of(const GroupBeams& group, const Best& best,
                                     const std::vector<int64_t>& chosen, double penalty) {
  const auto scores = best.scores.accessor<double, 2>();
  const auto tokens = best.tokens.accessor<int64_t, 2>();
  const auto logprobs = best.logprobs.accessor<double, 2>();
  std::vector<Candidate> candidates;
  for (size_t beam = 0; beam < group.running().size(); ++beam) {
    const auto& running = group.running()[beam];
    const int64_t sequence = running.sequence;
    for (int64_t i = 0; i < scores.size(1) && std::isfinite(scores[sequence][i]); ++i) {
      const auto times = static_cast<double>(std::ranges::count(chosen, tokens[sequence][i]));
      candidates.push_back({.beam = beam,
                            .token = tokens[sequence][i],
                            .logprob = logprobs[sequence][i],
                            .total = running.total + scores[sequence][i] - penalty * times});
    }
  }
  return candidates;
}

/// The hypotheses of all groups of a prompt, at most `beams`, best first.
std::vector<Hypothesis> best_of(std::span<GroupBeams> groups, size_t beams) {
  std::vector<Finished> all;
  for (auto& group : groups) std::ranges::move(group.take_finished(), std::back_inserter(all));
  std::ranges::stable_sort(all, std::greater<>(), &Finished::score);
  all.resize(std::min(all.size(), beams));
  std::vector<Hypothesis> result;
  for (auto& finished : all) result.push_back(std::move(finished.hypothesis));
  return result;
}

}  // namespace

std::vector<std::vector<Hypothesis>> beam_search(GenerativeModel& model, torch::Device device,
                                                 const std::vector<TokenIds>& prompts,
                                                 const LogitsProcessors& processors,
                                                 const SearchLimits& limits, const BeamOptions& options,
                                                 const BatchFields& fields) {
  const auto n_groups = static_cast<size_t>(options.groups);
  std::vector<GroupBeams> groups;  // those of a prompt stand together
  std::vector<SequenceView> views;
  for (size_t p = 0; p < prompts.size(); ++p) {
    for (size_t g = 0; g < n_groups; ++g) groups.emplace_back(limits, options, prompts[p], p);
    views.push_back({prompts[p], {}});
  }
  // A penalty moves at most as many tokens back as earlier groups can have chosen.
  const size_t n_moved = n_groups > 1 ? static_cast<size_t>(options.beams) : 0;
  SequenceReader reader(model, device);
  auto logits = reader.start(prompts, fields);
  while (true) {
    const auto best = best_tokens(logits, processors, views, n_candidates(limits, options) + n_moved);
    views.clear();
    std::vector<int64_t> parents, newest, chosen;
    for (size_t i = 0; i < groups.size(); ++i) {
      auto& group = groups[i];
      if (i % n_groups == 0) chosen.clear();
      if (group.running().empty()) continue;
      const auto tokens = group.advance(candidates_of(group, best, chosen, options.diversity_penalty));
      chosen.insert(chosen.end(), tokens.begin(), tokens.end());
      for (auto& beam : group.running()) {
        parents.push_back(std::exchange(beam.sequence, std::ssize(newest)));
        newest.push_back(beam.hypothesis.ids.back());
      }
    }
    if (parents.empty()) break;
    for (const auto& group : groups) {
      for (const auto& beam : group.running()) views.push_back({group.prompt(), beam.hypothesis.ids});
    }
    logits = reader.advance(parents, newest);
  }
  std::vector<std::vector<Hypothesis>> result;
  for (size_t p = 0; p < prompts.size(); ++p) {
    result.push_back(
        best_of(std::span(groups).subspan(p * n_groups, n_groups), static_cast<size_t>(options.beams)));
  }
  return result;
}

}  // namespace zoo

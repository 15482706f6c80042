#include "generation/beam_search.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>

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

/// The candidates of a prompt in one step: enough that `beams` of them do not end.
size_t n_candidates(const SearchLimits& limits, const BeamOptions& options) {
  return std::max<size_t>(2, 1 + limits.ends.size()) * static_cast<size_t>(options.beams);
}

/// The beams of one prompt.
class PromptBeams {
 public:
  struct Running {
    Hypothesis hypothesis;
    double total = 0;      // of processed scores; equals hypothesis.total if processors only forbid tokens
    int64_t sequence = 0;  // index of the reader's sequence to which the newest token is appended
    std::optional<ContinuationDecoder> decoder = {};  // if there are stop texts
  };

  /// The beams of the prompt number `number`. The arguments must outlive this object.
  PromptBeams(const SearchLimits& limits, const BeamOptions& options, const TokenIds& prompt, size_t number)
      : limits_(&limits), options_(&options), prompt_(&prompt) {
    auto& first = running_.emplace_back();
    if (!limits.decoders.empty()) first.decoder.emplace(limits.decoders[number]);
  }

  bool done() const { return running_.empty(); }
  std::vector<Running>& running() { return running_; }
  const std::vector<Running>& running() const { return running_; }
  std::vector<Hypothesis> take_finished() { return std::move(finished_); }

  /// Replaces the beams with their best continuations.
  void advance(std::vector<Candidate> candidates) {
    const auto beams = static_cast<size_t>(options_->beams);
    std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
      return std::tuple(-a.total, a.beam, a.token) < std::tuple(-b.total, b.beam, b.token);
    });
    candidates.resize(std::min(candidates.size(), n_candidates(*limits_, *options_)));
    const bool last_step =
        static_cast<int64_t>(running_.front().hypothesis.ids.size()) + 1 >= limits_->max_new_tokens;
    std::vector<Running> next;
    for (size_t rank = 0; rank < candidates.size(); ++rank) {
      const auto& candidate = candidates[rank];
      if (rank >= beams && next.size() >= beams) break;
      Running extended = running_[candidate.beam];
      extended.hypothesis.append(candidate.token, candidate.logprob);
      extended.total = candidate.total;
      const bool ends = last_step || has_ended(extended);
      if (ends ? rank >= beams : next.size() >= beams) continue;
      if (ends) {
        finish(std::move(extended));
      } else {
        next.push_back(std::move(extended));
      }
    }
    running_ = std::move(next);
    if (!running_.empty() && finished_.size() >= beams && !can_improve()) running_.clear();
  }

 private:
  double score(double total, size_t length) const {
    return total / std::pow(static_cast<double>(length), options_->length_penalty);
  }

  /// Whether the newest token ends the beam with eos or a stop text.
  bool has_ended(Running& beam) const {
    const auto& ids = beam.hypothesis.ids;
    if (limits_->ends_with(*prompt_, ids)) return true;
    if (!beam.decoder) return false;
    beam.decoder->push(ids.back());
    return beam.decoder->stopped();
  }

  void finish(Running beam) {
    const double new_score = score(beam.total, beam.hypothesis.ids.size());
    const auto place = std::ranges::upper_bound(scores_, new_score, std::greater<>()) - scores_.begin();
    scores_.insert(scores_.begin() + place, new_score);
    finished_.insert(finished_.begin() + place, std::move(beam.hypothesis));
    const auto kept = std::min(finished_.size(), static_cast<size_t>(options_->beams));
    finished_.resize(kept);
    scores_.resize(kept);
  }

  /// Whether a running beam can still replace a finished hypothesis. `beams` hypotheses are finished.
  bool can_improve() const {
    if (options_->early_stopping == EarlyStopping::first_finished) return false;
    // Totals do not rise, except by a processor that favours tokens. A positive penalty divides by more for
    // longer hypotheses, so the greatest length gives an upper bound.
    const bool wait_for_longest =
        options_->early_stopping == EarlyStopping::never && options_->length_penalty > 0;
    const size_t length = wait_for_longest ? static_cast<size_t>(limits_->max_new_tokens)
                                           : running_.front().hypothesis.ids.size();
    return score(running_.front().total, length) > scores_.back();
  }

  const SearchLimits* limits_;
  const BeamOptions* options_;
  const TokenIds* prompt_;
  std::vector<Running> running_;      // best first
  std::vector<Hypothesis> finished_;  // best first
  std::vector<double> scores_;        // of finished_
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

}  // namespace

std::vector<std::vector<Hypothesis>> beam_search(GenerativeModel& model, torch::Device device,
                                                 const std::vector<TokenIds>& prompts,
                                                 const LogitsProcessors& processors,
                                                 const SearchLimits& limits, const BeamOptions& options) {
  std::vector<PromptBeams> searches;
  for (size_t p = 0; p < prompts.size(); ++p) searches.emplace_back(limits, options, prompts[p], p);
  SequenceReader reader(model, device);
  auto logits = reader.start(prompts);
  while (true) {
    std::vector<SequenceView> views;
    for (size_t p = 0; p < prompts.size(); ++p) {
      for (const auto& beam : searches[p].running()) views.push_back({prompts[p], beam.hypothesis.ids});
    }
    const auto best = best_tokens(logits, processors, views, n_candidates(limits, options));
    const auto scores = best.scores.accessor<double, 2>();
    const auto tokens = best.tokens.accessor<int64_t, 2>();
    const auto logprobs = best.logprobs.accessor<double, 2>();

    std::vector<int64_t> parents, newest;
    int64_t sequence = 0;
    for (auto& search : searches) {
      if (search.done()) continue;
      std::vector<Candidate> candidates;
      for (size_t beam = 0; beam < search.running().size(); ++beam, ++sequence) {
        search.running()[beam].sequence = sequence;
        for (int64_t i = 0; i < scores.size(1) && std::isfinite(scores[sequence][i]); ++i) {
          candidates.push_back({.beam = beam,
                                .token = tokens[sequence][i],
                                .logprob = logprobs[sequence][i],
                                .total = search.running()[beam].total + scores[sequence][i]});
        }
      }
      search.advance(std::move(candidates));
      for (const auto& beam : search.running()) {
        parents.push_back(beam.sequence);
        newest.push_back(beam.hypothesis.ids.back());
      }
    }
    if (parents.empty()) break;
    logits = reader.advance(parents, newest);
  }
  std::vector<std::vector<Hypothesis>> result;
  for (auto& search : searches) result.push_back(search.take_finished());
  return result;
}

}  // namespace zoo

#pragma once
// Requests for a Scheduler, and what they give.

#include <memory>
#include <utility>
#include <vector>

#include "generation/scheduler.h"

namespace zoo::testing {

inline std::shared_ptr<const TokenRules> greedy(LogitsProcessors processors = {}) {
  return std::make_shared<TokenRules>(
      TokenRules{.processors = std::move(processors), .sampler = std::make_unique<GreedySampler>()});
}

inline std::shared_ptr<const TokenRules> sampled(uint64_t seed, LogitsProcessors processors = {}) {
  return std::make_shared<TokenRules>(
      TokenRules{.processors = std::move(processors), .sampler = std::make_unique<RandomSampler>(seed)});
}

/// One request for each prompt, with one output.
inline std::vector<GenerationRequest> requests(const std::vector<TokenIds>& prompts,
                                               const SearchLimits& limits,
                                               const std::shared_ptr<const TokenRules>& rules = greedy()) {
  std::vector<GenerationRequest> result;
  for (size_t i = 0; i < prompts.size(); ++i)
    result.push_back({.prompt = prompts[i], .rules = rules, .limits = limits, .draws = {{.prompt = i}}});
  return result;
}

/// The outputs of requests that are all there at the beginning, in their order.
inline std::vector<Hypothesis> written(GenerativeModel& model, const std::vector<GenerationRequest>& asked,
                                       const SchedulerOptions& options = {}) {
  Scheduler scheduler(model, torch::kCPU, options);
  std::vector<size_t> numbers;
  for (const auto& request : asked) numbers.push_back(scheduler.submit(request));
  while (scheduler.step())
    for (const size_t number : numbers) scheduler.require(number);
  std::vector<Hypothesis> outputs;
  for (const size_t number : numbers)
    for (auto& output : scheduler.take(number)) outputs.push_back(std::move(output));
  return outputs;
}

}  // namespace zoo::testing

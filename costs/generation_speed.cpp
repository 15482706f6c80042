#include "costs/generation_speed.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/stopwatch.h"

namespace zoo {

GenerationSpeed measure_generation(const Generator& generator, std::span<const TokenIds> prompts,
                                   GenerationConfig options, double seconds, const ShouldStop& should_stop) {
  const std::vector<TokenIds> ids(prompts.begin(), prompts.end());
  const auto write = [&](int64_t n_tokens) {
    options.max_new_tokens = options.min_new_tokens = n_tokens;
    // The texts of the outputs are made on the CPU, so no further synchronisation is needed.
    return generator.generate(ids, options);
  };
  const int64_t n_tokens = options.max_new_tokens.value_or(kUsualNewTokens);
  write(std::min<int64_t>(n_tokens, 2));

  GenerationSpeed speed;
  speed.n_prompts = std::ssize(ids);
  std::vector<double> first, all, rest;
  const Stopwatch watch;
  while (all.size() < kFewestRepeats || watch.seconds() < seconds) {
    if (should_stop && should_stop()) throw MeasurementStopped{};  // NOLINT(bugprone-std-exception-baseclass)
    const Stopwatch until_first;
    if (n_tokens > 1) write(1);
    first.push_back(until_first.seconds());
    const Stopwatch until_last;
    auto generations = write(n_tokens);
    all.push_back(until_last.seconds());
    if (n_tokens == 1) first.back() = all.back();
    rest.push_back(all.back() - first.back());
    speed.n_outputs = 0;
    for (const auto& generation : generations) speed.n_outputs += std::ssize(generation.outputs);
    speed.first = std::move(generations.front());
  }
  const double rest_seconds = median(std::move(rest));
  speed.first_token_seconds = median(std::move(first));
  speed.seconds = median(std::move(all));
  if (rest_seconds > 0)
    speed.tokens_per_second = static_cast<double>(speed.n_outputs * (n_tokens - 1)) / rest_seconds;
  return speed;
}

}  // namespace zoo

#pragma once
// How fast answers to given prompts are written, for several numbers of prompts at once.

#include <cstdint>
#include <span>

#include "costs/measure.h"
#include "generation/generator.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

struct GenerationSpeed {
  int64_t n_prompts = 0, n_outputs = 0;
  /// Median seconds in which one token is written for every prompt: mostly the reading of the prompts.
  double first_token_seconds = 0;
  /// Median seconds in which all outputs are written.
  double seconds = 0;
  /// Counts the tokens after the first one of each output; 0 if outputs have one token.
  double tokens_per_second = 0;
  Generation first;  // the outputs for the first prompt
};

/// Generates outputs of exactly options.max_new_tokens tokens for `prompts`, as ids, after a short first run
/// that does not count. Repeats it for `seconds`, at least three times. A rest is what the outputs take more
/// than their first tokens do, within one repeat. Throws the errors of Generator::generate(), and
/// MeasurementStopped.
GenerationSpeed measure_generation(const Generator& generator, std::span<const TokenIds> prompts,
                                   GenerationConfig options, double seconds,
                                   const ShouldStop& should_stop = nullptr);

}  // namespace zoo

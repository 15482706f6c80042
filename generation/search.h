#pragma once
// Greedy search and sampling: one token after another. (Beam search: beam_search.h.)

#include <algorithm>
#include <vector>

#include "generation/continuation_decoder.h"
#include "generation/logits_processors.h"
#include "generation/sampler.h"
#include "generation/sequence_reader.h"

namespace zoo {

/// The conditions that end every search.
struct SearchLimits {
  int64_t max_new_tokens = 200;
  TokenIds ends = {};  // tokens that end an output; empty: there are none
  /// If there are stop texts, one decoder for each prompt: an output ends with the token that completes a
  /// stop text there. Empty: there are none.
  std::vector<ContinuationDecoder> decoders = {};

  bool is_end(int64_t token) const { return std::ranges::find(ends, token) != ends.end(); }
};

/// A continuation, finished or unfinished.
struct Hypothesis {
  TokenIds ids;  // generated tokens; the last one is an end token, or completes a stop text, if the search
                 // came to it
  std::vector<double> logprobs;  // natural logarithm, by the model itself (before any processor)
  double total = 0;              // sum of logprobs

  void append(int64_t id, double logprob);
};

/// total / length^penalty. The length counts all generated tokens, eos included, as in Hugging Face
/// transformers.
double length_normalised(const Hypothesis& hypothesis, double penalty);

/// One output for SamplingSearch to generate.
struct SampleRow {
  size_t prompt = 0;  // index into the search's prompts
  Draw draw = {};     // identifies the output's random numbers; the search sets the position
};

/// Extends rows by one sampled token at a time. A finished row leaves the batch. The references must outlive
/// this object.
class SamplingSearch {
 public:
  SamplingSearch(GenerativeModel& model, torch::Device device, std::vector<TokenIds> prompts,
                 std::vector<SampleRow> rows, const LogitsProcessors& processors, const Sampler& sampler,
                 SearchLimits limits);

  /// Draws the next token of every unfinished row. Returns false if there was no such row.
  bool step();
  /// One output per row, in the order of the rows.
  const std::vector<Hypothesis>& outputs() const { return outputs_; }

 private:
  torch::Tensor next_logits();
  bool has_ended(size_t row);

  SequenceReader reader_;
  std::vector<TokenIds> prompts_;
  std::vector<SampleRow> rows_;
  const LogitsProcessors& processors_;
  const Sampler& sampler_;
  SearchLimits limits_;
  std::vector<Hypothesis> outputs_;
  std::vector<ContinuationDecoder> decoders_;  // of each row, if there are stop texts
  bool started_ = false;
  std::vector<size_t> active_;    // unfinished rows
  std::vector<int64_t> parents_;  // for each active row, the reader's sequence that it extends
};

}  // namespace zoo

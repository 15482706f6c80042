#pragma once
// Greedy search and sampling: the most direct walk through a model's continuations. (Beam search:
// beam_search.h.)

#include <vector>

#include "generation/logits_processors.h"
#include "generation/sampler.h"
#include "generation/sequence_reader.h"

namespace zoo {

/// Where every search stops.
struct SearchLimits {
  int64_t max_new_tokens = 200;
  int64_t eos = -1;  // -1: there is none
};

/// A continuation, finished or on its way.
struct Hypothesis {
  TokenIds ids;                  // generated tokens; the last one is eos if that was reached
  std::vector<double> logprobs;  // of each, by the model itself (before any processor), natural logarithm
  double total = 0;              // their sum

  void append(int64_t id, double logprob);
};

/// total / length^penalty, the generated tokens counted with eos: the convention of Hugging Face
/// transformers.
double length_normalised(const Hypothesis& hypothesis, double penalty);

/// One output that SamplingSearch is to make.
struct SampleRow {
  size_t prompt = 0;  // index into the search's prompts
  Draw draw = {};     // names the output's random numbers; position is counted by the search
};

/// Extends rows by one sampled token at a time. A row that is finished leaves the batch. The references must
/// outlive this object.
class SamplingSearch {
 public:
  SamplingSearch(GenerativeModel& model, torch::Device device, std::vector<TokenIds> prompts,
                 std::vector<SampleRow> rows, const LogitsProcessors& processors, const Sampler& sampler,
                 SearchLimits limits);

  /// Draws the next token of every row that is not finished. Returns whether there was any.
  bool step();
  /// One for each row, in their order.
  const std::vector<Hypothesis>& outputs() const { return outputs_; }

 private:
  torch::Tensor next_logits();

  SequenceReader reader_;
  std::vector<TokenIds> prompts_;
  std::vector<SampleRow> rows_;
  const LogitsProcessors& processors_;
  const Sampler& sampler_;
  SearchLimits limits_;
  std::vector<Hypothesis> outputs_;
  bool started_ = false;
  std::vector<size_t> active_;    // rows that are not finished
  std::vector<int64_t> parents_;  // the reader's sequence that each of them goes on from
};

}  // namespace zoo

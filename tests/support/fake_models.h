#pragma once
// Models whose every logit can be computed by hand.

#include <cstdint>
#include <functional>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "generation/sampler.h"
#include "models/model.h"

namespace zoo::testing {

/// The next token depends on the newest one alone: row i of `table` (V, V) holds the logits after token i.
class BigramModel : public GenerativeModel {
 public:
  explicit BigramModel(torch::Tensor table) : table_(std::move(table)) {}

  torch::Tensor prefill(const TokenBatch& prompts, DecodingState&) override {
    const auto last = prompts.lengths.defined() ? prompts.lengths - 1
                                                : torch::full({prompts.batch_size()}, prompts.length() - 1);
    return table_.index_select(0, prompts.ids.gather(1, last.unsqueeze(1)).squeeze(1));
  }
  torch::Tensor step(const torch::Tensor& tokens, DecodingState&) override {
    return table_.index_select(0, tokens);
  }
  bool continues_prompt() const override { return true; }
  int64_t max_length() const override { return 1 << 20; }

 private:
  torch::Tensor table_;
};

/// The next token depends on everything that was read, in its order: one wrong row of a reordered state, one
/// token too few or too many, and all later logits are others. Logits are pseudo-random numbers in 0 …
/// spread.
class HistoryModel : public GenerativeModel {
 public:
  struct Options {
    int64_t vocab_size = 5;
    double spread = 6;
    int64_t max_length = 1 << 20;
    bool continues_prompt = true;
  };
  explicit HistoryModel(Options options) : options_(options) {}

  static int64_t read(int64_t history, int64_t token) { return (history * 131 + token + 1) % 1'000'000'007; }
  static int64_t read(std::span<const int64_t> tokens) {
    int64_t history = 0;
    for (const int64_t token : tokens) history = read(history, token);
    return history;
  }
  /// (V) after `history`.
  torch::Tensor logits_after(int64_t history) const {
    auto row = torch::empty({options_.vocab_size});
    for (int64_t v = 0; v < options_.vocab_size; ++v) {
      row[v] = options_.spread *
               uniform(7, {.prompt = static_cast<uint64_t>(history), .sample = static_cast<uint64_t>(v)});
    }
    return row;
  }
  /// (V) log-probabilities of what follows `tokens`.
  torch::Tensor logprobs_after(std::span<const int64_t> tokens) const {
    return logits_after(read(tokens)).log_softmax(0);
  }

  torch::Tensor prefill(const TokenBatch& prompts, DecodingState& state) override {
    EXPECT_FALSE(state.memory.defined()) << "the state is not fresh";
    EXPECT_LE(prompts.length(), options_.max_length);
    tokens_read += prompts.ids.numel();
    std::vector<int64_t> histories;
    for (int64_t b = 0; b < prompts.batch_size(); ++b) {
      const auto length = prompts.lengths.defined() ? prompts.lengths[b].item<int64_t>() : prompts.length();
      const auto row = prompts.ids[b].contiguous();
      histories.push_back(read({row.data_ptr<int64_t>(), static_cast<size_t>(length)}));
    }
    // Two columns: the history of each row, and how many columns a cache would have.
    state.memory =
        torch::stack({torch::tensor(histories), torch::full({prompts.batch_size()}, prompts.length())}, 1);
    return logits(state);
  }

  torch::Tensor step(const torch::Tensor& tokens, DecodingState& state) override {
    EXPECT_EQ(tokens.size(0), state.memory.size(0));
    tokens_read += tokens.numel();
    auto memory = state.memory.clone();
    for (int64_t b = 0; b < tokens.size(0); ++b) {
      memory[b][0] = read(memory[b][0].item<int64_t>(), tokens[b].item<int64_t>());
      memory[b][1] += 1;
      if (options_.continues_prompt) {
        EXPECT_LE(memory[b][1].item<int64_t>(), options_.max_length);
      }
    }
    state.memory = memory;
    return logits(state);
  }

  bool continues_prompt() const override { return options_.continues_prompt; }
  int64_t max_length() const override { return options_.max_length; }

  int64_t tokens_read = 0;  // by all prefills and steps so far, padding included

 private:
  torch::Tensor logits(const DecodingState& state) const {
    std::vector<torch::Tensor> rows;
    for (int64_t b = 0; b < state.memory.size(0); ++b)
      rows.push_back(logits_after(state.memory[b][0].item<int64_t>()));
    return torch::stack(rows);
  }

  Options options_;
};

}  // namespace zoo::testing

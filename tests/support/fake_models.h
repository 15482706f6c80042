#pragma once
// Models whose every logit can be computed by hand.

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <torch/types.h>

#include "generation/rules/sampler.h"
#include "models/model.h"

namespace zoo::testing {

/// The next token depends on the newest one alone: row i of `table` (V, V) holds the logits after token i.
class BigramModel : public GenerativeModel {
 public:
  explicit BigramModel(torch::Tensor table) : table_(std::move(table)) {}

  DecodingState begin(const Batch& sources) override {
    return DecodingState(sources.input.batch_size(), torch::kCPU);
  }
  TokenBatch first_tokens(const TokenBatch& prompts) override { return prompts; }
  torch::Tensor forward(const TokenBatch& tokens, DecodingState& state, const LogitsAt& at) override {
    const auto range = state.read(tokens);
    const auto logits = table_.index_select(0, tokens.ids.flatten());
    return at.select(logits.view({tokens.batch_size(), tokens.length(), -1}), range);
  }
  bool continues_prompt() const override { return true; }
  int64_t max_length() const override { return 1 << 20; }

 private:
  torch::Tensor table_;
};

/// All tokens that the rows of a HistoryModel have read.
class HistoryState final : public LayerState {
 public:
  struct Row {
    std::vector<int64_t> source;  // what an encoder has read
    std::vector<int64_t> tokens;
  };

  explicit HistoryState(std::vector<Row> initial) : rows(std::move(initial)) {}

  void reorder(const torch::Tensor& indices) override {
    std::vector<Row> picked;
    for (int64_t i = 0; i < indices.size(0); ++i)
      picked.push_back(rows.at(static_cast<size_t>(indices[i].item<int64_t>())));
    rows = std::move(picked);
  }
  void join(const LayerState& other) override {
    const auto& more = dynamic_cast<const HistoryState&>(other).rows;
    rows.insert(rows.end(), more.begin(), more.end());
  }
  void truncate(std::span<const int64_t> from, std::span<const int64_t> to) override {
    EXPECT_EQ(from.size(), rows.size());
    EXPECT_EQ(to.size(), rows.size());
    for (size_t b = 0; b < rows.size(); ++b) {
      EXPECT_EQ(from[b], std::ssize(rows[b].tokens)) << "row " << b;
      EXPECT_LE(to[b], from[b]) << "row " << b;
      rows[b].tokens.resize(static_cast<size_t>(to[b]));
    }
  }
  bool keeps_every_token() const override { return true; }
  std::unique_ptr<LayerState> copy() const override { return std::make_unique<HistoryState>(*this); }
  int64_t bytes() const override {
    size_t n_tokens = 0;
    for (const auto& row : rows) n_tokens += row.source.size() + row.tokens.size();
    return static_cast<int64_t>(n_tokens * sizeof(int64_t));
  }

  std::vector<Row> rows;
};

/// The next token depends on everything that was read, in its order. One wrong row of a reordered state, or
/// one token too few or too many, changes all later logits. Logits are pseudo-random numbers in 0 … spread,
/// and NaN where padding was read.
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
  static int64_t read(std::span<const int64_t> tokens, int64_t history = 0) {
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
  /// (V) log-probabilities of the token after `tokens`.
  torch::Tensor logprobs_after(std::span<const int64_t> tokens) const {
    return logits_after(read(tokens)).log_softmax(0);
  }

  DecodingState begin(const Batch& sources) override {
    const auto& prompts = sources.input;
    EXPECT_LE(prompts.length(), options_.max_length);
    std::vector<HistoryState::Row> rows(static_cast<size_t>(prompts.batch_size()));
    if (!options_.continues_prompt) {
      for (size_t b = 0; b < rows.size(); ++b) {
        rows[b].source = row_of(prompts, b);
        tokens_read += std::ssize(rows[b].source);
      }
    }
    DecodingState state(prompts.batch_size(), torch::kCPU);
    state.layers().push_back(std::make_unique<HistoryState>(std::move(rows)));
    return state;
  }

  TokenBatch first_tokens(const TokenBatch& prompts) override {
    if (options_.continues_prompt) return prompts;
    return {.ids = torch::zeros({prompts.batch_size(), 1}, torch::kInt64)};
  }

  torch::Tensor forward(const TokenBatch& tokens, DecodingState& state, const LogitsAt& at) override {
    const auto before = state.lengths();
    const auto range = state.read(tokens);
    auto& rows = dynamic_cast<HistoryState&>(*state.layers().at(0)).rows;
    EXPECT_EQ(rows.size(), before.size());
    for (size_t b = 0; b < rows.size(); ++b) {
      EXPECT_EQ(std::ssize(rows[b].tokens), before[b]) << "row " << b;
      const auto added = row_of(tokens, b);
      tokens_read += std::ssize(added);
      rows[b].tokens.insert(rows[b].tokens.end(), added.begin(), added.end());
      EXPECT_EQ(std::ssize(rows[b].tokens), state.lengths()[b]) << "row " << b;
      EXPECT_LE(std::ssize(rows[b].tokens), options_.max_length) << "row " << b;
    }
    // Which columns are wanted; only their logits are made.
    const int64_t n_columns = tokens.length();
    const auto columns = torch::arange(tokens.ids.numel()).view({tokens.batch_size(), n_columns, 1});
    const auto wanted = at.select(columns, range).flatten();
    std::vector<torch::Tensor> logits;
    for (int64_t i = 0; i < wanted.size(0); ++i) {
      const auto column = wanted[i].item<int64_t>();
      const auto b = static_cast<size_t>(column / n_columns);
      logits.push_back(logits_at(rows[b], before[b] + column % n_columns));
    }
    return torch::stack(logits);
  }

  bool continues_prompt() const override { return options_.continues_prompt; }
  int64_t max_length() const override { return options_.max_length; }

  int64_t tokens_read = 0;  // by all calls so far, sources included, padding excluded

 private:
  /// The tokens of row b without padding.
  static std::vector<int64_t> row_of(const TokenBatch& tokens, size_t b) {
    const auto row = tokens.ids[static_cast<int64_t>(b)].contiguous();
    const auto length =
        tokens.lengths.defined() ? tokens.lengths[static_cast<int64_t>(b)].item<int64_t>() : tokens.length();
    EXPECT_LE(length, tokens.length());
    const auto* const first = row.const_data_ptr<int64_t>();
    return {first, first + length};
  }
  /// (V) after the token at `position` of a row; NaN where there is none.
  torch::Tensor logits_at(const HistoryState::Row& row, int64_t position) const {
    if (position >= std::ssize(row.tokens)) {
      return torch::full({options_.vocab_size}, std::numeric_limits<float>::quiet_NaN());
    }
    return logits_after(
        read(std::span(row.tokens).first(static_cast<size_t>(position + 1)), read(row.source)));
  }

  Options options_;
};

}  // namespace zoo::testing

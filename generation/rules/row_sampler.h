#pragma once
// Chooses the next tokens of many rows where their logits are, each by rules of its own.

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include <torch/types.h>

#include "generation/rules/logits_processors.h"
#include "generation/rules/row_rules.h"
#include "generation/rules/sampler.h"

namespace zoo {

/// The smallest power of 2 that is at least n > 0: few different numbers serve all.
inline int64_t power_of_two(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n)));
}

/// The rules of up to `n_rows` rows as numbers on a device. Chooses the tokens that the rules choose by
/// themselves (TokenRules), with the same random numbers. Nothing waits for the device. The tensors that
/// choose() uses stay where they are, so that its work can be recorded once and repeated.
class RowSampler {
 public:
  /// n_outputs: V.
  RowSampler(int64_t n_rows, int64_t n_outputs, torch::Device device);

  /// Gives a row its rules. `text`: its tokens so far. `next`: the draw of its next token.
  void set(int64_t row, const RowRules& rules, const SequenceView& text, const Draw& next);
  /// Takes a row's rules away: its tokens mean nothing.
  void clear(int64_t row);
  /// Row `to` becomes what row `from` was, which is cleared.
  void move(int64_t from, int64_t to);

  /// Sends what has changed to the device. To be called before each choose(), recorded or not.
  void prepare();
  /// What choose() does now: it differs between two numbers.
  int64_t variant() const;
  /// The next tokens (B) int64 of the first B rows; -1 where the logits are not numbers, or leave no token.
  /// logits: (B, V) float.
  torch::Tensor choose(const torch::Tensor& logits);

 private:
  /// Random numbers that are sent at once, for so many tokens of each row.
  static constexpr int64_t kNumbersAtOnce = 32;

  struct Row {
    RowRules rules = {};
    Draw next = {};
    bool is_set = false;
  };
  /// Which rules any row has.
  struct Uses {
    bool repetition = false, occurrence = false, draws = false, top_p = false, min_p = false;
    int64_t most_k = 0;  // a power of 2, at least the largest top_k; 0: there is none
  };
  Uses uses() const;
  void suppress(int64_t row, const RowRules& rules);
  void count(torch::Tensor& table, int64_t row, const TokenIds& ids) const;
  void send_numbers();
  void send_rules();
  torch::Tensor penalised(torch::Tensor scores) const;
  torch::Tensor drawn_from(torch::Tensor scores) const;
  /// Column i of the rules' numbers, for the first n rows: (n, 1).
  torch::Tensor number(int64_t i, int64_t n) const { return numbers_.narrow(0, 0, n).narrow(1, i, 1); }

  torch::Device device_;
  std::vector<Row> rows_;
  std::vector<std::pair<TokenIds, int64_t>> suppressed_;  // of each row: ids, vocab_size
  Uses uses_;
  bool has_changed_ = true;
  int64_t n_used_ = 0;  // of the random numbers on the device

  // With a row for each row.
  torch::Tensor forbidden_;           // (rows, V) bool
  torch::Tensor numbers_;             // (rows, 5) float: see send_rules()
  torch::Tensor masses_;              // (rows, 1) double: top_p, 2 if it is off
  torch::Tensor whole_;               // (rows, 2) int64: top_k, 0 if it is off; 1 if the likeliest is taken
  torch::Tensor said_, occurrences_;  // (rows, V) float: how often; undefined before a rule needs them
  torch::Tensor random_;              // (rows, kNumbersAtOnce) double
  torch::Tensor column_;              // (1) int64: the column of the next random numbers
};

/// The natural log-probabilities (B) float64 of tokens (B) by the logits (B, V), on their device.
torch::Tensor logprobs_of(const torch::Tensor& logits, const torch::Tensor& tokens);

}  // namespace zoo

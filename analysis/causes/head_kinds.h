#pragma once
// Which heads do what induction needs, found on tokens that are drawn at random and then repeated, of which a
// model can know nothing else (Olsson et al. 2022, "In-context Learning and Induction Heads").

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/attention_maps.h"
#include "analysis/causes/ablation.h"
#include "checkpoints/run.h"

namespace zoo {

/// Mean weights of one head, 0 … 1, while it reads L tokens twice.
struct HeadKinds {
  AttentionKind kind;
  int64_t layer, head;  // from 0
  double previous;      // at the token before, of all tokens: a previous-token head
  double duplicate;     // of the second half, at the same token in the first: a duplicate-token head
  double induction;     // of the second half, at what followed that token: an induction head
};

/// The kinds of heads that the weights tell.
enum class HeadRole { previous_token, duplicate_token, induction };
constexpr auto config_names(HeadRole) {
  return std::to_array<std::string_view>({"previous_token", "duplicate_token", "induction"});
}
/// The `most` heads with the largest weights of a role; of equal ones the first.
std::vector<AblatedPart> strongest_heads(std::vector<HeadKinds> heads, HeadRole role, int64_t most);

/// Those of the heads of each layer from maps (B, H, T, T) over rows of `n_before` tokens and twice `length`.
std::vector<HeadKinds> kinds_of_heads(AttentionKind kind, const std::vector<torch::Tensor>& maps,
                                      int64_t n_before, int64_t length);

struct RepeatedTokens {
  int64_t n_rows = 8;
  /// L; default: 32, or less where the model sees less.
  std::optional<int64_t> length = {};
  uint64_t seed = 0;
};

struct HeadKindReport {
  std::string name = {};  // of the run
  int64_t length = 0;     // L
  std::vector<HeadKinds> heads = {};
  /// The share of the second half's tokens, without its first, that a decoder predicts; absent for others.
  std::optional<double> recall = {};
};

/// Rows of L random tokens, twice, behind the token that the vocabulary puts before a text if it has one; of
/// a decoder with the second half, without its first token, as targets. On the CPU. Throws UsageError for a
/// model that reads no tokens, or sees fewer than four.
Batch repeated_tokens(const Run& run, const RepeatedTokens& options = {});

/// The heads of a decoder, or of an encoder. Throws UsageError as repeated_tokens(), and if a layer has no
/// maps (why_no_maps()).
HeadKindReport head_kinds(const Run& run, const RepeatedTokens& options = {});

}  // namespace zoo

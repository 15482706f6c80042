#pragma once
// What each attention head does with a text, in a few numbers.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/attention_maps.h"

namespace zoo {

/// With w[t,s] the weight that row t of T gives to key s of S; every row sums to 1, so each number is a mean
/// over rows of an expectation over keys. Entropy and the shares are those of Clark et al. 2019 ("What Does
/// BERT Look At?", sections 3.1 and 3.3); the distance is that of Vig and Belinkov 2019 ("Analyzing the
/// Structure of Attention in a Transformer Language Model"), without a sign as an encoder looks both ways;
/// heads on the token before and on the token itself were found in translators by Raganato and Tiedemann
/// 2018 ("An Analysis of Encoder Representations in Transformer-Based Machine Translation"). The alignment
/// error takes the diagonal for the alignment, as the guided attention of Tachibana et al. 2018: it tells
/// something between languages of similar word order, and is no alignment error rate, which needs a
/// reference.
struct HeadStatistics {
  AttentionKind kind = AttentionKind::encoder;
  int64_t layer = 0;               // from 0, within its kind
  int64_t head = 0;                // from 0
  double entropy = 0;              // −Σ_s w[t,s] ln w[t,s], in nats: 0 = one key a row, ln S = all keys alike
  std::optional<double> distance;  // Σ_s w[t,s] |t − s|, in tokens; self-attention only
  double first = 0;                // w[t,0], 0 to 1
  std::optional<double> previous;  // w[t,t−1] over the rows t ≥ 1, 0 to 1; self-attention of ≥ 2 tokens only
  std::optional<double> itself;    // w[t,t], 0 to 1; self-attention only
  /// Σ_s w[t,s] |(s+½)/S − (t+½)/T|, 0 to 1: the distance from the diagonal between the corners of the map,
  /// as a part of the source's length; cross-attention only.
  std::optional<double> alignment_error;
};

/// One entry a head, in the order of the report's layers.
std::vector<HeadStatistics> head_statistics(const AttentionReport& report);

/// A JSON list of objects with the names above, kind as "encoder", "decoder" or "cross", numbers rounded to
/// six digits after the point, null for what there is not.
std::string to_json(const std::vector<HeadStatistics>& heads);

}  // namespace zoo

#pragma once
// A few numbers that describe what each attention head does with a text.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/attention_maps.h"

namespace zoo {

/// w[t,s] is the weight that row t of T gives to key s of S. Every row sums to 1, so each number is a mean
/// over rows of an expectation over keys. Entropy and shares follow Clark et al. 2019 ("What Does BERT Look
/// At?", sections 3.1 and 3.3). The distance follows Vig and Belinkov 2019 ("Analyzing the Structure of
/// Attention in a Transformer Language Model"), but has no sign, as an encoder looks both ways. Raganato and
/// Tiedemann 2018 ("An Analysis of Encoder Representations in Transformer-Based Machine Translation") found
/// heads on the previous token and on the token itself in translation models. The alignment error takes the
/// diagonal as the alignment, like the guided attention of Tachibana et al. 2018. It is meaningful between
/// languages of similar word order. It is not the alignment error rate, which needs a reference.
///
/// Maps of a picture have three of these numbers. The entropy is the same. Self-attention also has the weight
/// on the place, or the query, itself. The encoder has the distance on the grid of places, ‖p_t − p_s‖ in
/// places, as in Dosovitskiy et al. 2021 ("An Image is Worth 16x16 Words", section 4.5). The distance is a
/// mean over places and counts only weights on places, because a class token has no place.
struct HeadStatistics {
  AttentionKind kind = AttentionKind::encoder;
  int64_t layer = 0;  // from 0, within its kind
  int64_t head = 0;   // from 0
  /// −Σ_s w[t,s] ln w[t,s], in nats: 0 = one key per row, ln S = all equal. Absent for weights that are no
  /// shares, because some are negative, as those of the mixer `mlp`.
  std::optional<double> entropy;
  std::optional<double> distance;  // Σ_s w[t,s] |t − s|, in tokens; self-attention only
  std::optional<double> first;     // w[t,0], 0 to 1; of texts only
  std::optional<double> previous;  // w[t,t−1] over the rows t ≥ 1, 0 to 1; self-attention of ≥ 2 tokens only
  std::optional<double> itself;    // w[t,t], 0 to 1; self-attention only
  /// Σ_s w[t,s] |(s+½)/S − (t+½)/T|, 0 to 1: the distance from the diagonal between the corners of the map,
  /// as a fraction of the source's length; cross-attention only.
  std::optional<double> alignment_error;
};

/// One entry per head, in the order of the report's layers.
std::vector<HeadStatistics> head_statistics(const AttentionReport& report);

/// How far each cross-attention layer is from the diagonal: the mean of its heads' alignment errors, in the
/// order of the report's layers; empty for a model without cross-attention.
std::vector<double> alignment_errors(const AttentionReport& report);

/// A JSON list of objects with the names above: kind as "encoder", "decoder" or "cross", numbers rounded to
/// six digits after the point, absent numbers as null.
std::string to_json(const std::vector<HeadStatistics>& heads);

}  // namespace zoo

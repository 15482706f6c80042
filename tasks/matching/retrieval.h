#pragma once
// How often the text of a picture is found among others, and the reverse.

#include <string>
#include <vector>

#include <torch/types.h>

#include "io/metrics_log.h"
#include "models/comparing_model.h"

namespace zoo {

/// Recall at k of N pairs, for k = 1 and 5: "text_recall_at_1", the share of the pictures whose text is one
/// of the k texts with the highest scores, and "image_recall_at_1", the share of the texts whose picture is.
/// Pairs with equal texts are right for each other. images, texts: (N, W); `words`: the texts, of which the
/// first N count.
Metrics retrieval_metrics(ComparingModel& model, const torch::Tensor& images, const torch::Tensor& texts,
                          const std::vector<std::string>& words);

}  // namespace zoo

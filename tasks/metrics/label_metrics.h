#pragma once
// The quality of predictions with several labels each, and of predicted numbers.

#include <torch/types.h>

namespace zoo {

/// Average precision of one label: Σ (R_n - R_(n-1)) · P_n over the different scores from the highest on
/// (scikit-learn's average_precision_score); 0 if no target is 1. `scores`, `targets` (0 or 1): (N) double on
/// the CPU.
double average_precision(const torch::Tensor& scores, const torch::Tensor& targets);

struct LabelMetrics {
  double micro_f1 = 0;  // of all labels of all rows together
  double macro_f1 = 0;  // the mean over the labels; a label that is neither predicted nor right has 0
  double mean_average_precision = 0;  // the mean over the labels
  double exact = 0;                   // the share of the rows whose labels are all right
};
/// `logits`, `targets` (0 or 1): (N, C) double on the CPU. A label is predicted if its logit is above 0.
LabelMetrics label_metrics(const torch::Tensor& logits, const torch::Tensor& targets);

/// Pearson's correlation, and Spearman's: the correlation of the ranks, where equal values share the mean of
/// their ranks. 0 if one of the two has no spread. (N) double on the CPU each.
double pearson_correlation(const torch::Tensor& a, const torch::Tensor& b);
double spearman_correlation(const torch::Tensor& a, const torch::Tensor& b);

}  // namespace zoo

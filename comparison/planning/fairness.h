#pragma once
// Checks whether a comparison is fair, and whether its table needs explanation.

namespace zoo {

struct ComparisonPlan;

/// Finds the keys in which the variants of a plan differ. Adds a notice where data, tokenizer, evaluation,
/// budget or seeds are not the same for all, unless the key is a subject of the comparison, and where a
/// reader should know how the variants are trained. Throws ConfigError for a subject in which no variants
/// differ.
void check_fairness(ComparisonPlan& plan);

}  // namespace zoo

#pragma once
// What makes a comparison unfair, or its table harder to read than it looks.

namespace zoo {

struct ComparisonPlan;

/// Finds the keys in which the variants of a plan differ, and adds a notice for everything that is not the
/// same for all although it should be: data, tokenizer, evaluation, budget, seeds; and for what a reader
/// should know of how they are trained.
void check_fairness(ComparisonPlan& plan);

}  // namespace zoo

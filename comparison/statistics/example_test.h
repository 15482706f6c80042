#pragma once
// A test of whether two models differ on the examples of a data set: losses, or right and wrong answers.

#include <optional>
#include <string>
#include <vector>

#include "comparison/statistics/paired_test.h"

namespace zoo {

/// The values that a model reached, one for each example. A metric is the sum of the values over the sum of
/// the weights: bits over bytes, nats over tokens, right answers over answers.
struct ExampleValues {
  std::vector<double> values, weights;
  std::string inputs;  // a hash of the examples: values of other examples cannot be compared
};

/// The difference of the metrics of two models on the same examples: its interval by a paired bootstrap
/// (Efron & Tibshirani 1993), and p by approximate randomisation, which exchanges the values of single
/// examples at random (Noreen 1989; of right and wrong answers: McNemar's test). Examples count as
/// independent of each other. The same examples give the same result. Nothing for fewer than two examples, or
/// for examples of other inputs or weights.
std::optional<PairedTest> test_on_examples(const ExampleValues& values, const ExampleValues& baseline);

}  // namespace zoo

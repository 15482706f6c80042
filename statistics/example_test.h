#pragma once
// A test of whether two models differ on the examples of a data set: losses, or right and wrong answers.

#include <optional>
#include <string>
#include <vector>

#include "statistics/paired_test.h"

namespace zoo {

/// What people read of an example: beginnings of long texts.
struct ExampleText {
  std::string input;
  std::optional<std::string> target = {}, prediction = {};
};

/// Values and weights of a part of each example.
struct SliceValues {
  std::vector<double> values, weights;

  double weight() const;  // Σ weights
  double mean() const;    // Σ values / Σ weights
};

/// The values that a model reached, one for each example. A metric is the sum of the values over the sum of
/// the weights: bits over bytes, nats over tokens, right answers over answers.
struct ExampleValues {
  std::vector<double> values, weights;
  std::string inputs;                   // a hash of the examples: values of other examples cannot be compared
  std::vector<ExampleText> texts = {};  // one for each example, or none
  std::vector<SliceValues> slices = {};  // of texts: bits and bytes, one for each of kTextSlices
  std::vector<int64_t> documents = {};   // the number of each example's document, from 0; none: see below
  std::string outputs = {};              // a hash of what the model says of the examples; "": unknown
};

/// The sums over the values of each document, which has a number from 0 on. Without documents the values.
std::vector<double> sums_by_document(const std::vector<double>& values,
                                     const std::vector<int64_t>& documents);

/// The difference of the metrics of two models on the same examples: its interval by a paired bootstrap
/// (Efron & Tibshirani 1993), and p by approximate randomisation, which exchanges the values of single
/// examples at random (Noreen 1989; of right and wrong answers: McNemar's test). Examples count as
/// independent of each other. Where they have documents, these do, and are drawn and exchanged whole
/// (PairedTest::n counts them). The same examples give the same result. Nothing for fewer than two examples
/// or documents, or for examples of other inputs, weights or documents.
std::optional<PairedTest> test_on_examples(const ExampleValues& values, const ExampleValues& baseline);

/// equivalence_p() of test_on_examples(). Models that say the same of every example are equivalent. That
/// other models have the same answers right shows little where the examples are few: right and wrong have
/// the score test of paired proportions (Tango 1998), and n examples or documents without any difference have
/// a p of at least (1 - margin)^n.
std::optional<double> equivalence_on_examples(const ExampleValues& values, const ExampleValues& baseline,
                                              const PairedTest& test, double margin);

/// An example that one of two models is better at.
struct DifferingExample {
  ExampleText text;                                     // with the prediction of the one
  std::optional<std::string> baseline_prediction = {};  // and of the other
  double value = 0, baseline_value = 0;                 // of the metric on this example
};

/// The examples at which two models differ most in the metric: up to `most` where the values are lower than
/// the baseline's, then up to `most` where they are higher, each with the largest difference first, and in
/// the order of the data where differences are equal. Examples without weight do not count. Empty where
/// test_on_examples() has nothing.
struct DifferingExamples {
  std::vector<DifferingExample> lower, higher;
};
DifferingExamples differing_examples(const ExampleValues& values, const ExampleValues& baseline, size_t most);

}  // namespace zoo

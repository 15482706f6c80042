#pragma once
// The labels of a task that classifies: class c is the label number c.

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

#include "tasks/prediction.h"

namespace zoo {

/// The different ones of the labels of all examples, sorted.
std::vector<std::string> distinct_labels(std::vector<std::string> all);

/// The class of a label; it is found faster if `labels` are sorted. Throws UnknownSymbolError for a label
/// that the training data do not have.
int64_t class_of(const std::string& label, const std::vector<std::string>& labels);

/// The classes with their probabilities, (C) double on the CPU, the likeliest first.
std::vector<LabelProbability> ranked(const torch::Tensor& probabilities,
                                     const std::vector<std::string>& labels);

}  // namespace zoo

#pragma once
// The labels of a task that classifies: class c is the label number c.

#include <cstdint>
#include <string>
#include <vector>

#include <torch/types.h>

#include "data/data_config.h"
#include "data/labels.h"
#include "tasks/prediction.h"

namespace zoo {

/// The different ones of the labels of all examples, sorted.
std::vector<std::string> distinct_labels(std::vector<std::string> all);

/// The class of a label; it is found faster if `labels` are sorted. Throws UnknownSymbolError for a label
/// that the training data do not have.
int64_t class_of(const std::string& label, const std::vector<std::string>& labels);

/// The names of a task's labels by the training data, whose fields are as tables have them: the different
/// classes or labels, sorted, or for numbers the name of their column.
std::vector<std::string> label_names(const std::vector<std::string>& fields, Problem problem,
                                     const DataConfig& data);

/// What is right for each row: (N) int64 classes, or (N, C) float as label_loss() reads them. A model with
/// one label (multi_label) also takes numbers from 0 to 1 as targets. Throws UnknownSymbolError for a label
/// that the training data do not have, DataError for a field that does not fit.
torch::Tensor targets_of(const std::vector<std::string>& fields, const std::vector<std::string>& labels,
                         Problem problem, const DataConfig& data);

/// The labels with the outputs for them, (C) double on the CPU.
std::vector<LabelProbability> named(const torch::Tensor& outputs, const std::vector<std::string>& labels);
/// The same, the likeliest first.
std::vector<LabelProbability> ranked(const torch::Tensor& probabilities,
                                     const std::vector<std::string>& labels);

}  // namespace zoo

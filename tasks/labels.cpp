#include "tasks/labels.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {

std::vector<std::string> distinct_labels(std::vector<std::string> all) {
  std::ranges::sort(all);
  const auto repeated = std::ranges::unique(all);
  all.erase(repeated.begin(), repeated.end());
  return all;
}

int64_t class_of(const std::string& label, const std::vector<std::string>& labels) {
  auto found = std::ranges::lower_bound(labels, label);
  // Classes of a directory of the Hub are in the order of its config.json.
  if (found == labels.end() || *found != label) found = std::ranges::find(labels, label);
  if (found != labels.end()) return found - labels.begin();
  throw UnknownSymbolError(fmt::format("the label '{}' does not occur in the training data", excerpt(label)));
}

std::vector<std::string> label_names(const std::vector<std::string>& fields, Problem problem,
                                     const DataConfig& data) {
  if (problem == Problem::regression) return {data.label_column};
  if (problem == Problem::single_label) return distinct_labels(fields);
  refuse_marks(fields);
  std::vector<std::string> all;
  for (const auto& field : fields)
    std::ranges::move(labels_in(field, data.label_separator), std::back_inserter(all));
  if (all.empty())
    throw DataError(fmt::format("no row of the training data has a label ({})", data.label_column));
  return distinct_labels(std::move(all));
}

namespace {

/// The number of a field if it is one from 0 to 1.
std::optional<double> share_in(const std::string& field) {
  try {
    const double number = number_of(field);
    return number >= 0 && number <= 1 ? std::optional(number) : std::nullopt;
  } catch (const DataError&) {
    return std::nullopt;
  }
}

}  // namespace

torch::Tensor targets_of(const std::vector<std::string>& fields, const std::vector<std::string>& labels,
                         Problem problem, const DataConfig& data) {
  if (problem == Problem::single_label) {
    std::vector<int64_t> classes;
    for (const auto& label : fields) classes.push_back(class_of(label, labels));
    return torch::tensor(classes, torch::kLong);
  }
  auto targets = torch::zeros({std::ssize(fields), std::ssize(labels)});
  auto rows = targets.accessor<float, 2>();
  if (problem == Problem::regression && labels.size() != 1) {
    throw DataError(fmt::format("the model says {} numbers for each input, but the column {} has one",
                                labels.size(), data.label_column));
  }
  for (int64_t i = 0; i < std::ssize(fields); ++i) {
    const auto& field = fields[static_cast<size_t>(i)];
    if (problem == Problem::regression) {
      rows[i][0] = static_cast<float>(number_of(field));
      continue;
    }
    const auto share = labels.size() == 1 ? share_in(field) : std::nullopt;
    if (share) {
      rows[i][0] = static_cast<float>(*share);
      continue;
    }
    for (const auto& label : labels_in(field, data.label_separator)) rows[i][class_of(label, labels)] = 1;
  }
  return targets;
}

std::vector<LabelProbability> named(const torch::Tensor& outputs, const std::vector<std::string>& labels) {
  const double* const values = outputs.const_data_ptr<double>();
  std::vector<LabelProbability> result;
  for (size_t i = 0; i < labels.size(); ++i) result.push_back({labels[i], values[i]});
  return result;
}

std::vector<LabelProbability> ranked(const torch::Tensor& probabilities,
                                     const std::vector<std::string>& labels) {
  auto result = named(probabilities, labels);
  std::ranges::stable_sort(result, std::greater(), &LabelProbability::probability);
  return result;
}

}  // namespace zoo

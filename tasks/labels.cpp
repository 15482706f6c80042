#include "tasks/labels.h"

#include <algorithm>
#include <functional>

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

std::vector<LabelProbability> ranked(const torch::Tensor& probabilities,
                                     const std::vector<std::string>& labels) {
  const double* const values = probabilities.const_data_ptr<double>();
  std::vector<LabelProbability> result;
  for (size_t i = 0; i < labels.size(); ++i) result.push_back({labels[i], values[i]});
  std::ranges::stable_sort(result, std::greater(), &LabelProbability::probability);
  return result;
}

}  // namespace zoo

#include "pages/tables/confusion.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "pages/tables/report_document.h"

namespace zoo {
namespace {

bool is_row_of_counts(const Json& row, size_t n) { return is_list_of_counts(row) && row.size() == n; }

}  // namespace

std::optional<ConfusionMatrix> confusion_matrix(const Json& json) {
  const Json &labels = member(json, "labels"), &counts = member(json, "counts");
  if (!labels.is_array() || !counts.is_array() || labels.empty() || labels.size() != counts.size())
    return std::nullopt;
  if (!std::ranges::all_of(labels, [](const Json& label) { return label.is_string(); })) return std::nullopt;
  ConfusionMatrix confusion{.labels = labels.get<std::vector<std::string>>(), .counts = {}};
  for (const auto& row : counts) {
    if (!is_row_of_counts(row, labels.size())) return std::nullopt;
    confusion.counts.push_back(row.get<std::vector<int64_t>>());
  }
  return confusion;
}

std::optional<ConfusionMatrix> confusion_of(const Json& run) {
  return confusion_matrix(member(run, "confusion"));
}

void add_confusion(std::optional<ConfusionMatrix>& sum, const std::optional<ConfusionMatrix>& more) {
  if (!sum) {
    sum = more;
    return;
  }
  if (!more || more->labels != sum->labels) return;
  for (size_t i = 0; i < sum->counts.size(); ++i)
    std::ranges::transform(sum->counts[i], more->counts[i], sum->counts[i].begin(), std::plus());
}

std::vector<Mistake> commonest_mistakes(const ConfusionMatrix& confusion, size_t most) {
  std::vector<Mistake> mistakes;
  for (size_t i = 0; i < confusion.counts.size(); ++i) {
    const auto& row = confusion.counts[i];
    const auto all = static_cast<double>(std::accumulate(row.begin(), row.end(), int64_t{0}));
    for (size_t j = 0; j < row.size(); ++j) {
      if (i == j || row[j] == 0) continue;
      mistakes.push_back({.right = confusion.labels[i],
                          .predicted = confusion.labels[j],
                          .count = row[j],
                          .share = static_cast<double>(row[j]) / all});
    }
  }
  std::ranges::stable_sort(mistakes, std::greater(), &Mistake::count);
  if (mistakes.size() > most) mistakes.resize(most);
  return mistakes;
}

}  // namespace zoo

#include "pages/report/confusion.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "pages/report/report_document.h"

namespace zoo {
namespace {

constexpr int64_t kMostCount = int64_t{1} << 40;  // sums of counts fit in 64 bits

bool is_count(const Json& value) {
  return value.is_number_integer() && value.get<int64_t>() >= 0 && value.get<int64_t>() <= kMostCount;
}

bool is_row_of_counts(const Json& row, size_t n) {
  return row.is_array() && row.size() == n && std::ranges::all_of(row, is_count);
}

/// A matrix {"labels", "counts"}.
std::optional<Confusion> read_confusion(const Json& json) {
  const Json &labels = member(json, "labels"), &counts = member(json, "counts");
  if (!labels.is_array() || !counts.is_array() || labels.empty() || labels.size() != counts.size())
    return std::nullopt;
  if (!std::ranges::all_of(labels, [](const Json& label) { return label.is_string(); })) return std::nullopt;
  Confusion confusion{.labels = labels.get<std::vector<std::string>>(), .counts = {}};
  for (const auto& row : counts) {
    if (!is_row_of_counts(row, labels.size())) return std::nullopt;
    confusion.counts.push_back(row.get<std::vector<int64_t>>());
  }
  return confusion;
}

}  // namespace

std::optional<Confusion> confusion_of(const Json& run) { return read_confusion(member(run, "confusion")); }

void add_confusion(Json& sum, const Json& more) {
  const auto added = read_confusion(more);
  if (!added) return;
  auto before = read_confusion(sum);
  if (!before) {
    sum = more;
    return;
  }
  if (before->labels != added->labels) return;
  for (size_t i = 0; i < before->counts.size(); ++i)
    std::ranges::transform(before->counts[i], added->counts[i], before->counts[i].begin(), std::plus());
  sum["counts"] = before->counts;
}

std::vector<Mistake> commonest_mistakes(const Confusion& confusion, size_t most) {
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

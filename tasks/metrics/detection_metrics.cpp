#include "tasks/metrics/detection_metrics.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

namespace zoo {
namespace {

constexpr size_t kThresholds = 10, kRecalls = 101, kAreas = 4, kMostDetections = 3;
constexpr std::array<int64_t, kMostDetections> kDetections{1, 10, 100};

struct AreaRange {
  double least, most;
  bool has(double area) const { return area >= least && area <= most; }
};
constexpr std::array<AreaRange, kAreas> kAreaRanges{
    {{0, 1e10}, {0, 32.0 * 32}, {32.0 * 32, 96.0 * 96}, {96.0 * 96, 1e10}}};

/// As numpy.linspace(0.5, 0.95, 10).
double threshold_at(size_t i) {
  constexpr double first = 0.5, last = 0.95, step = (last - first) / 9;
  return i + 1 == kThresholds ? last : static_cast<double>(i) * step + first;
}

double area_of(const Box& box) { return box.width * box.height; }

double intersection(const Box& a, const Box& b) {
  const double width = std::min(a.x + a.width, b.x + b.width) - std::max(a.x, b.x);
  const double height = std::min(a.y + a.height, b.y + b.height) - std::max(a.y, b.y);
  return width <= 0 || height <= 0 ? 0 : width * height;
}

/// The part of a detection that is within a marked object, among both; for a crowd among the detection.
double overlap(const Box& detected, const AnnotatedObject& marked) {
  const double common = intersection(detected, marked.box);
  if (common == 0) return 0;
  return common / (marked.is_crowd ? area_of(detected) : area_of(detected) + area_of(marked.box) - common);
}

/// The objects of one category in one image. Detections are sorted by score.
struct Scene {
  std::vector<AnnotatedObject> marked;
  std::vector<DetectedObject> detected;
};
using Scenes = std::map<int64_t, Scene>;  // by image

/// What became of the detections of a scene.
struct Matches {
  std::vector<double> scores;
  std::array<std::vector<char>, kThresholds> matched, ignored;  // of each detection
  int64_t n_to_find = 0;                                        // marked objects that count
};

Matches match(const Scene& scene, const AreaRange& area, int64_t most_detections) {
  std::vector<const AnnotatedObject*> marked;
  for (const auto& object : scene.marked) marked.push_back(&object);
  const auto is_ignored = [&](const AnnotatedObject* object) {
    return object->is_crowd || !area.has(object->area);
  };
  std::ranges::stable_sort(marked, {}, is_ignored);  // objects that count come first
  const auto n = std::min(scene.detected.size(), static_cast<size_t>(most_detections));
  Matches result;
  result.n_to_find = std::ranges::count_if(marked, [&](const auto* object) { return !is_ignored(object); });
  for (size_t d = 0; d < n; ++d) result.scores.push_back(scene.detected[d].score);

  std::vector<double> overlaps(n * marked.size());
  for (size_t d = 0; d < n; ++d)
    for (size_t m = 0; m < marked.size(); ++m)
      overlaps[d * marked.size() + m] = overlap(scene.detected[d].box, *marked[m]);
  for (size_t t = 0; t < kThresholds; ++t) {
    std::vector<char> taken(marked.size(), 0);
    result.matched[t].assign(n, 0), result.ignored[t].assign(n, 0);
    for (size_t d = 0; d < n; ++d) {
      double best = std::min(threshold_at(t), 1 - 1e-10);
      const AnnotatedObject* found = nullptr;
      size_t found_at = 0;
      for (size_t m = 0; m < marked.size(); ++m) {
        if (taken[m] && !marked[m]->is_crowd) continue;
        if (found && !is_ignored(found) && is_ignored(marked[m])) break;
        const double value = overlaps[d * marked.size() + m];
        if (value < best) continue;
        best = value, found = marked[m], found_at = m;
      }
      if (found) {
        taken[found_at] = 1;
        result.matched[t][d] = 1;
        result.ignored[t][d] = is_ignored(found);
      } else {
        result.ignored[t][d] = !area.has(area_of(scene.detected[d].box));
      }
    }
  }
  return result;
}

/// Of one category: at each threshold, the mean precision over the recalls, and the greatest recall.
struct CategoryResult {
  int64_t category = 0;
  std::array<double, kThresholds> precision{}, recall{};
};

CategoryResult summed_up(const std::vector<Matches>& scenes, int64_t n_to_find) {
  /// Detection `d` of scene `scene`.
  struct Place {
    size_t scene, d;
  };
  std::vector<Place> places;
  for (size_t s = 0; s < scenes.size(); ++s)
    for (size_t d = 0; d < scenes[s].scores.size(); ++d) places.push_back({s, d});
  std::ranges::stable_sort(places, std::greater(),
                           [&](const Place& p) { return scenes[p.scene].scores[p.d]; });

  CategoryResult result;
  for (size_t t = 0; t < kThresholds; ++t) {
    std::vector<double> precisions, recalls;
    double n_right = 0, n_wrong = 0;
    for (const auto& [s, d] : places) {
      // Ignored detections change neither number, but have a place in the curve.
      if (!scenes[s].ignored[t][d]) (scenes[s].matched[t][d] ? n_right : n_wrong) += 1;
      recalls.push_back(n_right / static_cast<double>(n_to_find));
      precisions.push_back(n_right / (n_wrong + n_right + std::numeric_limits<double>::epsilon()));
    }
    for (size_t i = precisions.size(); i-- > 1;)
      precisions[i - 1] = std::max(precisions[i - 1], precisions[i]);
    result.recall[t] = recalls.empty() ? 0 : recalls.back();
    double sum = 0;
    for (size_t r = 0; r < kRecalls; ++r) {
      const auto at = std::ranges::lower_bound(recalls, static_cast<double>(r) * 0.01);
      if (at == recalls.end()) break;
      sum += precisions[static_cast<size_t>(at - recalls.begin())];
    }
    result.precision[t] = sum / static_cast<double>(kRecalls);
  }
  return result;
}

double mean_of(const std::vector<double>& values) {
  if (values.empty()) return -1;
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

double intersection_over_union(const Box& a, const Box& b) {
  const double common = intersection(a, b), all = area_of(a) + area_of(b) - common;
  return all > 0 ? common / all : 0;
}

DetectionMetrics detection_metrics(std::span<const AnnotatedObject> marked,
                                   std::span<const DetectedObject> detected) {
  std::map<int64_t, Scenes> categories;
  for (const auto& object : marked) categories[object.category][object.image].marked.push_back(object);
  for (const auto& object : detected) {
    const auto category = categories.find(object.category);
    if (category != categories.end()) category->second[object.image].detected.push_back(object);
  }
  /// For an area and a number of detections, the results of all categories with something to find.
  const auto results = [&](size_t area, int64_t most_detections) {
    std::vector<CategoryResult> list;
    for (const auto& [category, scenes] : categories) {
      std::vector<Matches> matches;
      int64_t n_to_find = 0;
      for (const auto& [image, scene] : scenes) {
        matches.push_back(match(scene, kAreaRanges[area], most_detections));
        n_to_find += matches.back().n_to_find;
      }
      if (n_to_find == 0) continue;
      list.push_back(summed_up(matches, n_to_find));
      list.back().category = category;
    }
    return list;
  };
  for (auto& [category, scenes] : categories)
    for (auto& [image, scene] : scenes)
      std::ranges::stable_sort(scene.detected, std::greater(), &DetectedObject::score);

  const auto mean_precision = [](const std::vector<CategoryResult>& list, size_t first, size_t last) {
    std::vector<double> values;
    for (const auto& result : list)
      values.insert(values.end(), result.precision.begin() + static_cast<ptrdiff_t>(first),
                    result.precision.begin() + static_cast<ptrdiff_t>(last));
    return mean_of(values);
  };
  const auto mean_recall = [](const std::vector<CategoryResult>& list) {
    std::vector<double> values;
    for (const auto& result : list) values.insert(values.end(), result.recall.begin(), result.recall.end());
    return mean_of(values);
  };
  constexpr size_t at_75 = 5;
  /// The mean for one category, where it is in the list.
  const auto of_category = [&](const std::vector<CategoryResult>& list, int64_t category) {
    const auto found = std::ranges::find(list, category, &CategoryResult::category);
    return found == list.end() ? -1 : mean_precision({*found}, 0, kThresholds);
  };
  const auto all = results(0, kDetections[2]), small = results(1, kDetections[2]),
             medium = results(2, kDetections[2]), large = results(3, kDetections[2]);
  std::vector<CategoryPrecision> of_categories;
  for (const auto& result : all) {
    of_categories.push_back({.category = result.category,
                             .precision = mean_precision({result}, 0, kThresholds),
                             .precision_50 = mean_precision({result}, 0, 1),
                             .precision_75 = mean_precision({result}, at_75, at_75 + 1),
                             .precision_small = of_category(small, result.category),
                             .precision_medium = of_category(medium, result.category),
                             .precision_large = of_category(large, result.category)});
  }
  return {.precision = mean_precision(all, 0, kThresholds),
          .precision_50 = mean_precision(all, 0, 1),
          .precision_75 = mean_precision(all, at_75, at_75 + 1),
          .precision_small = mean_precision(small, 0, kThresholds),
          .precision_medium = mean_precision(medium, 0, kThresholds),
          .precision_large = mean_precision(large, 0, kThresholds),
          .recall_1 = mean_recall(results(0, kDetections[0])),
          .recall_10 = mean_recall(results(0, kDetections[1])),
          .recall_100 = mean_recall(all),
          .recall_small = mean_recall(small),
          .recall_medium = mean_recall(medium),
          .recall_large = mean_recall(large),
          .categories = std::move(of_categories)};
}

}  // namespace zoo

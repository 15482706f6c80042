#include "tokenizers/hub/sentencepiece_merges.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "base/text.h"

namespace zoo {
namespace {

using Places = std::unordered_map<std::string_view, size_t>;

Places places_of(const std::vector<std::string>& tokens) {
  Places places;
  for (size_t i = 0; i < tokens.size(); ++i) places.emplace(tokens[i], i);
  return places;
}

/// Calls `use` with the places of each two tokens that make this one.
template <class Use>
void for_each_split(const std::string& token, const Places& places, const Use& use) {
  const std::string_view text = token;
  for (size_t at = 1; at < text.size(); ++at) {
    const auto left = places.find(text.substr(0, at));
    if (left == places.end()) continue;
    const auto right = places.find(text.substr(at));
    if (right != places.end()) use(left->second, right->second);
  }
}

}  // namespace

std::optional<std::vector<Merge>> merges_of_scores(const std::vector<std::string>& tokens,
                                                   const std::vector<float>& scores) {
  size_t work = 0;
  for (const auto& token : tokens) work += token.size() * token.size();
  if (work > kMostMergeWork) return std::nullopt;
  const auto places = places_of(tokens);
  struct Scored {
    float score;
    size_t left_length, right_length;
    size_t left, right;
  };
  std::vector<Scored> found;
  for (size_t i = 0; i < tokens.size(); ++i) {
    for_each_split(tokens[i], places, [&](size_t left, size_t right) {
      found.push_back(
          {scores[i], count_code_points(tokens[left]), count_code_points(tokens[right]), left, right});
    });
    if (found.size() > kMostMerges) return std::nullopt;
  }
  std::ranges::stable_sort(found, [](const Scored& a, const Scored& b) {
    return std::tie(a.score, a.left_length, a.right_length) >
           std::tie(b.score, b.left_length, b.right_length);
  });
  std::vector<Merge> merges;
  for (const auto& one : found) merges.emplace_back(tokens[one.left], tokens[one.right]);
  return merges;
}

std::optional<std::vector<float>> scores_of_merges(const std::vector<std::string>& tokens,
                                                   const std::vector<Merge>& merges) {
  const auto places = places_of(tokens);
  std::vector<size_t> n_merges(tokens.size(), 0);
  std::vector<float> scores(tokens.size(), 0);
  float rank = 0;
  std::string last;
  for (const auto& [left, right] : merges) {
    auto made = left + right;
    const auto place = places.find(made);
    if (place == places.end() || !places.contains(left) || !places.contains(right)) return std::nullopt;
    if (made != last) {
      if (n_merges[place->second] > 0) return std::nullopt;
      scores[place->second] = --rank;
      last = std::move(made);
    }
    ++n_merges[place->second];
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    size_t n_splits = 0;
    for_each_split(tokens[i], places, [&](size_t, size_t) { ++n_splits; });
    if (n_splits != n_merges[i]) return std::nullopt;
    if (n_splits == 0) scores[i] = rank - 1;
  }
  return scores;
}

}  // namespace zoo

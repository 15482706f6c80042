#include "tasks/metrics/entity_metrics.h"

#include <algorithm>

namespace zoo {
namespace {

/// A label as a prefix and a type: "B-PER" → 'B', "PER".
struct EntityTag {
  char prefix = 'O';
  std::string_view type = "_";

  bool is_outside() const { return prefix == 'O' || prefix == '.'; }
};

EntityTag entity_tag(std::string_view label) {
  if (label.empty()) return {};
  auto type = label.substr(1);
  if (const size_t hyphen = type.find('-'); hyphen != type.npos) type.remove_prefix(hyphen + 1);
  return {.prefix = label.front(), .type = type.empty() ? "_" : type};
}

/// Whether an entity that has `before` ends where `next` follows.
bool ends_entity(const EntityTag& before, const EntityTag& next) {
  if (before.is_outside()) return false;
  if (before.prefix == 'E' || before.prefix == 'S' || before.type != next.type) return true;
  const bool was_inside = before.prefix == 'B' || before.prefix == 'I';
  return was_inside && (next.prefix == 'B' || next.prefix == 'S' || next.prefix == 'O');
}

/// Whether `tag` begins an entity where `before` comes before it.
bool begins_entity(const EntityTag& before, const EntityTag& tag) {
  if (tag.prefix == 'B' || tag.prefix == 'S') return true;
  const bool follows_an_end = before.prefix == 'E' || before.prefix == 'S' || before.prefix == 'O';
  if (follows_an_end && (tag.prefix == 'E' || tag.prefix == 'I')) return true;
  return !tag.is_outside() && before.type != tag.type;
}

double ratio_of(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

std::vector<Entity> entities_of(const std::vector<std::string_view>& labels) {
  std::vector<Entity> entities;
  EntityTag before;
  int64_t begin = 0;
  const auto n = std::ssize(labels);
  for (int64_t i = 0; i <= n; ++i) {
    const auto tag = i < n ? entity_tag(labels[static_cast<size_t>(i)]) : EntityTag{};
    if (ends_entity(before, tag)) entities.push_back({.type = before.type, .begin = begin, .end = i});
    if (begins_entity(before, tag)) begin = i;
    before = tag;
  }
  return entities;
}

bool mark_entities(const std::vector<std::string>& classes) {
  return std::ranges::any_of(
      classes, [](const auto& name) { return name.starts_with("B-") || name.starts_with("I-"); });
}

void EntityCounts::add(const std::vector<std::string_view>& predicted_labels,
                       const std::vector<std::string_view>& actual_labels) {
  const auto guesses = entities_of(predicted_labels), right = entities_of(actual_labels);
  predicted += std::ssize(guesses);
  actual += std::ssize(right);
  found += std::ranges::count_if(
      guesses, [&](const Entity& guess) { return std::ranges::find(right, guess) != right.end(); });
}

double EntityCounts::precision() const { return ratio_of(found, predicted); }
double EntityCounts::recall() const { return ratio_of(found, actual); }
double EntityCounts::f1() const { return ratio_of(2 * found, predicted + actual); }

}  // namespace zoo

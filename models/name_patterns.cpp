#include "models/name_patterns.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {
namespace {

/// The names, and patterns for all names that begin alike: `encoder.*`, `encoder.layers.*`, …
std::vector<std::string> possible_patterns(const std::vector<std::string>& names) {
  std::set<std::string> patterns(names.begin(), names.end());
  for (const auto& name : names) {
    for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1))
      patterns.insert(name.substr(0, dot) + ".*");
  }
  return {patterns.begin(), patterns.end()};
}

/// "; did you mean 'encoder.*'?", or the first words of all names.
std::string similar_names(const std::string& pattern, const std::vector<std::string>& names) {
  if (const auto near = nearest(pattern, possible_patterns(names)))
    return fmt::format("; did you mean '{}'?", *near);
  std::set<std::string> first;
  for (const auto& name : names) {
    const size_t dot = name.find('.');
    first.insert(dot == name.npos ? name : name.substr(0, dot) + ".*");
  }
  return first.empty() ? "" : fmt::format("; it has {}", fmt::join(first, ", "));
}

}  // namespace

bool matches_any(const std::vector<std::string>& patterns, std::string_view name) {
  return std::ranges::any_of(patterns, [&](const auto& pattern) { return matches_pattern(pattern, name); });
}

void require_matches(std::string_view key, const std::vector<std::string>& patterns,
                     const std::vector<std::string>& names, std::string_view kind) {
  for (const auto& pattern : patterns) {
    const auto is_meant = [&](const auto& name) { return matches_pattern(pattern, name); };
    if (std::ranges::any_of(names, is_meant)) continue;
    throw ConfigError(fmt::format("{}: no {} of the model matches '{}'{}", key, kind, excerpt(pattern),
                                  similar_names(pattern, names)));
  }
}

std::vector<std::string> parameter_names(const torch::nn::Module& model) {
  std::vector<std::string> names;
  for (const auto& item : model.named_parameters()) names.push_back(item.key());
  return names;
}

void freeze_parameters(torch::nn::Module& model, const std::vector<std::string>& patterns) {
  if (patterns.empty()) return;
  require_matches("training.freeze", patterns, parameter_names(model), "parameter");
  bool any_left = false;
  for (auto& item : model.named_parameters()) {
    if (matches_any(patterns, item.key())) item.value().requires_grad_(false);
    any_left = any_left || item.value().requires_grad();
  }
  if (!any_left) throw ConfigError("training.freeze: leaves no parameter to train: name fewer");
}

}  // namespace zoo

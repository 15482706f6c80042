#include "interop/peft/adapted_modules.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "base/error.h"

namespace zoo {
namespace {

bool ends_like(std::string_view module, std::string_view end) {
  return module == end || module.ends_with("." + std::string(end));
}

bool is_whole_number(std::string_view part) {
  return !part.empty() && std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c) != 0; });
}

}  // namespace

std::optional<AdaptedModules::Choice> AdaptedModules::read(ForeignConfig& from, std::string_view key) {
  const auto found = from.json().find(key);
  if (found == from.json().end() || found->is_null() || !found->is_string()) {
    auto ends = from.texts(key);
    if (ends.empty()) return std::nullopt;
    return Choice{.ends = std::move(ends)};
  }
  const auto text = from.text(key);
  if (text.empty() || text == "all-linear") return std::nullopt;
  try {
    return Choice{.ends = {}, .expression = std::make_shared<const Pattern>("\\A(?:" + text + ")\\z")};
  } catch (const DataError& error) {
    from.fail(key, error.what());
  }
}

bool AdaptedModules::Choice::contains(const std::string& module) const {
  if (!expression) return std::ranges::any_of(ends, [&](const auto& end) { return ends_like(module, end); });
  bool matches = false;
  expression->for_each_match(module, [&](size_t, size_t) { matches = true; });
  return matches;
}

AdaptedModules::AdaptedModules(ForeignConfig& from)
    : target_(read(from, "target_modules")),
      excluded_(read(from, "exclude_modules")),
      saved_(from.texts("modules_to_save")),
      layers_(from.integer_or_integers("layers_to_transform")) {
  const auto pattern = from.json().find("layers_pattern");
  if (pattern != from.json().end() && pattern->is_string()) {
    if (const auto name = from.text("layers_pattern"); !name.empty()) names_of_layers_ = {name};
  } else {
    names_of_layers_ = from.texts("layers_pattern");
  }
  // PEFT reads an expression there.
  for (const auto& name : names_of_layers_) {
    const bool is_plain = std::ranges::all_of(
        name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '.'; });
    if (!is_plain) from.fail("layers_pattern", "only names of modules and their ends are supported");
  }
}

/// Whether the module stands in one of the layers that are adapted.
bool AdaptedModules::has_layer_of(std::string_view module) const {
  for (size_t begin = 0, end = 0; (end = module.find('.', begin)) != module.npos; begin = end + 1) {
    const auto part = module.substr(begin, end - begin);
    if (!is_whole_number(part) || begin == 0) continue;
    const auto before = module.substr(0, begin - 1);
    const bool is_layer = names_of_layers_.empty()
                              ? before.find('.') != before.npos
                              : std::ranges::any_of(names_of_layers_, [&](const auto& name) {
                                  return ends_like(before, name);
                                });
    if (!is_layer) continue;
    int64_t number = -1;
    std::from_chars(part.data(), part.data() + part.size(), number);
    return std::ranges::find(layers_, number) != layers_.end();
  }
  return false;
}

bool AdaptedModules::contains(const std::string& module) const {
  if (excluded_ && excluded_->contains(module)) return false;
  const auto whole = "." + module + ".";
  for (const auto& name : saved_)
    if (whole.find("." + name + ".") != whole.npos) return false;
  if (!target_) return true;
  if (!target_->contains(module)) return false;
  return layers_.empty() || target_->expression || has_layer_of(module);
}

}  // namespace zoo

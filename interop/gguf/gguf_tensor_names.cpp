#include "interop/gguf/gguf_tensor_names.h"

#include <charconv>
#include <optional>
#include <string_view>

namespace zoo {
namespace {

using Parts = GgufModuleName::Parts;

/// What the placeholders of a pattern stand for.
struct Places {
  std::string_view layer;
  int64_t expert = 0;
};

constexpr std::string_view kLayer = "{}", kExpert = "[]";

std::string_view take_digits(std::string_view& text) {
  size_t n = 0;
  while (n < text.size() && text[n] >= '0' && text[n] <= '9') ++n;
  const auto digits = text.substr(0, n);
  text.remove_prefix(n);
  return digits;
}

/// Nothing if the name does not have this pattern.
std::optional<Places> places_in(std::string_view name, std::string_view pattern) {
  Places places;
  while (!pattern.empty()) {
    const bool is_layer = pattern.starts_with(kLayer), is_expert = pattern.starts_with(kExpert);
    if (is_layer || is_expert) {
      const auto digits = take_digits(name);
      if (digits.empty()) return std::nullopt;
      if (is_layer) places.layer = digits;
      if (is_expert &&
          std::from_chars(digits.data(), digits.data() + digits.size(), places.expert).ec != std::errc())
        return std::nullopt;
      pattern.remove_prefix(kLayer.size());
      continue;
    }
    if (name.empty() || name.front() != pattern.front()) return std::nullopt;
    name.remove_prefix(1);
    pattern.remove_prefix(1);
  }
  return name.empty() ? std::optional(places) : std::nullopt;
}

std::string filled(std::string_view pattern, const Places& places) {
  std::string result(pattern);
  if (const auto at = result.find(kLayer); at != result.npos) result.replace(at, kLayer.size(), places.layer);
  if (const auto at = result.find(kExpert); at != result.npos)
    result.replace(at, kExpert.size(), std::to_string(places.expert));
  return result;
}

/// A module's name and the part: "weight" or "bias", and no other.
struct Name {
  std::string_view module, part;
};

std::optional<Name> name_in(std::string_view tensor, Parts parts) {
  if (parts == Parts::of_tensor) {
    constexpr std::string_view bias = "_bias";
    if (!tensor.ends_with(bias)) return Name{tensor, "weight"};
    return Name{tensor.substr(0, tensor.size() - bias.size()), "bias"};
  }
  for (const std::string_view part : {"weight", "bias"}) {
    const auto end = "." + std::string(part);
    if (tensor.ends_with(end)) return Name{tensor.substr(0, tensor.size() - end.size()), part};
  }
  return std::nullopt;
}

std::string foreign_name(const GgufModuleName& module, std::string_view part, const Places& places) {
  auto name = filled(module.foreign, places);
  if (module.parts == Parts::of_module) return name + "." + std::string(part);
  return part == "bias" ? name + "_bias" : name;
}

bool belongs(const GgufModuleName& module, GgufVariant variant) {
  return module.variant == GgufVariant::any || module.variant == variant;
}

}  // namespace

std::vector<GgufLink> links_of_stored(const GgufArchitecture& architecture, GgufVariant variant,
                                      int64_t n_experts, const std::string& stored) {
  const auto name = name_in(stored, Parts::of_module);
  if (!name) return {};
  for (const auto& module : architecture.modules) {
    if (!belongs(module, variant)) continue;
    auto places = places_in(name->module, module.stored);
    if (!places) continue;
    std::vector<GgufLink> links;
    const int64_t n = module.form == StoredForm::experts ? n_experts : 1;
    for (places->expert = 0; places->expert < n; ++places->expert)
      links.push_back({stored, foreign_name(module, name->part, *places), module.form, places->expert});
    return links;
  }
  return {};
}

std::vector<GgufLink> links_of_foreign(const GgufArchitecture& architecture, GgufVariant variant,
                                       const std::string& foreign) {
  std::vector<GgufLink> links;
  for (const auto& module : architecture.modules) {
    if (!belongs(module, variant) || module.use == GgufModuleName::Use::read) continue;
    const auto name = name_in(foreign, module.parts);
    if (!name) continue;
    const auto places = places_in(name->module, module.foreign);
    if (!places) continue;
    links.push_back({filled(module.stored, *places) + "." + std::string(name->part), foreign, module.form,
                     places->expert});
  }
  return links;
}

}  // namespace zoo

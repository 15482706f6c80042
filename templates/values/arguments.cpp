#include "templates/values/arguments.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.h"

namespace zoo::templates {

Bound::Bound(std::string_view function, const Arguments& arguments,
             std::initializer_list<std::string_view> names, size_t n_required)
    : function_(function), names_(names), values_(names.size()) {
  if (arguments.positional.size() > names_.size())
    throw Problem(fmt::format("{} takes at most {} arguments", function_, names_.size()));
  for (size_t i = 0; i < arguments.positional.size(); ++i) values_[i] = &arguments.positional[i];
  for (const auto& [name, value] : arguments.named) {
    const auto found = std::ranges::find(names_, name);
    if (found == names_.end())
      throw Problem(fmt::format("{} has no argument '{}'", function_, excerpt(name, 40)));
    auto& place = values_[static_cast<size_t>(found - names_.begin())];
    if (place) throw Problem(fmt::format("{}: the argument '{}' is given twice", function_, name));
    place = &value;
  }
  for (size_t i = 0; i < n_required; ++i) {
    if (!values_[i]) throw Problem(fmt::format("{} lacks the argument '{}'", function_, names_[i]));
  }
}

void Bound::refuse(size_t parameter, std::string_view expected) const {
  require_defined(at(parameter));
  throw Problem(fmt::format("{}: '{}' is of type {}, not {}", function_, names_[parameter],
                            type_name(at(parameter)), expected));
}

const std::string& Bound::text(size_t parameter) const {
  const auto* const bytes = at(parameter).as_text();
  if (!bytes) refuse(parameter, "str");
  return *bytes;
}

const std::string* Bound::text_or_none(size_t parameter) const {
  if (!values_[parameter] || values_[parameter]->is_none()) return nullptr;
  return &text(parameter);
}

int64_t Bound::integer(size_t parameter, int64_t otherwise) const {
  if (!values_[parameter]) return otherwise;
  const auto number = at(parameter).as_integer();
  if (!number) refuse(parameter, "int");
  return *number;
}

bool Bound::flag(size_t parameter, bool otherwise) const {
  return values_[parameter] ? is_true(at(parameter)) : otherwise;
}

}  // namespace zoo::templates

#include "templates/values/members.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include <fmt/format.h>

#include "base/text.h"
#include "templates/values/arguments.h"
#include "templates/values/operators.h"
#include "tokenizers/unicode/code_points.h"

namespace zoo::templates {
namespace {

constexpr auto text_methods = std::to_array<std::string_view>(
    {"capitalize", "casefold",     "center",       "count",   "encode",     "endswith",    "expandtabs",
     "find",       "format",       "format_map",   "index",   "isalnum",    "isalpha",     "isascii",
     "isdecimal",  "isdigit",      "isidentifier", "islower", "isnumeric",  "isprintable", "isspace",
     "istitle",    "isupper",      "join",         "ljust",   "lower",      "lstrip",      "maketrans",
     "partition",  "removeprefix", "removesuffix", "replace", "rfind",      "rindex",      "rjust",
     "rpartition", "rsplit",       "rstrip",       "split",   "splitlines", "startswith",  "strip",
     "swapcase",   "title",        "translate",    "upper",   "zfill"});
constexpr auto dict_methods =
    std::to_array<std::string_view>({"copy", "fromkeys", "get", "items", "keys", "values"});
constexpr auto forbidden_dict_methods =
    std::to_array<std::string_view>({"clear", "pop", "popitem", "setdefault", "update"});
constexpr auto list_methods = std::to_array<std::string_view>({"copy", "count", "index"});
constexpr auto forbidden_list_methods = std::to_array<std::string_view>(
    {"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"});
constexpr auto tuple_methods = std::to_array<std::string_view>({"count", "index"});
constexpr auto loop_methods = std::to_array<std::string_view>({"changed", "cycle"});

bool has(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

enum class Access { none, method, forbidden };

Access access_to(const Value& value, std::string_view name) {
  const auto kind = value.kind();
  if (name.starts_with("__")) return Access::none;
  if ((kind == Kind::dict && has(forbidden_dict_methods, name)) ||
      (kind == Kind::list && has(forbidden_list_methods, name)))
    return Access::forbidden;
  const bool is_method = kind == Kind::text   ? has(text_methods, name)
                         : kind == Kind::dict ? has(dict_methods, name)
                         : kind == Kind::list ? has(list_methods, name)
                         : kind == Kind::tuple || kind == Kind::range
                             ? has(tuple_methods, name)
                             : kind == Kind::loop && has(loop_methods, name);
  return is_method ? Access::method : Access::none;
}

/// The attribute alone; nullopt if there is none.
std::optional<Value> own_attribute(Budget& budget, const Value& value, const std::string& name) {
  if (const auto* name_space = value.as<std::shared_ptr<Namespace>>()) {
    if (const auto* found = (*name_space)->find(name)) return *found;
    return std::nullopt;
  }
  if (const auto* loop = value.as<std::shared_ptr<Loop>>()) {
    if (auto found = (*loop)->attribute(name)) return found;
  }
  if (const auto* callable = value.as<std::shared_ptr<const Callable>>(); callable && name == "name")
    return text(budget, (*callable)->name());
  const auto access = access_to(value, name);
  if (access == Access::none) return std::nullopt;
  if (access == Access::forbidden)
    return forbidden(fmt::format("'{}' would change a value of type {}", name, type_name(value)));
  budget.make(sizeof(Method));
  return std::make_shared<const Method>(Method{.object = value, .name = name});
}

std::string missing(const Value& value, std::string_view key) {
  return fmt::format("a value of type {} has no '{}'", type_name(value), excerpt(key, 60));
}

/// The item alone; nullopt if there is none.
std::optional<Value> own_item(Budget& budget, const Value& value, const Value& key) {
  if (const auto* members = value.as_dict()) {
    const bool can_be_key = !key.as_dict() && !key.is(Kind::list);
    const auto* const found = can_be_key ? members->find(budget, key) : nullptr;
    return found ? std::optional(*found) : std::nullopt;
  }
  const auto index = key.as_integer();
  if (!index) return std::nullopt;
  if (const auto* bytes = value.as_text()) {
    const int64_t n = length(budget, value), at = *index < 0 ? *index + n : *index;
    if (at < 0 || at >= n) return std::nullopt;
    const size_t begin = byte_of_code_point(*bytes, static_cast<size_t>(at));
    return text_like(budget, value, bytes->substr(begin, next_place(*bytes, begin) - begin));
  }
  const auto* const sequence = value.as_sequence();
  if (!sequence || (!value.is(Kind::list) && !value.is(Kind::tuple) && !value.is(Kind::range)))
    return std::nullopt;
  const int64_t n = std::ssize(sequence->items), at = *index < 0 ? *index + n : *index;
  if (at < 0 || at >= n) return std::nullopt;
  return sequence->items[static_cast<size_t>(at)];
}

std::string key_text(const Value& key) {
  if (const auto* bytes = key.as_text()) return *bytes;
  if (const auto* number = key.as<int64_t>()) return std::to_string(*number);
  return type_name(key);
}

Value call_dict_method(Budget& budget, const Dict& dict, const std::string& name,
                       const Arguments& arguments) {
  if (name == "get") {
    const Bound bound("get", arguments, {"key", "default"}, 1);
    const auto* const found = dict.find(budget, bound.at(0));
    return found ? *found : bound.find(1) ? bound.at(1) : Value();
  }
  if (name == "fromkeys") throw Problem("the method 'fromkeys' of dict is not supported");
  const Bound bound(name, arguments, {});
  if (name == "copy") {
    budget.make(dict.members.size() * 2 * sizeof(Value));
    return std::make_shared<const Dict>(dict);
  }
  std::vector<Value> items;
  items.reserve(dict.members.size());
  for (const auto& [key, value] : dict.members) {
    if (name == "items") {
      items.push_back(sequence(budget, Kind::tuple, {key, value}));
    } else {
      items.push_back(name == "keys" ? key : value);
    }
  }
  const auto kind = name == "items" ? Kind::items : name == "keys" ? Kind::keys : Kind::values;
  return sequence(budget, kind, std::move(items));
}

Value call_list_method(Budget& budget, const Value& object, const std::string& name,
                       const Arguments& arguments) {
  const auto& items = object.as_sequence()->items;
  if (name == "copy") {
    const Bound bound(name, arguments, {});
    return list(budget, items);
  }
  const Bound bound(name, arguments, {"value", "start", "stop"}, 1);
  const auto is_it = [&](const Value& value) { return equal(budget, value, bound.at(0)); };
  if (name == "count") return static_cast<int64_t>(std::ranges::count_if(items, is_it));
  const int64_t n = std::ssize(items);
  const auto place = [&](size_t parameter, int64_t otherwise) {
    const int64_t at = bound.integer(parameter, otherwise);
    return std::clamp(at < 0 ? at + n : at, int64_t{0}, n);
  };
  for (int64_t i = place(1, 0), end = place(2, n); i < end; ++i) {
    if (is_it(items[static_cast<size_t>(i)])) return i;
  }
  throw Problem("index: the list has no such item");
}

/// The items that a slice takes: from `begin`, by `step`, to before `end`.
struct Range {
  int64_t begin, end, step;

  std::vector<size_t> indices(Budget& budget) const {
    std::vector<size_t> result;
    for (int64_t i = begin; step > 0 ? i < end : i > end; i += step) result.push_back(static_cast<size_t>(i));
    budget.step(result.size() / 4);
    return result;
  }
};

Range range_of(int64_t n, const Value& begin, const Value& end, const Value& step) {
  const auto number = [](const Value& value) -> std::optional<int64_t> {
    if (value.is_none()) return std::nullopt;
    require_defined(value);
    const auto index = value.as_integer();
    if (!index) throw Problem(fmt::format("a slice has whole numbers, not {}", type_name(value)));
    return index;
  };
  const int64_t by = std::clamp(number(step).value_or(1), -n - 1, n + 1);
  if (by == 0) throw Problem("the step of a slice is 0");
  const int64_t least = by > 0 ? 0 : -1, most = by > 0 ? n : n - 1;
  const auto place = [&](std::optional<int64_t> at, int64_t otherwise) {
    if (!at) return otherwise;
    return std::clamp(*at < 0 ? std::max(*at, -n - 1) + n : *at, least, most);
  };
  return {place(number(begin), by > 0 ? 0 : n - 1), place(number(end), by > 0 ? n : -1), by};
}

}  // namespace

Value attribute(Budget& budget, const Value& value, const std::string& name) {
  budget.step();
  require_defined(value);
  if (auto found = own_attribute(budget, value, name)) return *found;
  if (const auto* members = value.as_dict()) {
    budget.step(members->members.size() / 8);
    if (const auto* found = members->find(name)) return *found;
  }
  return undefined(missing(value, name));
}

Value item(Budget& budget, const Value& value, const Value& key) {
  budget.step();
  require_defined(value);
  if (auto found = own_item(budget, value, key)) return *found;
  if (const auto* name = key.as_text()) {
    if (auto found = own_attribute(budget, value, *name)) return *found;
  }
  return undefined(missing(value, key_text(key)));
}

Value slice(Budget& budget, const Value& value, const Value& begin, const Value& end, const Value& step) {
  require_defined(value);
  if (const auto* bytes = value.as_text()) {
    const auto range = range_of(length(budget, value), begin, end, step);
    if (range.step == 1) {
      const size_t first = byte_of_code_point(*bytes, static_cast<size_t>(range.begin));
      const auto n = static_cast<size_t>(std::max<int64_t>(range.end - range.begin, 0));
      const auto rest = std::string_view(*bytes).substr(first);
      return text_like(budget, value, std::string(rest.substr(0, byte_of_code_point(rest, n))));
    }
    std::vector<std::string_view> characters;
    budget.make(bytes->size() * sizeof(std::string_view));
    for (size_t at = 0; at < bytes->size();) {
      const size_t next = next_place(*bytes, at);
      characters.push_back(std::string_view(*bytes).substr(at, next - at));
      at = next;
    }
    std::string result;
    for (const size_t i : range.indices(budget)) result += characters[i];
    return text_like(budget, value, std::move(result));
  }
  const auto* const items = value.as_sequence();
  if (!items || (!value.is(Kind::list) && !value.is(Kind::tuple) && !value.is(Kind::range)))
    return undefined(fmt::format("a value of type {} has no slices", type_name(value)));
  std::vector<Value> result;
  for (const size_t i : range_of(std::ssize(items->items), begin, end, step).indices(budget))
    result.push_back(items->items[i]);
  return sequence(budget, items->kind, std::move(result));
}

Value attribute_path(Budget& budget, const Value& value, const Value& path) {
  if (path.as_integer()) return item(budget, value, path);
  const auto* const names = path.as_text();
  if (!names) throw Problem(fmt::format("an attribute has a name, not a value of type {}", type_name(path)));
  Value result = value;
  for (size_t begin = 0; begin <= names->size();) {
    const size_t end = std::min(names->find('.', begin), names->size());
    const auto name = names->substr(begin, end - begin);
    const bool is_number = !name.empty() && name.size() < 10 &&
                           std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
    result = item(budget, result, is_number ? Value(int64_t{std::stoll(name)}) : text(budget, name));
    begin = end + 1;
  }
  return result;
}

Value call_method(Budget& budget, const Method& method, const Arguments& arguments) {
  budget.step();
  const auto& object = method.object;
  if (const auto* bytes = object.as_text()) {
    auto result = call_text_method(budget, *bytes, method.name, arguments);
    if (!object.is_markup()) return result;
    // Markup escapes the arguments of its methods.
    constexpr auto plain = std::to_array<std::string_view>(
        {"capitalize", "lower", "lstrip", "rstrip", "strip", "swapcase", "title", "upper"});
    if (result.as_text() && has(plain, method.name)) return markup(budget, *result.as_text());
    if (!result.as_text() && !result.as_sequence()) return result;
    throw Problem(fmt::format("the method '{}' of a safe text is not supported", method.name));
  }
  if (const auto* dict = object.as_dict()) return call_dict_method(budget, *dict, method.name, arguments);
  if (const auto* loop = object.as<std::shared_ptr<Loop>>()) {
    if (method.name == "changed") return (*loop)->changed(budget, arguments.positional);
    if (arguments.positional.empty()) throw Problem("loop.cycle needs values");
    const auto n = static_cast<int64_t>(arguments.positional.size());
    return arguments.positional[static_cast<size_t>((*loop)->index() % n)];
  }
  return call_list_method(budget, object, method.name, arguments);
}

}  // namespace zoo::templates

#include "interop/families/foreign_config.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "io/json_document.h"

namespace zoo {
namespace {

using Json = nlohmann::json;

/// An unsigned number beyond int64 is not one of any model.
bool is_integer(const Json& value) {
  return value.is_number_integer() && !(value.is_number_unsigned() && value.get<int64_t>() < 0);
}

bool is_number(const Json& value) { return value.is_number() && std::isfinite(value.get<double>()); }

bool is_flag(const Json& value) { return value.is_boolean(); }

bool is_text(const Json& value) { return value.is_string(); }

std::string shown(const Json& value) {
  constexpr size_t most = 60;
  return excerpt(shown_json(value), most);
}

}  // namespace

ForeignConfig::ForeignConfig(std::string place, nlohmann::json json)
    : place_(std::move(place)), json_(std::move(json)) {
  if (!json_.is_object()) throw CheckpointError(fmt::format("{}: not a JSON object", place_));
}

void ForeignConfig::fail(std::string_view key, std::string_view problem) const {
  const auto found = json_.find(key);
  if (found == json_.end()) throw CheckpointError(fmt::format("{}: {}: {}", place_, excerpt(key), problem));
  throw CheckpointError(fmt::format("{}: {} is {}: {}", place_, excerpt(key), shown(*found), problem));
}

bool ForeignConfig::has(std::string_view key) const {
  const auto found = json_.find(key);
  return found != json_.end() && !found->is_null();
}

/// Null if the key is missing or null.
const nlohmann::json* ForeignConfig::find(std::string_view key) {
  accounted_.emplace(key);
  return has(key) ? &*json_.find(key) : nullptr;
}

template <class T>
T ForeignConfig::value(std::string_view key, const std::optional<T>& default_value, bool (*fits)(const Json&),
                       std::string_view expected) {
  const auto* found = find(key);
  if (!found && default_value) return *default_value;
  if (!found) throw CheckpointError(fmt::format("{}: the key {} is missing", place_, key));
  if (!fits(*found)) fail(key, expected);
  return found->get<T>();
}

template <class T>
std::vector<T> ForeignConfig::list(std::string_view key, bool (*fits)(const Json&),
                                   std::string_view expected) {
  const auto* found = find(key);
  if (!found) return {};
  if (!found->is_array() || !std::ranges::all_of(*found, fits)) fail(key, expected);
  return found->get<std::vector<T>>();
}

int64_t ForeignConfig::integer(std::string_view key, std::optional<int64_t> default_value) {
  return value(key, default_value, is_integer, "expected a whole number");
}

double ForeignConfig::number(std::string_view key, std::optional<double> default_value) {
  return value(key, default_value, is_number, "expected a number");
}

bool ForeignConfig::flag(std::string_view key, std::optional<bool> default_value) {
  return value(key, default_value, is_flag, "expected true or false");
}

std::string ForeignConfig::text(std::string_view key, std::optional<std::string> default_value) {
  return value(key, default_value, is_text, "expected a text");
}

std::optional<int64_t> ForeignConfig::optional_integer(std::string_view key) {
  return find(key) ? std::optional(integer(key)) : std::nullopt;
}

std::optional<double> ForeignConfig::optional_number(std::string_view key) {
  return find(key) ? std::optional(number(key)) : std::nullopt;
}

std::optional<std::string> ForeignConfig::optional_text(std::string_view key) {
  return find(key) ? std::optional(text(key)) : std::nullopt;
}

std::vector<std::string> ForeignConfig::texts(std::string_view key) {
  return list<std::string>(key, is_text, "expected a list of texts");
}

std::vector<int64_t> ForeignConfig::integers(std::string_view key) {
  return list<int64_t>(key, is_integer, "expected a list of whole numbers");
}

std::vector<double> ForeignConfig::numbers(std::string_view key) {
  return list<double>(key, is_number, "expected a list of numbers");
}

std::vector<int64_t> ForeignConfig::integer_or_integers(std::string_view key) {
  const auto* value = find(key);
  if (!value) return {};
  return value->is_array() ? integers(key) : std::vector{integer(key)};
}

std::vector<double> ForeignConfig::number_or_numbers(std::string_view key) {
  const auto* value = find(key);
  if (!value) return {};
  return value->is_array() ? list<double>(key, is_number, "expected a list of numbers")
                           : std::vector{number(key)};
}

std::optional<ForeignConfig> ForeignConfig::object(std::string_view key) {
  const auto* value = find(key);
  if (!value) return std::nullopt;
  return ForeignConfig(fmt::format("{}: {}", place_, key), *value);
}

void ForeignConfig::ignore(std::initializer_list<std::string_view> keys) {
  for (const auto key : keys) accounted_.emplace(key);
}

void ForeignConfig::ignore_keys_of(const ForeignConfig& other) {
  accounted_.insert(other.accounted_.begin(), other.accounted_.end());
}

void ForeignConfig::require(std::string_view key, const nlohmann::json& value) {
  const auto* found = find(key);
  if (found && *found != value) fail(key, fmt::format("only {} is supported", shown(value)));
}

void ForeignConfig::finish() const {
  for (const auto& [key, value] : json_.items()) {
    if (value.is_null() || accounted_.contains(key)) continue;
    fail(key, "this key is not known, and might change what the model computes");
  }
}

}  // namespace zoo

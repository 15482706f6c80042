#include "interop/rules/foreign_config.h"

#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {
namespace {

std::string shown(const nlohmann::json& value) {
  constexpr size_t most = 60;
  return excerpt(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), most);
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

const nlohmann::json& ForeignConfig::at(std::string_view key) {
  if (const auto* found = find(key)) return *found;
  throw CheckpointError(fmt::format("{}: the key {} is missing", place_, key));
}

int64_t ForeignConfig::integer(std::string_view key, std::optional<int64_t> default_value) {
  if (default_value && !has(key)) return accounted_.emplace(key), *default_value;
  const auto& value = at(key);
  // An unsigned number beyond int64 is not one of any model.
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<int64_t>() < 0))
    fail(key, "expected a whole number");
  return value.get<int64_t>();
}

double ForeignConfig::number(std::string_view key, std::optional<double> default_value) {
  if (default_value && !has(key)) return accounted_.emplace(key), *default_value;
  const auto& value = at(key);
  if (!value.is_number() || !std::isfinite(value.get<double>())) fail(key, "expected a number");
  return value.get<double>();
}

bool ForeignConfig::flag(std::string_view key, std::optional<bool> default_value) {
  if (default_value && !has(key)) return accounted_.emplace(key), *default_value;
  const auto& value = at(key);
  if (!value.is_boolean()) fail(key, "expected true or false");
  return value.get<bool>();
}

std::string ForeignConfig::text(std::string_view key, std::optional<std::string> default_value) {
  if (default_value && !has(key)) return accounted_.emplace(key), *default_value;
  const auto& value = at(key);
  if (!value.is_string()) fail(key, "expected a text");
  return value.get<std::string>();
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
  const auto* value = find(key);
  if (!value) return {};
  std::vector<std::string> result;
  if (!value->is_array()) fail(key, "expected a list of texts");
  for (const auto& item : *value) {
    if (!item.is_string()) fail(key, "expected a list of texts");
    result.push_back(item.get<std::string>());
  }
  return result;
}

std::vector<int64_t> ForeignConfig::integers(std::string_view key) {
  const auto* value = find(key);
  if (!value) return {};
  std::vector<int64_t> result;
  if (!value->is_array()) fail(key, "expected a list of whole numbers");
  for (const auto& item : *value) {
    if (!item.is_number_integer()) fail(key, "expected a list of whole numbers");
    result.push_back(item.get<int64_t>());
  }
  return result;
}

std::vector<int64_t> ForeignConfig::integer_or_integers(std::string_view key) {
  const auto* value = find(key);
  if (!value) return {};
  return value->is_array() ? integers(key) : std::vector{integer(key)};
}

std::optional<ForeignConfig> ForeignConfig::object(std::string_view key) {
  const auto* value = find(key);
  if (!value) return std::nullopt;
  return ForeignConfig(fmt::format("{}: {}", place_, key), *value);
}

void ForeignConfig::ignore(std::initializer_list<std::string_view> keys) {
  for (const auto key : keys) accounted_.emplace(key);
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

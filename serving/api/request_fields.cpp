#include "serving/api/request_fields.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "io/config/whole_limits.h"
#include "io/json_document.h"
#include "serving/api/api_error.h"

namespace zoo {

std::optional<int64_t> whole_number_in(const nlohmann::ordered_json& value) {
  if (value.is_number_float()) {
    constexpr double most = 9007199254740992.0;  // 2^53: beyond it, a number stands for several whole ones
    const auto number = value.get<double>();
    if (std::trunc(number) != number || std::abs(number) > most) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  const bool is_too_large = value.is_number_unsigned() && value.get<uint64_t>() > INT64_MAX;
  if (!value.is_number_integer() || is_too_large) return std::nullopt;
  return value.get<int64_t>();
}

RequestFields::RequestFields(std::string_view body) {
  try {
    own_ = parse_ordered_json(body);
  } catch (const DataError& error) {
    throw ApiError(400, fmt::format("the body: {}", error.what()));
  }
  if (!object_->is_object()) throw ApiError(400, "the body is not a JSON object: send {\"model\": …, …}");
}

RequestFields::RequestFields(const nlohmann::ordered_json& object, std::string place)
    : place_(std::move(place) + "."), object_(&object) {
  if (!object_->is_object())
    throw ApiError(400, fmt::format("{} must be an object", place_.substr(0, place_.size() - 1)));
}

void RequestFields::fail(const std::string& key, const std::string& problem) const {
  throw ApiError(400, fmt::format("{}{} {}", place_, key, problem), place_ + key);
}

const nlohmann::ordered_json* RequestFields::find(const std::string& key) {
  known_.push_back(key);
  const auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

const nlohmann::ordered_json& RequestFields::required(const std::string& key) {
  const auto* const value = find(key);
  if (!value) fail(key, "is missing");
  return *value;
}

std::optional<std::string> RequestFields::text(const std::string& key) {
  const auto* const value = find(key);
  if (!value) return std::nullopt;
  if (!value->is_string()) fail(key, "must be a text");
  return value->get<std::string>();
}

std::string RequestFields::required_text(const std::string& key) {
  required(key);
  return *text(key);
}

std::optional<int64_t> RequestFields::integer(const std::string& key, const Limits& limits) {
  const auto* const value = find(key);
  if (!value) return std::nullopt;
  const WholeLimits whole(limits);
  const auto number = whole_number_in(*value);
  if (!number || !whole.contain(*number)) {
    fail(key, std::isfinite(limits.max)
                  ? fmt::format("must be a whole number from {} to {}", whole.min, whole.max)
              : std::isfinite(limits.min) ? fmt::format("must be a whole number of at least {}", whole.min)
                                          : "must be a whole number of 64 bits");
  }
  return number;
}

std::optional<double> RequestFields::number(const std::string& key, const Limits& limits) {
  const auto* const value = find(key);
  if (!value) return std::nullopt;
  if (!value->is_number() || !limits.contain(value->get<double>()))
    fail(key, fmt::format("must be a number {}",
                          limits.min_excluded ? fmt::format("above {} and at most {}", limits.min, limits.max)
                                              : fmt::format("from {} to {}", limits.min, limits.max)));
  return value->get<double>();
}

bool RequestFields::flag(const std::string& key, bool otherwise) {
  const auto* const value = find(key);
  if (!value) return otherwise;
  if (!value->is_boolean()) fail(key, "must be true or false");
  return value->get<bool>();
}

std::optional<std::vector<std::string>> RequestFields::texts(const std::string& key, size_t most) {
  const auto* const value = find(key);
  if (!value) return std::nullopt;
  if (value->is_string()) return std::vector<std::string>{value->get<std::string>()};
  const bool are_texts =
      value->is_array() && std::ranges::all_of(*value, [](const auto& entry) { return entry.is_string(); });
  if (!are_texts) fail(key, "must be a text or a list of texts");
  if (value->size() > most) fail(key, fmt::format("has {} texts, and may have {}", value->size(), most));
  return value->get<std::vector<std::string>>();
}

void RequestFields::ignore(std::initializer_list<const char*> keys) {
  known_.insert(known_.end(), keys.begin(), keys.end());
}

void RequestFields::refuse_others() const {
  for (const auto& [key, value] : object_->items()) {
    if (std::ranges::find(known_, key) != known_.end()) continue;
    const auto near = nearest(key, known_);
    throw ApiError(400,
                   fmt::format("{}{} is not known here{}", place_, excerpt(key),
                               near ? fmt::format(": is {} meant?", *near) : ""),
                   place_ + excerpt(key));
  }
}

}  // namespace zoo

#pragma once
// The keys of a request's JSON object, with their types and ranges.

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/config/describe.h"

namespace zoo {

/// A whole number of 64 bits, which a client may also write as 3.0; nothing for another value.
std::optional<int64_t> whole_number_in(const nlohmann::ordered_json& value);

/// Every function throws ApiError (400) for a value of another type or range. A key whose value is null
/// counts as absent.
class RequestFields {
 public:
  /// Throws ApiError if the body is not a JSON object, or beyond JsonLimits.
  explicit RequestFields(std::string_view body);
  /// An object within a request, to which this one refers; `place` is its key.
  RequestFields(const nlohmann::ordered_json& object, std::string place);
  RequestFields(const RequestFields&) = delete;
  RequestFields& operator=(const RequestFields&) = delete;

  /// The value, or null if there is none.
  const nlohmann::ordered_json* find(const std::string& key);
  /// The value; ApiError if there is none.
  const nlohmann::ordered_json& required(const std::string& key);
  std::string required_text(const std::string& key);
  std::optional<std::string> text(const std::string& key);
  std::optional<int64_t> integer(const std::string& key, const Limits& limits);
  std::optional<double> number(const std::string& key, const Limits& limits);
  bool flag(const std::string& key, bool otherwise);
  /// A list of at most `most` texts, or one text.
  std::optional<std::vector<std::string>> texts(const std::string& key, size_t most);

  /// Keys that have no effect here.
  void ignore(std::initializer_list<const char*> keys);
  /// Throws ApiError for a key that nobody has asked for.
  void refuse_others() const;

  /// What stands before each key in messages: "response_format.", "" for the request itself.
  const std::string& place() const { return place_; }
  /// The error for a value of this object.
  [[noreturn]] void fail(const std::string& key, const std::string& problem) const;

 private:
  std::string place_;
  nlohmann::ordered_json own_;
  const nlohmann::ordered_json* object_ = &own_;
  std::vector<std::string> known_;
};

}  // namespace zoo

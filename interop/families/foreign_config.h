#pragma once
// config.json of a directory in Hugging Face's form. Nothing in it is skipped silently: a key is read, or
// does not change what the model computes, or must have the one value that is supported.

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace zoo {

class ForeignConfig {
 public:
  /// `place` stands at the beginning of every message: the path of the file, and within it the key of an
  /// object. Throws CheckpointError if `json` is not an object.
  ForeignConfig(std::string place, nlohmann::json json);

  /// The value of a key. Without a default the key must be there. Throws CheckpointError if it is missing,
  /// null, or of another type or range.
  int64_t integer(std::string_view key, std::optional<int64_t> default_value = std::nullopt);
  double number(std::string_view key, std::optional<double> default_value = std::nullopt);
  bool flag(std::string_view key, std::optional<bool> default_value = std::nullopt);
  std::string text(std::string_view key, std::optional<std::string> default_value = std::nullopt);
  /// The same, nothing if the key is missing or null.
  std::optional<int64_t> optional_integer(std::string_view key);
  std::optional<double> optional_number(std::string_view key);
  std::optional<std::string> optional_text(std::string_view key);
  /// A list, empty if the key is missing or null.
  std::vector<std::string> texts(std::string_view key);
  std::vector<int64_t> integers(std::string_view key);
  std::vector<double> numbers(std::string_view key);
  /// A number or a list of numbers; empty if the key is missing or null.
  std::vector<int64_t> integer_or_integers(std::string_view key);
  std::vector<double> number_or_numbers(std::string_view key);
  /// An object, nothing if the key is missing or null. Its keys are accounted for by the result, not by this
  /// object.
  std::optional<ForeignConfig> object(std::string_view key);

  bool has(std::string_view key) const;
  /// These keys may have any value.
  void ignore(std::initializer_list<std::string_view> keys);
  /// The same for the keys that `other` accounts for, whether it has them or not.
  void ignore_keys_of(const ForeignConfig& other);
  /// A key must have this value if it is there and not null; another one is not supported.
  void require(std::string_view key, const nlohmann::json& value);
  /// Throws CheckpointError for the first key that was neither read, ignored nor required, unless its value
  /// is null.
  void finish() const;

  /// Throws CheckpointError: "PLACE: KEY is VALUE: problem".
  [[noreturn]] void fail(std::string_view key, std::string_view problem) const;

  const nlohmann::json& json() const { return json_; }
  const std::string& place() const { return place_; }

 private:
  const nlohmann::json* find(std::string_view key);
  /// The value of a key if it fits; `expected` says what would.
  template <class T>
  T value(std::string_view key, const std::optional<T>& default_value, bool (*fits)(const nlohmann::json&),
          std::string_view expected);
  template <class T>
  std::vector<T> list(std::string_view key, bool (*fits)(const nlohmann::json&), std::string_view expected);

  std::string place_;
  nlohmann::json json_;
  std::set<std::string, std::less<>> accounted_;
};

}  // namespace zoo

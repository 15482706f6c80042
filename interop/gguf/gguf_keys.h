#pragma once
// The keys of a GGUF file, read with their types.

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace zoo {

/// Every message names the file and the key.
class GgufKeys {
 public:
  /// `keys` must outlive it.
  GgufKeys(std::string place, const nlohmann::json& keys) : place_(std::move(place)), keys_(keys) {}

  bool has(const std::string& key) const { return keys_.contains(key); }
  /// The keys that begin so.
  std::vector<std::string> names(std::string_view prefix) const;
  // Throw CheckpointError: the key is missing, has another type, or a text is not UTF-8.
  int64_t integer(const std::string& key) const;
  double number(const std::string& key) const;
  std::string text(const std::string& key) const;
  std::vector<std::string> texts(const std::string& key) const;
  std::vector<int64_t> integers(const std::string& key) const;
  std::vector<double> numbers(const std::string& key) const;
  /// A list of numbers of one byte each, with or without a sign.
  std::string bytes(const std::string& key) const;
  // The same with a default.
  int64_t integer(const std::string& key, int64_t otherwise) const;
  double number(const std::string& key, double otherwise) const;
  std::string text(const std::string& key, const std::string& otherwise) const;
  bool flag(const std::string& key, bool otherwise) const;

  [[noreturn]] void fail(std::string_view key, std::string_view problem) const;

 private:
  const nlohmann::json& value(const std::string& key) const;
  const std::string& checked_text(const std::string& key, const std::string& text) const;
  /// The elements of a list, each by `take`; `fits` says whether it has the type.
  template <class Element, class Fits, class Take>
  std::vector<Element> list(const std::string& key, std::string_view problem, const Fits& fits,
                            const Take& take) const;

  std::string place_;
  const nlohmann::json& keys_;
};

}  // namespace zoo

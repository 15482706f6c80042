#pragma once
// The keys of a GGUF file, read with their types.

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "io/formats/gguf_writer.h"

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

  /// Throws CheckpointError for the first key that begins so, that nobody has asked for, and that is not
  /// known to change nothing.
  void finish(const std::string& prefix) const;
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
  mutable std::set<std::string> accounted_;
};

/// Adds keys of one architecture to those of a file.
class GgufKeyWriter {
 public:
  GgufKeyWriter(const std::string& architecture, GgufMetadata& keys)
      : prefix_(architecture + "."), keys_(keys) {}
  void integer(std::string_view key, int64_t value) const {
    keys_.emplace_back(name(key), static_cast<uint32_t>(value));
  }
  /// A key that belongs to no architecture.
  void shared_integer(const std::string& key, int64_t value) const {
    keys_.emplace_back(key, static_cast<uint32_t>(value));
  }
  void number(std::string_view key, double value) const {
    keys_.emplace_back(name(key), static_cast<float>(value));
  }
  void flag(std::string_view key, bool value) const { keys_.emplace_back(name(key), value); }
  void text(std::string_view key, const std::string& value) const { keys_.emplace_back(name(key), value); }

 private:
  std::string name(std::string_view key) const { return prefix_ + std::string(key); }

  std::string prefix_;
  GgufMetadata& keys_;
};

}  // namespace zoo

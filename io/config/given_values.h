#pragma once
// Values of keys that somebody has given on the command line or in a request, to be put over those of a
// configuration.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "io/config/describe.h"

namespace zoo {

/// The value of a key, in the type that the key has; of a named enumeration the number of the name.
using GivenValue = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>, std::vector<double>,
                                std::vector<std::string>>;

class GivenValues {
 public:
  void set(std::string_view key, GivenValue value) {
    values_.insert_or_assign(std::string(key), std::move(value));
  }
  bool has(std::string_view key) const { return values_.contains(key); }

  /// Puts the values over those of a struct with a describe(). Keys are those of the struct itself.
  template <class Struct>
  void apply(Struct& config) const {
    const auto visitor = assigner(std::nullopt);
    describe(*visitor, config);
  }
  /// The same for one key only.
  template <class Struct>
  void apply_one(std::string_view key, Struct& config) const {
    const auto visitor = assigner(key);
    describe(*visitor, config);
  }

 private:
  std::unique_ptr<ConfigVisitor> assigner(std::optional<std::string_view> key) const;

  std::map<std::string, GivenValue, std::less<>> values_;
};

}  // namespace zoo

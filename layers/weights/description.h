#pragma once
// The line that a printed module shows: "FeedForward(d_model=512, d_ff=2048, activation=gelu)".

#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/named_enum.h"

namespace zoo {

/// The type of a module and the values that it was constructed with.
class Description {
 public:
  explicit Description(std::string_view type) : text_(fmt::format("{}(", type)) {}

  /// Adds "key=value". An absent optional adds nothing.
  template <class T>
  Description& add(std::string_view key, const T& value) {
    text_ += fmt::format("{}{}=", text_.ends_with('(') ? "" : ", ", key);
    if constexpr (NamedEnum<T>) {
      text_ += name_of(value);
    } else {
      text_ += fmt::format("{}", value);
    }
    return *this;
  }
  template <class T>
  Description& add(std::string_view key, const std::optional<T>& value) {
    return value ? add(key, *value) : *this;
  }

  friend std::ostream& operator<<(std::ostream& stream, const Description& description) {
    return stream << description.text_ << ')';
  }

 private:
  std::string text_;
};

}  // namespace zoo

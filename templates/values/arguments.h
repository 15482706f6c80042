#pragma once
// Arguments of functions, filters and methods by the names of their parameters.

#include <initializer_list>
#include <string_view>
#include <vector>

#include "templates/values/value.h"

namespace zoo::templates {

class Bound {
 public:
  /// The first `n_required` parameters must be given. Throws Problem for other arguments than the parameters.
  /// Does not own the arguments.
  Bound(std::string_view function, const Arguments& arguments, std::initializer_list<std::string_view> names,
        size_t n_required = 0);

  /// Null if it is not given.
  const Value* find(size_t parameter) const { return values_[parameter]; }
  const Value& at(size_t parameter) const { return *values_[parameter]; }
  /// These throw Problem for a value of another type.
  const std::string& text(size_t parameter) const;
  const std::string* text_or_none(size_t parameter) const;
  int64_t integer(size_t parameter, int64_t otherwise) const;
  /// By Python's truth of values.
  bool flag(size_t parameter, bool otherwise = false) const;

 private:
  [[noreturn]] void refuse(size_t parameter, std::string_view expected) const;

  std::string_view function_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

}  // namespace zoo::templates

#include "io/config/given_values.h"

#include <utility>

namespace zoo {
namespace {

using Values = std::map<std::string, GivenValue, std::less<>>;

class Assigner final : public SilentVisitor {
 public:
  /// Assigns the values of all keys, or of `only`.
  Assigner(const Values& values, std::optional<std::string_view> only) : values_(values), only_(only) {}

 protected:
  void leaf(const FieldInfo& field, bool& value) override { assign(field, value); }
  void leaf(const FieldInfo& field, int64_t& value) override { assign(field, value); }
  void leaf(const FieldInfo& field, double& value) override { assign(field, value); }
  void leaf(const FieldInfo& field, std::string& value) override { assign(field, value); }
  void leaf(const FieldInfo& field, std::vector<int64_t>& value) override { assign(field, value); }
  void leaf(const FieldInfo& field, std::vector<double>& value) override { assign(field, value); }
  void leaf(const FieldInfo& field, std::vector<std::string>& value) override { assign(field, value); }
  void choice(const FieldInfo& field, std::span<const std::string_view>, size_t& index) override {
    auto number = static_cast<int64_t>(index);
    assign(field, number);
    index = static_cast<size_t>(number);
  }
  bool begin_group(const FieldInfo&) override { return false; }
  bool begin_optional(const FieldInfo& field, bool has_value) override {
    return has_value || is_given(field);
  }

 private:
  bool is_given(const FieldInfo& field) const {
    return values_.contains(field.key) && (!only_ || *only_ == field.key);
  }

  template <class T>
  void assign(const FieldInfo& field, T& value) const {
    if (is_given(field)) value = std::get<T>(values_.find(field.key)->second);
  }

  const Values& values_;
  std::optional<std::string_view> only_;
};

}  // namespace

std::unique_ptr<ConfigVisitor> GivenValues::assigner(std::optional<std::string_view> key) const {
  return std::make_unique<Assigner>(values_, key);
}

}  // namespace zoo

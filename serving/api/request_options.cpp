#include "serving/api/request_options.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "generation/generation_config.h"
#include "io/config/whole_limits.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostTexts = 16, kMostTextBytes = 1000, kMostNumbers = 1000;

/// Visits the keys that are options of a request, with the server's own limits where these are narrower.
class RequestVisitor : public SilentVisitor {
 public:
  explicit RequestVisitor(const ApiLimits& limits) : limits_(limits) {}

 protected:
  static std::string name_of(const FieldInfo& field) {
    return std::string(field.name_in(&Elsewhere::request));
  }
  Limits limits_of(const FieldInfo& field) const {
    auto limits = field.limits;
    const auto cap = [&](int64_t most) { limits.max = std::min(limits.max, static_cast<double>(most)); };
    if (field.key == "num_samples") cap(limits_.most_outputs);
    if (field.key == "min_new_tokens") cap(limits_.most_tokens);
    return limits;
  }
  bool begin_group(const FieldInfo&) override { return false; }
  bool begin_optional(const FieldInfo&, bool) override { return true; }

 private:
  ApiLimits limits_;
};

class RequestReader final : public RequestVisitor {
 public:
  RequestReader(RequestFields& fields, const ApiLimits& limits) : RequestVisitor(limits), fields_(fields) {}

  GivenValues given;

 protected:
  void leaf(const FieldInfo& field, bool&) override {
    const auto name = name_of(field);
    if (!name.empty() && fields_.find(name)) given.set(field.key, fields_.flag(name, false));
  }
  void leaf(const FieldInfo& field, int64_t&) override {
    take(field, [&](const std::string& name) { return fields_.integer(name, limits_of(field)); });
  }
  void leaf(const FieldInfo& field, double&) override {
    take(field, [&](const std::string& name) { return fields_.number(name, limits_of(field)); });
  }
  void leaf(const FieldInfo& field, std::string&) override {
    take(field, [&](const std::string& name) { return fields_.text(name); });
  }
  void leaf(const FieldInfo& field, std::vector<int64_t>&) override {
    take(field, [&](const std::string& name) { return numbers<int64_t>(name); });
  }
  void leaf(const FieldInfo& field, std::vector<double>&) override {
    take(field, [&](const std::string& name) { return numbers<double>(name); });
  }
  void leaf(const FieldInfo& field, std::vector<std::string>&) override {
    take(field, [&](const std::string& name) {
      auto texts = fields_.texts(name, kMostTexts);
      for (const auto& text : texts.value_or(std::vector<std::string>())) {
        if (text.empty() || text.size() > kMostTextBytes)
          fields_.fail(name, fmt::format("must have texts of 1 to {} bytes", kMostTextBytes));
      }
      return texts;
    });
  }
  void choice(const FieldInfo& field, std::span<const std::string_view> names, size_t&) override {
    const auto name = name_of(field);
    const auto text = name.empty() ? std::nullopt : fields_.text(name);
    if (!text) return;
    const auto found = std::ranges::find(names, *text);
    if (found == names.end()) fields_.fail(name, "is not one of its values");
    given.set(field.key, static_cast<int64_t>(found - names.begin()));
  }

 private:
  template <class Read>
  void take(const FieldInfo& field, const Read& read) {
    const auto name = name_of(field);
    if (name.empty()) return;
    if (auto value = read(name)) given.set(field.key, std::move(*value));
  }

  template <class Number>
  std::optional<std::vector<Number>> numbers(const std::string& name) {
    const auto* const list = fields_.find(name);
    if (!list) return std::nullopt;
    const auto is_number = [](const Json& value) {
      return std::is_same_v<Number, double> ? value.is_number() : whole_number_in(value).has_value();
    };
    if (!list->is_array() || list->size() > kMostNumbers || !std::ranges::all_of(*list, is_number))
      fields_.fail(name, fmt::format("must be a list of at most {} {}numbers", kMostNumbers,
                                     std::is_same_v<Number, double> ? "" : "whole "));
    return list->get<std::vector<Number>>();
  }

  RequestFields& fields_;
};

class SchemaWriter final : public RequestVisitor {
 public:
  using RequestVisitor::RequestVisitor;

  Json properties = Json::object();

 protected:
  void leaf(const FieldInfo& field, bool&) override { add(field, {{"type", "boolean"}}); }
  void leaf(const FieldInfo& field, int64_t&) override {
    const WholeLimits limits(limits_of(field));
    add(field, {{"type", "integer"}, {"minimum", limits.min}, {"maximum", limits.max}});
  }
  void leaf(const FieldInfo& field, double&) override { add(field, number(limits_of(field))); }
  void leaf(const FieldInfo& field, std::string&) override { add(field, {{"type", "string"}}); }
  void leaf(const FieldInfo& field, std::vector<int64_t>&) override {
    add(field, list({{"type", "integer"}}));
  }
  void leaf(const FieldInfo& field, std::vector<double>&) override { add(field, list({{"type", "number"}})); }
  void leaf(const FieldInfo& field, std::vector<std::string>&) override {
    // A character has up to four bytes.
    const Json text{{"type", "string"}, {"minLength", 1}, {"maxLength", kMostTextBytes / 4}};
    Json texts{{"type", "array"}, {"items", text}, {"minItems", 0}, {"maxItems", kMostTexts}};
    add(field, {{"anyOf", {text, std::move(texts)}}});
  }
  void choice(const FieldInfo& field, std::span<const std::string_view> names, size_t&) override {
    add(field, {{"type", "string"}, {"enum", std::vector<std::string_view>(names.begin(), names.end())}});
  }

 private:
  static Json list(Json items) {
    return {{"type", "array"}, {"items", std::move(items)}, {"maxItems", kMostNumbers}};
  }

  static Json number(const Limits& limits) {
    Json schema{{"type", "number"}};
    if (std::isfinite(limits.min)) schema[limits.min_excluded ? "exclusiveMinimum" : "minimum"] = limits.min;
    if (std::isfinite(limits.max)) schema["maximum"] = limits.max;
    return schema;
  }

  void add(const FieldInfo& field, Json schema) {
    const auto name = name_of(field);
    if (name.empty()) return;
    properties[name] = {{"anyOf", {std::move(schema), {{"type", "null"}}}}, {"description", field.doc}};
  }
};

}  // namespace

GivenValues read_generation_options(RequestFields& fields, const ApiLimits& limits) {
  RequestReader reader(fields, limits);
  GenerationConfig config;
  describe(reader, config);
  return std::move(reader.given);
}

Json schemas_of_generation_options(const ApiLimits& limits) {
  SchemaWriter writer(limits);
  GenerationConfig config;
  describe(writer, config);
  return std::move(writer.properties);
}

}  // namespace zoo

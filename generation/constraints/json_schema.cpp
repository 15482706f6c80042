#include "generation/constraints/json_schema.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "generation/constraints/json_reference.h"
#include "generation/constraints/json_strings.h"
#include "generation/constraints/json_values.h"
#include "generation/constraints/regular_expression.h"
#include "io/json_document.h"

namespace zoo {
namespace {

using Schema = nlohmann::ordered_json;
using Texts = std::vector<std::string>;

constexpr size_t kMostSchemaBytes = size_t{256} << 10;
constexpr size_t kMostParts = 200'000;  // of the expression
constexpr int64_t kMostLength = 10'000;
constexpr size_t kMostNameBytes = 1000;  // that other names must differ from
constexpr auto kTypes =
    std::to_array<std::string_view>({"object", "array", "string", "integer", "number", "boolean", "null"});
constexpr auto kAnnotations =
    std::to_array<std::string_view>({"title", "description", "default", "examples", "deprecated", "readOnly",
                                     "writeOnly", "$schema", "$id", "$comment", "$defs", "definitions"});
constexpr auto kKeywords = std::to_array<std::string_view>({"type",
                                                            "enum",
                                                            "const",
                                                            "anyOf",
                                                            "oneOf",
                                                            "allOf",
                                                            "$ref",
                                                            "properties",
                                                            "required",
                                                            "additionalProperties",
                                                            "items",
                                                            "minItems",
                                                            "maxItems",
                                                            "minLength",
                                                            "maxLength",
                                                            "pattern",
                                                            "format",
                                                            "minimum",
                                                            "maximum",
                                                            "exclusiveMinimum",
                                                            "exclusiveMaximum"});

template <class List>
bool has(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != std::ranges::end(list);
}

/// A place in a schema, as a JSON pointer.
struct Place {
  std::string path;

  Place of(std::string_view key) const {
    std::string token;
    for (const char c : excerpt(key, 40)) token += c == '~' ? "~0" : c == '/' ? "~1" : std::string(1, c);
    return {path + "/" + token};
  }
  Place of(size_t index) const { return {fmt::format("{}/{}", path, index)}; }
  [[noreturn]] void fail(const std::string& problem) const {
    throw DataError(fmt::format("{}: {}", path.empty() ? "/" : path, problem));
  }
};

// ---- values

/// As json.dumps of Python writes it, but with characters beyond ASCII as they are.
std::string written(const Schema& value) {
  std::string text;
  if (value.is_object()) {
    for (const auto& [key, member] : value.items())
      text += (text.empty() ? "" : ", ") + json_text(Schema(key)) + ": " + written(member);
    return "{" + text + "}";
  }
  if (value.is_array()) {
    for (const auto& member : value) text += (text.empty() ? "" : ", ") + written(member);
    return "[" + text + "]";
  }
  return json_text(value);
}

/// The type of a value; "integer" for a number without a fraction.
std::string_view type_of(const Schema& value) {
  if (value.is_object()) return "object";
  if (value.is_array()) return "array";
  if (value.is_string()) return "string";
  if (value.is_boolean()) return "boolean";
  if (value.is_null()) return "null";
  if (!value.is_number_float()) return "integer";
  const auto number = value.get<double>();
  return number == static_cast<double>(static_cast<int64_t>(std::clamp(number, -1e15, 1e15))) ? "integer"
                                                                                              : "number";
}

bool is_of(const Schema& value, const Texts& types) {
  const auto type = type_of(value);
  return has(types, type) || (type == "integer" && has(types, "number"));
}

size_t n_parts(const Expression& expression) {
  size_t n = 1;
  for (const auto& part : expression.parts) n += n_parts(part);
  return n;
}

// ---- schemas

class SchemaReader {
 public:
  explicit SchemaReader(const Schema& root) : root_(root) {}

  Expression read(const Schema& schema, const Place& at) {
    check_keywords(schema, at);
    auto result = read_checked(schema, at);
    count(n_parts(result), at);
    return result;
  }

 private:
  /// Fails if the expression, or the values that were compared, become too many.
  void count(size_t n, const Place& at) {
    n_parts_ += n;
    if (n_parts_ > kMostParts) at.fail("the schema is too large: it has too many values or repeated parts");
  }

  static void check_keywords(const Schema& schema, const Place& at) {
    if (!schema.is_object()) at.fail("a schema is an object here, not true, false or another value");
    for (const auto& [key, value] : schema.items()) {
      if (!has(kKeywords, key) && !has(kAnnotations, key))
        at.fail(fmt::format("the keyword '{}' is not supported: leave it out", excerpt(key, 40)));
    }
  }

  /// Fails if a schema has keywords, beside annotations, that `keyword` does not allow beside it.
  static void stands_alone(const Schema& schema, std::string_view keyword,
                           std::span<const std::string_view> with, const Place& at) {
    for (const auto& [key, value] : schema.items()) {
      const bool says_nothing = key == "additionalProperties" && !has_more(schema);
      if (key != keyword && has(kKeywords, key) && !has(with, key) && !says_nothing)
        at.fail(fmt::format("'{}' beside '{}' is not supported", key, keyword));
    }
  }

  Expression read_checked(const Schema& schema, const Place& at) {
    constexpr auto beside_values = std::to_array<std::string_view>({"type", "enum", "const"});
    if (schema.contains("$ref")) {
      stands_alone(schema, "$ref", {}, at);
      return read_reference(schema["$ref"], at.of("$ref"));
    }
    for (const std::string_view keyword : {"anyOf", "oneOf", "allOf"}) {
      if (!schema.contains(keyword)) continue;
      stands_alone(schema, keyword, {}, at);
      return read_alternatives(schema[keyword], keyword, at.of(keyword));
    }
    if (schema.contains("enum") || schema.contains("const")) {
      stands_alone(schema, schema.contains("enum") ? "enum" : "const", beside_values, at);
      std::vector<Expression> texts;
      for (const auto& value : values(schema, at)) {
        const auto text = written(value);
        count(text.size(), at);
        texts.push_back(Expression::text(text));
      }
      if (texts.empty()) at.fail("no value is of the type that is asked for");
      return Expression::alternatives(std::move(texts));
    }
    std::vector<Expression> ways;
    for (const auto& type : types(schema, at)) ways.push_back(read_type(schema, type, at));
    return Expression::alternatives(std::move(ways));
  }

  /// The values of enum or const that the type allows.
  static std::vector<Schema> values(const Schema& schema, const Place& at) {
    std::vector<Schema> result;
    if (schema.contains("enum")) {
      if (!schema["enum"].is_array()) at.of("enum").fail("must be a list");
      for (const auto& value : schema["enum"]) result.push_back(value);
    }
    if (schema.contains("const")) {
      const auto& only = schema["const"];
      if (schema.contains("enum")) {
        std::erase_if(result, [&](const Schema& value) { return value != only; });
      } else {
        result.push_back(only);
      }
    }
    if (schema.contains("type")) {
      const auto allowed = types(schema, at);
      std::erase_if(result, [&](const Schema& value) { return !is_of(value, allowed); });
    }
    return result;
  }

  /// The types that a schema names, or else the one to which its keywords belong.
  static Texts types(const Schema& schema, const Place& at) {
    Texts result;
    const auto add = [&](const Schema& name) {
      if (!name.is_string() || !has(kTypes, name.get<std::string>()))
        at.of("type").fail(fmt::format("must be one of {}, or a list of them", fmt::join(kTypes, ", ")));
      if (has(result, name.get<std::string>())) at.of("type").fail("has a type twice");
      result.push_back(name.get<std::string>());
    };
    if (schema.contains("type")) {
      const auto& type = schema["type"];
      if (!type.is_array()) {
        add(type);
      } else {
        std::ranges::for_each(type, add);
      }
    } else if (schema.contains("properties") || schema.contains("required") || has_more(schema)) {
      result = {"object"};
    } else if (schema.contains("items")) {
      result = {"array"};
    } else if (schema.contains("pattern") || schema.contains("minLength") || schema.contains("maxLength") ||
               schema.contains("format")) {
      result = {"string"};
    } else if (schema.contains("minimum") || schema.contains("maximum") ||
               schema.contains("exclusiveMinimum") || schema.contains("exclusiveMaximum")) {
      result = {"number"};
    }
    if (result.empty()) at.fail("any value is not supported: add a type");
    return result;
  }

  Expression read_type(const Schema& schema, std::string_view type, const Place& at) {
    if (type == "object") return read_object(schema, at);
    if (type == "array") return read_array(schema, at);
    if (type == "string") return read_string(schema, at);
    if (type == "integer") return json_integer(number_bounds(schema, type, at));
    if (type == "number") return json_number(number_bounds(schema, type, at));
    if (type == "null") return Expression::text("null");
    return Expression::alternatives({Expression::text("true"), Expression::text("false")});
  }

  static Texts required(const Schema& schema, const Place& at) {
    Texts names;
    if (!schema.contains("required")) return names;
    if (!schema["required"].is_array()) at.of("required").fail("must be a list of names");
    if (schema["required"].size() > JsonLimits::ordered_members) at.of("required").fail("has too many names");
    for (const auto& name : schema["required"]) {
      if (!name.is_string()) at.of("required").fail("must be a list of names");
      names.push_back(name.get<std::string>());
      if (!schema.contains("properties") || !schema["properties"].contains(names.back()))
        at.of("required").fail(fmt::format("'{}' is not one of the properties", excerpt(names.back(), 40)));
    }
    return names;
  }

  /// Whether an object has members beside its properties. Without a schema for them they are left out, which
  /// every other value of the keyword allows.
  static bool has_more(const Schema& schema) {
    const auto found = schema.find("additionalProperties");
    return found != schema.end() && found->is_object() && !found->empty();
  }

  /// Any number of members beside the properties, each after ", ".
  std::pair<Expression, Expression> more_members(const Schema& schema, const Place& at) {
    Texts names;
    if (schema.contains("properties")) {
      for (const auto& [name, value] : schema["properties"].items()) {
        if (name.size() > kMostNameBytes)
          at.of("properties").fail(fmt::format("has a name of more than {} bytes", kMostNameBytes));
        names.push_back(name);
      }
    }
    auto member =
        Expression::sequence({Expression::text("\""), other_json_names(names), Expression::text("\": "),
                              read(schema["additionalProperties"], at.of("additionalProperties"))});
    auto others =
        Expression::repeated(Expression::sequence({Expression::text(", "), member}), 0, Expression::kNoLimit);
    return {Expression::sequence({std::move(member), others}), std::move(others)};
  }

  /// Those that are required, and any of the others, in their order; then those beside the properties.
  Expression read_object(const Schema& schema, const Place& at) {
    if (schema.contains("properties") && !schema["properties"].is_object())
      at.of("properties").fail("must be an object");
    const auto needed = required(schema, at);
    std::vector<std::pair<Expression, bool>> members;  // and whether each is required
    if (schema.contains("properties")) {
      for (const auto& [name, value] : schema["properties"].items()) {
        const auto key = Expression::text(json_text(Schema(name)) + ": ");
        members.emplace_back(Expression::sequence({key, read(value, at.of("properties").of(name))}),
                             has(needed, name));
      }
    }
    // From the back: `later` are the members that follow others, `first` all that the object can have.
    Expression later, first;
    if (has_more(schema)) {
      auto [all, others] = more_members(schema, at);
      first = Expression::optional(std::move(all));
      later = std::move(others);
    }
    for (size_t i = members.size(); i-- > 0;) {
      auto& [member, is_required] = members[i];
      auto begins = Expression::sequence({member, later});
      first =
          is_required ? std::move(begins) : Expression::alternatives({std::move(begins), std::move(first)});
      auto follows = Expression::sequence({Expression::text(", "), std::move(member)});
      if (!is_required) follows = Expression::optional(std::move(follows));
      later = Expression::sequence({std::move(follows), std::move(later)});
      if (n_parts(first) > kMostParts) at.fail("the object has too many properties that may be left out");
    }
    return Expression::sequence({Expression::text("{"), std::move(first), Expression::text("}")});
  }

  /// A bound such as minItems.
  static std::optional<int64_t> bound(const Schema& schema, const char* keyword, const Place& at) {
    if (!schema.contains(keyword)) return std::nullopt;
    const auto& value = schema[keyword];
    if (!value.is_number_integer() || value.get<int64_t>() < 0 || value.get<int64_t>() > kMostLength)
      at.of(keyword).fail(fmt::format("must be a whole number from 0 to {}", kMostLength));
    return value.get<int64_t>();
  }

  struct Bounds {
    int64_t least, most;
  };
  static Bounds bounds(const Schema& schema, const char* least, const char* most, const Place& at) {
    const Bounds result{bound(schema, least, at).value_or(0),
                        bound(schema, most, at).value_or(Expression::kNoLimit)};
    if (result.most != Expression::kNoLimit && result.most < result.least)
      at.fail(fmt::format("{} is more than {}", least, most));
    return result;
  }

  Expression read_array(const Schema& schema, const Place& at) {
    const auto [least, most] = bounds(schema, "minItems", "maxItems", at);
    if (most == 0) return Expression::text("[]");
    if (!schema.contains("items")) at.fail("an array of any values is not supported: add items");
    const auto item = read(schema["items"], at.of("items"));
    const auto rest =
        Expression::repeated(Expression::sequence({Expression::text(", "), item}),
                             std::max<int64_t>(0, least - 1), most == Expression::kNoLimit ? most : most - 1);
    auto items = Expression::sequence({item, rest});
    if (least == 0) items = Expression::optional(std::move(items));
    return Expression::sequence({Expression::text("["), std::move(items), Expression::text("]")});
  }

  /// The nearest whole number to a bound, towards values that are allowed; nothing if there is no such bound.
  static std::optional<NumberBound> number_bound(const Schema& schema, const char* included,
                                                 const char* excluded, std::string_view type,
                                                 const Place& at) {
    if (schema.contains(included) && schema.contains(excluded))
      at.fail(fmt::format("{} beside {} is not supported", included, excluded));
    const bool is_excluded = schema.contains(excluded);
    const char* const keyword = is_excluded ? excluded : included;
    const auto found = schema.find(keyword);
    if (found == schema.end()) return std::nullopt;
    const auto here = at.of(keyword);
    if (!found->is_number()) here.fail("must be a number");
    const auto value = found->get<double>();
    if (!(std::abs(value) < static_cast<double>(kLargestWhole))) here.fail("has more than 15 digits");
    const bool is_whole = value == std::floor(value);
    if (!is_whole && type == "number") here.fail("must be a whole number here");
    const bool is_least = std::string_view(keyword).ends_with("inimum");
    const double nearest = is_least ? std::ceil(value) : std::floor(value);
    return NumberBound{static_cast<int64_t>(nearest),
                       is_excluded && is_whole ? NumberBound::Kind::excluded : NumberBound::Kind::included};
  }

  static NumberBounds number_bounds(const Schema& schema, std::string_view type, const Place& at) {
    NumberBounds bounds{number_bound(schema, "minimum", "exclusiveMinimum", type, at),
                        number_bound(schema, "maximum", "exclusiveMaximum", type, at)};
    const auto& [least, most] = bounds;
    const auto n_out = [](const NumberBound& bound) {
      return bound.kind == NumberBound::Kind::excluded ? 1 : 0;
    };
    if (!least || !most) return bounds;
    const int64_t room = most->value - least->value - (type == "integer" ? n_out(*least) + n_out(*most) : 0);
    if (room < 0 || (room == 0 && type == "number" && n_out(*least) + n_out(*most) > 0))
      at.fail("no number is within the bounds");
    return bounds;
  }

  static Expression read_string(const Schema& schema, const Place& at) {
    const auto [least, most] = bounds(schema, "minLength", "maxLength", at);
    Expression inside;
    if (schema.contains("format")) {
      for (const char* const other : {"minLength", "maxLength", "pattern"})
        if (schema.contains(other)) at.fail(fmt::format("'{}' beside 'format' is not supported", other));
      const auto& format = schema["format"];
      const auto expression = format.is_string() ? json_format(format.get<std::string>()) : "";
      if (expression.empty())
        at.of("format").fail(fmt::format("must be one of {}", fmt::join(json_formats(), ", ")));
      const auto text = parse_regular_expression(expression);
      return Expression::sequence({Expression::text("\""), text, Expression::text("\"")});
    }
    if (schema.contains("pattern")) {
      if (schema.contains("minLength") || schema.contains("maxLength"))
        at.fail("a pattern beside minLength or maxLength is not supported: say the length in the pattern");
      const auto& pattern = schema["pattern"];
      if (!pattern.is_string()) at.of("pattern").fail("must be a text");
      try {
        inside =
            within_json_string(parse_regular_expression(pattern.get<std::string>(), Matches::part_of_text));
      } catch (const DataError& error) {
        at.of("pattern").fail(error.what());
      }
    } else {
      inside = Expression::repeated(within_json_string(Expression::one_of(CodePoints::all())), least, most);
    }
    return Expression::sequence({Expression::text("\""), std::move(inside), Expression::text("\"")});
  }

  /// The schema to which $ref leads: a JSON pointer within the document (RFC 6901) as the fragment of a URI.
  const Schema& referenced(const Schema& reference, const Place& at) const {
    if (!reference.is_string()) at.fail("must be a text");
    const auto text = reference.get<std::string>();
    const auto* const found = at_json_reference(root_, text);
    if (!found) {
      at.fail(fmt::format("'{}' leads nowhere: write a place in this schema, such as #/$defs/NAME",
                          excerpt(text, 60)));
    }
    return *found;
  }

  Expression read_reference(const Schema& reference, const Place& at) {
    const auto& schema = referenced(reference, at);
    if (!under_way_.insert(&schema).second)
      at.fail("this schema contains itself, which an automaton cannot write: unroll it");
    auto result = read(schema, at);
    under_way_.erase(&schema);
    return result;
  }

  Expression read_alternatives(const Schema& list, std::string_view keyword, const Place& at) {
    if (!list.is_array() || list.empty()) at.fail("must be a list of schemas");
    if (keyword == "allOf" && list.size() > 1) at.fail("more than one schema is not supported");
    std::vector<Expression> ways;
    for (size_t i = 0; i < list.size(); ++i) ways.push_back(read(list[i], at.of(i)));
    for (size_t i = 0; keyword == "oneOf" && i < list.size(); ++i) {
      for (size_t j = 0; j < i; ++j) {
        count(1, at);
        if (may_share_values(list[i], list[j], at))
          at.fail(fmt::format("a value may be one of both {} and {}: use anyOf", j, i));
      }
    }
    return Expression::alternatives(std::move(ways));
  }

  // ---- oneOf

  const Schema& resolved(const Schema& schema, const Place& at) const {
    return schema.contains("$ref") ? resolved(referenced(schema["$ref"], at), at) : schema;
  }

  /// The values of a schema that lists them.
  std::optional<std::vector<Schema>> listed(const Schema& schema, const Place& at) const {
    const auto& found = resolved(schema, at);
    if (!found.contains("enum") && !found.contains("const")) return std::nullopt;
    return values(found, at);
  }

  /// Whether both list values, and have none in common.
  bool list_different_values(const Schema& a, const Schema& b, const Place& at) {
    const auto first = listed(a, at), second = listed(b, at);
    if (!first || !second) return false;
    count(first->size() * second->size(), at);
    return std::ranges::none_of(*first, [&](const Schema& value) { return has_value(*second, value); });
  }
  static bool has_value(const std::vector<Schema>& list, const Schema& value) {
    return std::ranges::find(list, value) != list.end();
  }

  /// The types of a schema; nothing if they are not known at once.
  std::optional<Texts> known_types(const Schema& schema, const Place& at) const {
    if (schema.contains("anyOf") || schema.contains("oneOf") || schema.contains("allOf")) return std::nullopt;
    if (schema.contains("type")) return types(schema, at);
    const auto all = listed(schema, at);
    if (!all) return std::nullopt;  // keywords without a type also allow every value of another type
    Texts result;
    for (const auto& value : *all) result.emplace_back(type_of(value));
    return result;
  }

  /// Whether a value may be one of both schemas. The answer may be yes if it cannot be.
  bool may_share_values(const Schema& first, const Schema& second, const Place& at) {
    const auto &a = resolved(first, at), &b = resolved(second, at);
    if (list_different_values(a, b, at)) return false;
    const auto types_a = known_types(a, at), types_b = known_types(b, at);
    if (!types_a || !types_b) return true;
    const auto is_number = [](std::string_view type) { return type == "integer" || type == "number"; };
    const auto is_shared = [&](std::string_view type) {
      return has(*types_b, type) || (is_number(type) && std::ranges::any_of(*types_b, is_number));
    };
    if (std::ranges::none_of(*types_a, is_shared)) return false;
    const Texts object = {"object"};
    if (*types_a != object || *types_b != object) return true;
    // A property that both need, with different values, tells objects apart.
    const auto needed_a = required(a, at), needed_b = required(b, at);
    return std::ranges::none_of(needed_a, [&](const std::string& name) {
      return has(needed_b, name) && list_different_values(a["properties"][name], b["properties"][name], at);
    });
  }

  const Schema& root_;
  std::set<const Schema*> under_way_;  // those that $ref is reading
  size_t n_parts_ = 0;
};

}  // namespace

Expression parse_json_schema(std::string_view schema) {
  if (schema.size() > kMostSchemaBytes)
    throw DataError(fmt::format("the schema has more than {} bytes: shorten it", kMostSchemaBytes));
  const auto document = parse_ordered_json(schema);
  return SchemaReader(document).read(document, {});
}

}  // namespace zoo

#include "apps/console/config_options.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <span>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/console/options.h"
#include "apps/console/token_ids.h"
#include "io/config/whole_limits.h"

namespace zoo {
namespace {

template <class Number>
Number to_number(std::string_view text) {
  Number value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// Accepts numbers that are joined by commas, each of which `one` accepts.
CLI::Validator list_of(const CLI::Validator& one) {
  return {[one](std::string& text) -> std::string {
            for (auto& part : parts_at_commas(text)) {
              if (auto problem = one(part); !problem.empty()) return problem;
            }
            return {};
          },
          ""};
}

class OptionAdder final : public SilentVisitor {
 public:
  OptionAdder(CLI::App& command, ConfigOptions& options) : command_(command), options_(options) {}

 protected:
  void leaf(const FieldInfo& field, bool&) override {
    const auto flag = flag_of(field);
    if (flag.empty()) return;
    command_.add_flag_callback(
        flag, [&options = options_, key = std::string(field.key)] { options.given.set(key, true); },
        std::string(field.doc));
  }
  void leaf(const FieldInfo& field, int64_t&) override {
    const WholeLimits limits(field.limits);
    add(field, to_number<int64_t>, whole_number(limits.min, limits.max));
  }
  void leaf(const FieldInfo& field, double&) override { add(field, to_number<double>, number()); }
  void leaf(const FieldInfo& field, std::string&) override {
    add(field, [](const std::string& text) { return text; }, {});
  }
  void leaf(const FieldInfo& field, std::vector<int64_t>&) override {
    add(field, to_numbers<int64_t>, list_of(whole_number()));
  }
  void leaf(const FieldInfo& field, std::vector<double>&) override {
    add(field, to_numbers<double>, list_of(number()));
  }
  void leaf(const FieldInfo& field, std::vector<std::string>&) override {
    const auto flag = flag_of(field);
    if (flag.empty()) return;
    command_
        .add_option(
            flag,
            [&options = options_, key = std::string(field.key)](const CLI::results_t& texts) {
              options.given.set(key, std::vector<std::string>(texts));
              return true;
            },
            std::string(field.doc) + " May be repeated.")
        ->option_text(std::string(field.elsewhere.value))
        ->expected(1, CLI::detail::expected_max_vector_size)
        ->allow_extra_args(false);
  }
  void choice(const FieldInfo& field, std::span<const std::string_view> names, size_t&) override {
    const std::vector<std::string_view> all(names.begin(), names.end());
    const auto index_of = [all](const std::string& text) {
      return static_cast<int64_t>(std::ranges::find(all, text) - all.begin());
    };
    add(field, index_of,
        {[all](const std::string& text) -> std::string {
           if (std::ranges::find(all, text) != all.end()) return {};
           return fmt::format("'{}' is not one of {}", text, fmt::join(all, ", "));
         },
         ""});
  }
  bool begin_group(const FieldInfo&) override { return false; }
  bool begin_optional(const FieldInfo&, bool) override { return true; }

 private:
  template <class Number>
  static std::vector<Number> to_numbers(const std::string& text) {
    std::vector<Number> numbers;
    for (const auto& part : parts_at_commas(text)) numbers.push_back(to_number<Number>(part));
    return numbers;
  }

  /// The flag of a key, which is noted; empty: it has none.
  std::string flag_of(const FieldInfo& field) {
    std::string flag(field.elsewhere.flag);
    if (field.elsewhere.flag == Elsewhere::same) {
      flag = fmt::format("--{}", field.key);
      std::ranges::replace(flag, '_', '-');
    }
    if (flag.empty()) return flag;
    options_.flags.push_back({std::string(field.key), flag, field.elsewhere.use});
    return flag;
  }

  template <class Parse>
  void add(const FieldInfo& field, Parse parse, const CLI::Validator& accepts) {
    const auto flag = flag_of(field);
    if (flag.empty()) return;
    auto* const option = command_.add_option(
        flag,
        [&options = options_, key = std::string(field.key), parse](const CLI::results_t& texts) {
          options.given.set(key, parse(texts.front()));
          return true;
        },
        std::string(field.doc));
    option->type_name(std::string(field.elsewhere.value))->check(accepts);
  }

  CLI::App& command_;
  ConfigOptions& options_;
};

}  // namespace

std::vector<std::string> ConfigOptions::given_flags(std::optional<OptionUse> use) const {
  std::vector<std::string> found;
  for (const auto& flag : flags)
    if (given.has(flag.key) && (!use || flag.use == *use)) found.push_back(flag.name);
  return found;
}

std::unique_ptr<ConfigVisitor> detail::make_option_adder(CLI::App& command, ConfigOptions& options) {
  return std::make_unique<OptionAdder>(command, options);
}

}  // namespace zoo

#pragma once
// Options that several subcommands share, so that they are the same everywhere.

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "io/config/describe.h"
#include "kernels/cache_format.h"
#include "models/config/model_config.h"

namespace zoo {

/// Accepts a decimal number from `least` to `most`, which is `what`; without limits `any`.
template <class T>
CLI::Validator decimal(T least, T most, std::string_view what, std::string_view any) {
  return {[=](const std::string& text) -> std::string {
            T value = 0;
            const char* const end = text.data() + text.size();
            const auto result = std::from_chars(text.data(), end, value);
            const bool plain = std::is_floating_point_v<T> || text == "0" ||
                               !(text.starts_with('0') || text.starts_with("-0"));
            if (result.ec == std::errc() && result.ptr == end && plain && value >= least && value <= most)
              return {};
            if (most < std::numeric_limits<T>::max())
              return fmt::format("'{}' is not a {} from {} to {}", text, what, least, most);
            return least > std::numeric_limits<T>::lowest()
                       ? fmt::format("'{}' is not a {} of at least {}", text, what, least)
                       : fmt::format("'{}' is not a {}", text, any);
          },
          ""};
}

/// A whole number as in configurations: no octal numbers, none beyond 64 bits.
inline CLI::Validator whole_number(int64_t least = std::numeric_limits<int64_t>::min(),
                                   int64_t most = std::numeric_limits<int64_t>::max()) {
  return decimal(least, most, "whole number", "whole number of 64 bits");
}

inline CLI::Validator number(double least = std::numeric_limits<double>::lowest(),
                             double most = std::numeric_limits<double>::max()) {
  return decimal(least, most, "number", "number");
}

/// Every enumerator, in the order of their declaration.
template <NamedEnum E>
std::vector<E> enumerators() {
  std::vector<E> values;
  for (size_t i = 0; i < config_names(E{}).size(); ++i) values.push_back(static_cast<E>(i));
  return values;
}

/// Accepts the name of one of these enumerators, for CLI::Option::transform().
template <NamedEnum E>
CLI::Validator one_of(std::vector<E> values = enumerators<E>()) {
  return {[values = std::move(values)](std::string& text) -> std::string {
            std::vector<std::string_view> names;
            for (const E value : values) {
              names.push_back(name_of(value));
              if (text != names.back()) continue;
              text = std::to_string(static_cast<int64_t>(value));
              return {};
            }
            return fmt::format("'{}' is not one of {}", text, fmt::join(names, ", "));
          },
          ""};
}

inline CLI::Option* add_run(CLI::App& command, std::filesystem::path& run) {
  return command.add_option("RUN", run, "Directory of a run")->type_name("DIR")->required();
}

inline CLI::Option* add_base(CLI::App& command, std::filesystem::path& base) {
  return command
      .add_option("--base", base,
                  "Of an adapter of the library PEFT: the model that it changes (default: what its "
                  "adapter_config.json names)")
      ->type_name("DIR");
}

inline CLI::Option* add_overrides(CLI::App& command, std::vector<std::string>& overrides) {
  return command
      .add_option("--set", overrides,
                  "Change a key of CONFIG, for example --set training.steps=100; may be repeated")
      ->option_text("KEY=VALUE")
      ->allow_extra_args(false)
      ->check({[](const std::string& text) -> std::string {
                 return text.find('=') != std::string::npos
                            ? ""
                            : fmt::format("write {}=VALUE, as one word", text);
               },
               ""});
}

inline CLI::Option* add_device(CLI::App& command, std::string& device) {
  return command.add_option("--device", device, "auto (the first GPU if there is one), cpu, cuda or cuda:N")
      ->type_name("DEVICE")
      ->capture_default_str();
}

inline CLI::Option* add_json(CLI::App& command, bool& json,
                             const std::string& meaning = "One JSON document on standard output") {
  return command.add_flag("--json", json, meaning);
}

/// The name of an enumerator, or auto.
template <NamedEnum E>
CLI::Validator one_of_or_auto() {
  return {[](std::string& text) -> std::string {
            if (text == "auto") return {};
            const auto given = text;
            if (one_of<E>()(text).empty()) return {};
            std::vector<std::string_view> names{"auto"};
            for (const E value : enumerators<E>()) names.push_back(name_of(value));
            return fmt::format("'{}' is not one of {}", given, fmt::join(names, ", "));
          },
          ""};
}

/// How the weights of a trained model are stored; nothing: auto.
inline CLI::Option* add_weights(CLI::App& command, std::optional<WeightFormat>& weights) {
  const auto take = [&weights](const std::string& text) {
    weights = text == "auto" ? std::nullopt : std::optional(static_cast<WeightFormat>(std::stoi(text)));
  };
  return command
      .add_option_function<std::string>(
          "--weights", take,
          "How weights are stored: fp32, bf16 or fp16 (half the memory), int8 (a quarter) or int4 (a "
          "seventh); auto, the default: as the run's generation.weights says, or on a GPU what docs/gpu.md "
          "says")
      ->transform(one_of_or_auto<WeightFormat>())
      ->option_text("FORMAT");
}

/// How a model keeps the keys and values of the tokens that it has read.
inline CLI::Option* add_cache(CLI::App& command, std::optional<CacheFormat>& cache) {
  return command
      .add_option("--cache", cache,
                  "How keys and values of earlier tokens are stored: fp32, bf16 (half the memory) or int8 (a "
                  "quarter); default: the run's generation.cache")
      ->transform(one_of<CacheFormat>())
      ->option_text("FORMAT");
}

}  // namespace zoo

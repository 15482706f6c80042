#pragma once
// Options that several subcommands share, so that they are the same everywhere.

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "layers/weights/weights.h"

namespace zoo {

/// Accepts a decimal whole number from `least` to `most`, as in configurations: no octal numbers, none beyond
/// 64 bits.
inline CLI::Validator whole_number(int64_t least, int64_t most = std::numeric_limits<int64_t>::max()) {
  return {[=](const std::string& text) -> std::string {
            int64_t value = 0;
            const char* const end = text.data() + text.size();
            const auto result = std::from_chars(text.data(), end, value);
            const bool plain = text == "0" || !(text.starts_with('0') || text.starts_with("-0"));
            if (result.ec == std::errc() && result.ptr == end && plain && value >= least && value <= most)
              return {};
            return most == std::numeric_limits<int64_t>::max()
                       ? fmt::format("'{}' is not a whole number of at least {}", text, least)
                       : fmt::format("'{}' is not a whole number from {} to {}", text, least, most);
          },
          ""};
}

inline CLI::Option* add_run(CLI::App& command, std::filesystem::path& run) {
  return command.add_option("RUN", run, "Directory of a run")->type_name("DIR")->required();
}

inline CLI::Option* add_overrides(CLI::App& command, std::vector<std::string>& overrides) {
  return command
      .add_option("--set", overrides,
                  "Change a key of CONFIG, for example --set training.steps=100; may be repeated")
      ->option_text("KEY=VALUE")
      ->allow_extra_args(false);
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

/// How the weights of a trained model are stored.
inline CLI::Option* add_weights(CLI::App& command, std::optional<WeightFormat>& weights) {
  const std::vector<std::pair<std::string, WeightFormat>> formats = {
      {"fp32", WeightFormat::fp32}, {"bf16", WeightFormat::bf16}, {"int8", WeightFormat::int8}};
  return command
      .add_option("--weights", weights,
                  "How weights are stored: fp32, bf16 (half the memory) or int8 (a quarter); default: the "
                  "run's generation.weights")
      ->transform(CLI::CheckedTransformer(formats))
      ->option_text("FORMAT");
}

}  // namespace zoo

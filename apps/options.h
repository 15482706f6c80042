#pragma once
// Options that several subcommands have, so that they read the same everywhere.

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace zoo {

/// A whole number from `least` to `most` in decimal digits, as configurations have them: neither octal nor
/// beyond 64 bits.
inline CLI::Validator whole_number(int64_t least, int64_t most = std::numeric_limits<int64_t>::max()) {
  return {[=](const std::string& text) -> std::string {
            int64_t value = 0;
            const char* const end = text.data() + text.size();
            const auto result = std::from_chars(text.data(), end, value);
            const bool plain = text == "0" || !(text.starts_with('0') || text.starts_with("-0"));
            if (result.ec == std::errc() && result.ptr == end && plain && value >= least && value <= most)
              return {};
            return most == std::numeric_limits<int64_t>::max()
                       ? fmt::format("'{}' is no whole number of at least {}", text, least)
                       : fmt::format("'{}' is no whole number from {} to {}", text, least, most);
          },
          ""};
}

inline CLI::Option* add_run(CLI::App& command, std::filesystem::path& run) {
  return command.add_option("RUN", run, "Directory of a run")->type_name("DIR")->required();
}

inline CLI::Option* add_overrides(CLI::App& command, std::vector<std::string>& overrides) {
  return command
      .add_option("--set", overrides,
                  "A key in place of what CONFIG says, as --set training.steps=100; may be repeated")
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

}  // namespace zoo

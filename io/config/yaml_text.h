#pragma once

#include <string>

namespace zoo {

/// A string as YAML writes it: in quotes if it could be read as something else. Throws ConfigError for a text
/// that is not UTF-8.
std::string yaml_text(const std::string& text);

}  // namespace zoo

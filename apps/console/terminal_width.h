#pragma once
// Lines that fit the terminal.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace zoo {

/// The columns of the terminal on standard output; nothing if the output goes elsewhere, where no line is
/// cut.
std::optional<size_t> columns_of_output();

/// The beginning of a line, with … where it is cut: at most `columns` characters, at least 1.
std::string first_columns(std::string_view line, size_t columns);

}  // namespace zoo

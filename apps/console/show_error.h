#pragma once
// How this program reports an error.

#include <string>

namespace zoo {

/// How much of a message is shown: 300 characters, where long names and values are cut, or all of it.
enum class ErrorLength { one_line, whole };

/// Writes one line "zoo: MESSAGE" on stderr. Names of library options in the message become the options of
/// this program.
void show_error(const std::string& message, ErrorLength length = ErrorLength::one_line);

}  // namespace zoo

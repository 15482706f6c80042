#pragma once
// How this program reports an error.

#include <string>

namespace zoo {

/// How much of a message is shown: 300 characters, where long names and values are cut, or all of it.
enum class ErrorLength { one_line, whole };

/// `message` with this program's options in place of the names of library options.
std::string in_words_of_the_program(std::string message);

/// Writes one line "zoo: MESSAGE" on stderr. The message is as in_words_of_the_program().
void show_error(const std::string& message, ErrorLength length = ErrorLength::one_line);

}  // namespace zoo

#pragma once
// How this program reports an error.

#include <string>

namespace zoo {

/// Writes one line "zoo: MESSAGE" on stderr. Names of library options in the message become the options of
/// this program. A message of more than 4096 bytes is cut, because it may quote long names and values.
void show_error(const std::string& message);

}  // namespace zoo

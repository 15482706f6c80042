#pragma once

#include <string>

namespace zoo {

/// `word` as one word of a command for a shell: in quotation marks if it needs them.
std::string shell_word(const std::string& word);

}  // namespace zoo

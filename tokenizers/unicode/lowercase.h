#pragma once
// Case folding.

#include <string>
#include <string_view>

namespace zoo {

/// `text` with every upper-case letter of any script in lower case, as tokenizers has them
/// (tokenizers/unicode/tables.h), but one code point for one: U+0130 becomes "i". If the text is not UTF-8,
/// only ASCII letters change. Independent of the locale.
std::string lowercase(std::string_view text);

}  // namespace zoo

#pragma once
// Case folding.

#include <string>
#include <string_view>

namespace zoo {

/// `text` with every upper-case letter of any script in lower case, one code point for one. If the text is
/// not UTF-8, only ASCII letters change. Independent of the locale.
std::string lowercase(std::string_view text);

}  // namespace zoo

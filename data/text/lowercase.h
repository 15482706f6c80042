#pragma once
// Case folding.

#include <string>
#include <string_view>

namespace zoo {

/// `text` with every upper-case letter (of any script, one code point to one) in lower case. Text that is not
/// UTF-8: ASCII letters only. Independent of the locale.
std::string lowercase(std::string_view text);

}  // namespace zoo

#include "io/text_width.h"

#include "base/text.h"

namespace zoo {

size_t width_of(std::string_view text) { return count_code_points(text); }

}  // namespace zoo

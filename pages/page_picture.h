#pragma once
// A picture within a page.

#include <string>

#include "data/images/image.h"

namespace zoo {

/// The picture as the address of a PNG that holds it; larger ones are made smaller.
std::string picture_uri(const Image& picture);

}  // namespace zoo

#pragma once
// Which side of a picture is up (Exif 2.32, tag 0x0112). Cameras store pictures as their sensor lies.

#include <cstdint>
#include <string_view>

namespace zoo {

/// The orientation that Exif data say, from 1 to 8: the picture's first row is at the top (1, 2), the bottom
/// (3, 4), the left (5, 8) or the right (6, 7), and its first column at the left (1, 4), the right (2, 3),
/// the top (5, 6) or the bottom (7, 8). 1 if the data do not say it, or are damaged. `exif` begins with the
/// header of TIFF, or with "Exif" before that.
int64_t exif_orientation(std::string_view exif);

}  // namespace zoo

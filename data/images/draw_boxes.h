#pragma once
// Draws the objects that a model has found on a picture.

#include <span>
#include <string>
#include <vector>

#include "data/images/box.h"
#include "data/images/image.h"

namespace zoo {

/// A picture in colours (three channels) with a frame around each object, and its label and score on a ground
/// of the frame's colour. `image` is grey or in colours; the boxes are in its pixels, the best object first.
/// Each of `labels`, the names that a label may have, has a colour of its own.
///
/// A picture whose longer side is below 300 pixels is first enlarged by the smallest whole factor that brings
/// it to 300, so that the text can be read. Frames and text grow with pictures of more than 1,000 pixels, if
/// the shorter side has room for them.
/// Text stays within the picture, does not cover the text of a better object where there is another place,
/// and is cut where the picture is too narrow. Characters that are not in ISO 8859-2, which is what libgd's
/// own fonts have, become the most similar ones, or question marks. Throws SystemError if there is not enough
/// memory.
Image draw_boxes(const Image& image, std::span<const LabelledBox> objects,
                 const std::vector<std::string>& labels);

}  // namespace zoo

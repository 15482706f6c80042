#pragma once
// The attention page of a picture.

#include <string>

#include "analysis/attention_maps.h"

namespace zoo {

/// attention_page() for a report with a picture. A map is opened by page.html#encoder-0-1-17 (kind, layer,
/// head, and the row of the map whose view is shown). The element with id "data" holds name, image, width,
/// height, rows, columns, special, part, source_tokens, target_tokens, heads and labels or objects as in `zoo
/// attention --json`, and
///   picture: the picture as a data URI, PNG, made smaller where it has more than 1,600 pixels on a side
///   maps:    list of {"kind", "layers": for each layer a list with a packed map for each head}
///   rollout: list of packed maps with "kind" and "layer"
/// A packed map has "rows": T·S bytes in base64, row after row, and "tops": for each row its largest weight,
/// in millionths. A weight is its byte / 255 times the largest of its row. The weights of a picture are many
/// and small, and only rows are shown, so this keeps more of them than integers up to 999 in fewer
/// characters. Throws DataError where the picture has too many places for a page.
std::string image_attention_page(const AttentionReport& report);

}  // namespace zoo

#pragma once
// A page of attention maps: one HTML file that needs neither a network nor a library.

#include <string>

#include "analysis/attention_maps.h"

namespace zoo {

/// The page of a report. Any map can be opened by its name in the address: page.html#cross-0-1 (kind, layer,
/// head), page.html?open=cross-0-mean or page.html#encoder-1-rollout; page.html#cross-0-1-lines shows it as
/// lines. The element with id "data" holds JSON for other programs: name, text, target, source_tokens,
/// target_tokens, target_next, heads and predictions as in `zoo attention --json`, and
///   maps:    list of {"kind", "layers": for each layer a list that holds T·S integers for each head}
///   rollout: list of {"kind", "layer", "rows": T·S integers}
/// where an integer is a weight times 999, rounded; rows follow each other.
/// Throws DataError where the text is too long for a page. The page of a
/// picture comes from image_attention_page().
std::string attention_page(const AttentionReport& report);

}  // namespace zoo

#pragma once
// Attention maps to look at: one HTML file that needs nothing else, neither a network nor a library.

#include <string>

#include "analysis/attention_maps.h"

namespace zoo {

/// The page of a report. Any map can be opened by its name in the address: page.html#cross-0-1 (kind, layer,
/// head), page.html?open=cross-0-mean or page.html#encoder-1-rollout. The element with id "data" holds JSON
/// for other programs: name, text, target, source_tokens, target_tokens, target_next, heads as
/// `zoo attention --json` has them, and
///   maps:    list of {"kind", "layers": one a layer, of one list a head, of T·S integers}
///   rollout: list of {"kind", "layer", "rows": T·S integers}
/// where an integer is a weight times 999, rounded, row after row.
/// Throws DataError where the text is too long for a page.
std::string attention_page(const AttentionReport& report);

}  // namespace zoo

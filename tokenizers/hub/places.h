#pragma once
// Where tokens stand in a text, as tokenizers says it.

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "tokenizers/hub/text_codec.h"

namespace zoo {

/// Turns places in bytes into places in code points of `text`.
void to_code_points(std::string_view text, std::vector<PlacedToken>& tokens);

/// How often a post-processor (ByteLevel, RobertaProcessing, a Sequence of them) takes blanks from the
/// places, and whether each time the text had got a blank before it (add_prefix_space).
std::vector<bool> trims_of_places(const nlohmann::json& post_processor);
/// Takes the blanks around the texts of tokens, in code points, from their places.
void trim_places(const std::vector<std::string>& texts, bool adds_blank, std::vector<PlacedToken>& tokens);

}  // namespace zoo

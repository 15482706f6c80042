#pragma once
// What a comparison of architectures lacks of what the field asks for.

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

/// What the results of a comparison lack, a sentence each: a learning rate that each variant has tuned, three
/// seeds, a second size, a cooled-down learning rate, a short convolution beside other mixers. Empty where
/// nothing was trained. `results`: as results_json() writes them.
std::vector<std::string> protocol_gaps(const nlohmann::ordered_json& results);

}  // namespace zoo

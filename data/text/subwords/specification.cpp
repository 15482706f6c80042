#include "data/text/subwords/specification.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"

namespace zoo {

void refuse_part(std::string_view kind, std::string_view name) {
  throw DataError(fmt::format("tokenizer.json: {} '{}' is not supported", kind, excerpt(name)));
}

std::string type_of(const nlohmann::json& part) { return part.at("type").get<std::string>(); }

}  // namespace zoo

#pragma once
// The keys of GenerationConfig that a request may give, and how the API's description says them.

#include <nlohmann/json.hpp>

#include "io/config/given_values.h"
#include "serving/api/api_limits.h"
#include "serving/api/request_fields.h"

namespace zoo {

/// The options of a request: keys of GenerationConfig, by their names in requests. Throws ApiError.
GivenValues read_generation_options(RequestFields& fields, const ApiLimits& limits);

/// JSON schemas of the same keys, by their names: properties of a request for OpenAPI.
nlohmann::ordered_json schemas_of_generation_options(const ApiLimits& limits);

}  // namespace zoo

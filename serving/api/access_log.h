#pragma once

#include <ostream>

#include "serving/http/http_message.h"

namespace zoo {

/// Writes one line of JSON for a request: time, method, path, status, milliseconds, and of a request to a
/// model its name and the tokens in and out. Texts are never in it.
void log_access(std::ostream& out, const AccessRecord& record);

}  // namespace zoo

#include "serving/api/access_log.h"

#include <chrono>
#include <cmath>
#include <ctime>

#include <fmt/chrono.h>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "serving/api/json_answer.h"

namespace zoo {

void log_access(std::ostream& out, const AccessRecord& record) {
  constexpr size_t most_bytes = 200;
  const auto now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  nlohmann::ordered_json line{{"time", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc)},
                              {"method", excerpt(record.method, most_bytes)},
                              {"path", excerpt(record.path, most_bytes)},
                              {"status", record.status},
                              {"ms", std::round(record.milliseconds * 10) / 10}};
  if (!record.note.model.empty()) {
    line["model"] = excerpt(record.note.model, most_bytes);
    line["tokens_in"] = record.note.tokens_in;
    line["tokens_out"] = record.note.tokens_out;
  }
  out << as_text(line) + "\n" << std::flush;
}

}  // namespace zoo

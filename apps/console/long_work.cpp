#include "apps/console/long_work.h"

#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/text.h"

namespace zoo {

void say_on_terminal(std::string_view line, const ProgressOutput& output) {
  if (output.columns() > 0) output.write(fmt::format("{}\n", printable(line)));
}

std::function<void(int64_t, int64_t)> progress_on_terminal(std::string_view title, std::string_view unit,
                                                           const ProgressOutput& output) {
  constexpr double silent_seconds = 2;
  if (output.columns() == 0) return nullptr;
  const double started = output.seconds();
  return [=, title = std::string(title), unit = std::string(unit), progress = std::shared_ptr<Progress>()](
             int64_t done, int64_t all) mutable {
    if (!progress && (done == all || output.seconds() - started < silent_seconds)) return;
    if (!progress)
      progress =
          std::make_shared<Progress>(title, ProgressCount{.total = all, .unit = unit, .first = done}, output);
    progress->update(done, "");
  };
}

}  // namespace zoo

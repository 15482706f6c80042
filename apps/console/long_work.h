#pragma once
// What a subcommand says on the terminal while it works. Files and pipes get none of it.

#include <cstdint>
#include <functional>
#include <string_view>

#include "io/progress.h"

namespace zoo {

/// Writes a line to a terminal on standard error.
void say_on_terminal(std::string_view line, const ProgressOutput& output = ProgressOutput::standard_error());

/// A function for on_progress that shows the progress of work on a terminal. The work is usually short, so
/// the line appears after two seconds. It ends when the last copy of the function does.
std::function<void(int64_t done, int64_t all)> progress_on_terminal(
    std::string_view title, std::string_view unit,
    const ProgressOutput& output = ProgressOutput::standard_error());

}  // namespace zoo

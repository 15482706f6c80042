#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comparison/findings/results.h"

namespace zoo {

/// Under a budget of seconds: a sentence about trainings that had less of the machine than others, so that
/// their seconds are not equal. Trainings of one run with other seeds then read unequal numbers of tokens;
/// those of different runs differ from their speeds, which are measured in turns. Nothing under other
/// budgets.
std::optional<std::string> unequal_machine(const Budget& budget, const std::vector<RunResults>& runs);

}  // namespace zoo

#pragma once
// Checks of configurations that several tasks need.

#include <initializer_list>
#include <string_view>

#include "io/config/config_file.h"
#include "models/families/families.h"
#include "tasks/experiment.h"

namespace zoo {

/// Complains unless the model's family has one of these shapes; `wanted` lists them for people.
void require_shape(const Experiment& experiment, std::initializer_list<FamilyShape> shapes,
                   std::string_view wanted, const Complain& complain);
/// Complains if `length` tokens are more than the model's positions.
void require_positions(const Experiment& experiment, std::string_view key, int64_t length,
                       const Complain& complain);
}  // namespace zoo

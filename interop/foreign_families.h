#pragma once
// The families that are known. To add one, write a file in interop/families and list it in
// foreign_families.cpp.

#include <string>
#include <string_view>
#include <vector>

#include "interop/families/foreign_family.h"

namespace zoo {

/// All families, in the order in which an export tries them.
const std::vector<ForeignFamily>& foreign_families();

/// The family of this model_type, also one that is only read; null if there is none.
const ForeignFamily* find_foreign_family(std::string_view model_type);

/// The experiment as its own config.yaml gives it, so that every limit of a key is checked. `place`: the file
/// that describes it. Throws CheckpointError.
Experiment checked_experiment(const Experiment& experiment, const std::string& place);

}  // namespace zoo

#pragma once
// The names of Python that a pickle may have, and what a call of each of them gives.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/formats/pickle_values.h"

namespace zoo {

/// Whether a pickle may have this name: "collections.OrderedDict".
bool is_known_global(std::string_view name);

/// The value of `callee`(`arguments`); nothing if that is not known.
std::optional<ValueId> called(PickleValues& values, ValueId callee, ValueId arguments);

/// The storage that a persistent id stands for; nothing if it is damaged or not known.
std::optional<ValueId> persistent_storage(PickleValues& values, ValueId id);

}  // namespace zoo

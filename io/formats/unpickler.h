#pragma once
// Reads pickles that torch.save() wrote, protocols 2 to 5 (Python's pickletools.py), without running
// anything: it knows tensors, storages and plain values, and refuses every other name.

#include <cstdint>

#include "io/formats/file_bytes.h"
#include "io/formats/pickle_values.h"

namespace zoo {

/// A pickle may be so large, and hold so many values.
inline constexpr uint64_t kMostPickleBytes = uint64_t{64} << 20;
inline constexpr size_t kMostPickleValues = size_t{2} << 20;

/// Adds the values of the pickle that begins at byte `begin` to `to`. Sets `begin` to the byte after it.
/// Returns the outermost value. Throws CheckpointError: it does not end before byte `end`, is damaged, too
/// large, or has a name that is not known: "os.system".
ValueId unpickle(const FileBytes& file, uint64_t& begin, uint64_t end, PickleValues& to);

}  // namespace zoo

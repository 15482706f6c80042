#pragma once
// Why a training cannot go on, and what people can do.

#include <exception>
#include <string>

#include "training/training_run.h"

namespace zoo {

/// Something is not finite: writes RUN/failed.txt and throws TrainingError, in the first process; PeerError
/// in the others. All processes call this together, or the first one does within run_or_fail_together().
[[noreturn]] void fail(const TrainingRun& run, const std::string& problem);

/// Throws TrainingError if `error` says that the device has too little memory. The last checkpoint stays, and
/// so does an earlier run's.
void fail_if_for_memory(const TrainingRun& run, const std::exception& error);

}  // namespace zoo

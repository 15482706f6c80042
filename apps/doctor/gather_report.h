#pragma once
// Looks at this machine.

#include <c10/core/Device.h>

#include "apps/doctor/machine_report.h"

namespace zoo {

/// Takes a few seconds. `device`: its arithmetic is checked after that of the processor.
MachineReport gather_report(c10::Device device);

}  // namespace zoo

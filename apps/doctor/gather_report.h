#pragma once
// Looks at this machine.

#include <string_view>

#include "apps/doctor/machine_report.h"

namespace zoo {

/// Takes a few seconds. `device`: as parse_device() takes it (base/device.h); its arithmetic is checked after
/// that of the processor. Throws UsageError for a device that is unknown or not there.
MachineReport gather_report(std::string_view device);

}  // namespace zoo

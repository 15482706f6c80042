#pragma once
// What is wrong with a machine or a program.

#include <string>
#include <vector>

#include "apps/doctor/machine_report.h"

namespace zoo {

/// Each is one line, which says what to do. Problems keep something from working. Remarks are good to know.
struct Findings {
  std::vector<std::string> problems, remarks;
};

/// Looks at nothing but `report`.
Findings judge(const MachineReport& report);

}  // namespace zoo

#pragma once
// A report for people, and for programs.

#include <string>

#include <nlohmann/json.hpp>

#include "apps/doctor/judge.h"
#include "apps/doctor/machine_report.h"

namespace zoo {

/// One screen, for a terminal and for reports of bugs. Paths and names of others are escaped.
std::string to_text(const MachineReport& report, const Findings& findings);

/// The same facts as one document. Unknown values are null.
nlohmann::ordered_json to_json(const MachineReport& report, const Findings& findings);

}  // namespace zoo

#pragma once
// This project's own files: the library has an io/files.h, too.

#include <string>

inline std::string name_of_report() { return "report.txt"; }

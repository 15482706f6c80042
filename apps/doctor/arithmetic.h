#pragma once
// Whether a device computes what it should.

#include <c10/core/Device.h>

#include "apps/doctor/machine_report.h"

namespace zoo {

/// Trains a tiny decoder in fp32 on a line of text, with the program's own parts, and lets it write that
/// line. All devices begin with the same weights. Seeds the default generator. Throws nothing: a failure is a
/// part of the result.
ArithmeticFacts check_arithmetic(c10::Device device);

}  // namespace zoo

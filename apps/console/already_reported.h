#pragma once

namespace zoo {

/// Thrown if what went wrong has already been reported, here or by another process. This process only exits
/// with the same code.
struct AlreadyReported {
  int exit_code;
};

}  // namespace zoo

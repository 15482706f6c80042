#pragma once
// What a GPU is asked to do, counted without a GPU: the strict device (tests/support/strict_device.h) counts
// its own work. A count says nothing about time, but it says where time is lost: every launch costs the host
// some microseconds, and every wait empties the device's queue.

#include <cstdint>
#include <map>
#include <string>

namespace zoo::testing {

struct DeviceWork {
  /// Kernels that the device runs: one for each operation except views and allocations, also for a foreach
  /// operation and for fused attention. A recorded graph has the kernels of its operations.
  int64_t kernels = 0;
  /// Calls of the host that start work: one for each kernel, or one for a whole graph.
  int64_t launches = 0;
  /// Copies from the host's memory to the device's, and back. Numbers that are read one by one are downloads.
  int64_t uploads = 0, downloads = 0;
  /// How often the host waits for the device: for a copy unless it is non_blocking and the host's memory is
  /// pinned, for a number, for a size that depends on numbers (nonzero), for synchronize().
  int64_t waits = 0;
  /// The parts of `kernels`, and of `waits` with the prefix "wait ", by the name of the operation, such as
  /// "aten::mm" and "wait aten::nonzero".
  std::map<std::string, int64_t> by_operation;

  /// The work between two counts: *this minus `earlier`.
  DeviceWork since(const DeviceWork& earlier) const;
  /// "812 kernels, 812 launches, 3 uploads, 1 download, 2 waits"
  std::string in_words() const;
  /// The operations with the most kernels and all waits, a line each.
  std::string most_frequent(size_t n_operations = 12) const;
};

/// The work of the strict device since the process began, in all threads.
DeviceWork strict_device_work();

/// The work of the strict device while `body` runs.
template <class Body>
DeviceWork work_of(const Body& body) {
  const auto before = strict_device_work();
  body();
  return strict_device_work().since(before);
}

}  // namespace zoo::testing

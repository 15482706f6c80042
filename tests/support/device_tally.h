#pragma once
// How the strict device counts (tests/support/device_work.h).

#include <string>

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

namespace zoo::testing {

/// What starts a kernel.
enum class StartedBy { host, graph };

/// Counts an operation with these arguments that the device does now.
void tally(const c10::OperatorHandle& op, const torch::jit::Stack& arguments, StartedBy started);
/// Counts a kernel of our own.
void tally_kernel(const std::string& name, StartedBy started);
/// Counts the start of a graph.
void tally_graph();
/// Counts a wait that is no operation.
void tally_wait(const std::string& name);

/// Whether the host has to wait for this operation, which would end a recording.
bool waits(const c10::OperatorHandle& op, const torch::jit::Stack& arguments);

}  // namespace zoo::testing

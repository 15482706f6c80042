#pragma once
// Work that is done side by side.

#include <cstdint>
#include <functional>

namespace zoo {

/// Calls work(0) … work(n - 1), each on one of LibTorch's threads, which takes the next number when it is
/// done. Operators of LibTorch within `work` have that thread alone. They record gradients and count memory
/// as in the calling thread. Throws what a call throws; the others may not be made then.
void for_each_on_one_thread(int64_t n, const std::function<void(int64_t)>& work);

/// After this call, the calling thread, LibTorch's threads and threads that they start take floating-point
/// numbers below the smallest normal one (1.2e-38 in float32) for zero. It does nothing on a processor that
/// cannot do this.
///
/// Such numbers appear where a channel gets no more gradient: its momentum halves every few steps, and the
/// products of an optimizer that multiplies momenta, as Muon does, get there first. Intel's processors need
/// more than a hundred cycles for each, which makes a training step up to four times as slow. No model needs
/// them. The program and train() call it.
void flush_denormals();

}  // namespace zoo

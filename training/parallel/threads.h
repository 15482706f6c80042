#pragma once
// Work that is done side by side.

#include <cstdint>
#include <functional>

namespace zoo {

/// Calls work(0) … work(n - 1), each on one of LibTorch's threads, which takes the next number when it is
/// done. Operators of LibTorch within `work` have that thread alone. They record gradients and count memory
/// as in the calling thread. Throws what a call throws; the others may not be made then.
void for_each_on_one_thread(int64_t n, const std::function<void(int64_t)>& work);

}  // namespace zoo

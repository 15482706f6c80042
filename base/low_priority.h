#pragma once
// Work that somebody waits for, beside work that many wait for.

#include <functional>

namespace zoo {

/// Runs `task` on a thread of its own and waits for it. Where processors are short, the thread gets about a
/// third of what another thread of this process gets (nice 5). Throws what the task throws.
void run_at_low_priority(const std::function<void()>& task);

}  // namespace zoo

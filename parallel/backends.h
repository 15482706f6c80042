#pragma once
// What processes that train together can exchange tensors with.

namespace zoo {

/// Whether this program was built with NCCL, so that several GPUs can train one model.
bool has_nccl();

}  // namespace zoo

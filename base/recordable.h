#pragma once
// Whether a device's graph could record some work, seen from its operations.

#include <memory>
#include <optional>
#include <string>

#include <ATen/record_function.h>
#include <c10/core/Device.h>
#include <c10/util/ThreadLocalDebugInfo.h>

namespace zoo {

/// While it lives, watches the operations of this thread, and of the threads of backward passes that it
/// starts. A recording that fails may leave the device unusable, so it is better not to begin it.
class RecordableWatch {
 public:
  explicit RecordableWatch(c10::Device device);
  ~RecordableWatch();
  RecordableWatch(const RecordableWatch&) = delete;
  RecordableWatch& operator=(const RecordableWatch&) = delete;

  /// Why the work could not be recorded: it waits for the device, or copies to it or from it. Nothing: it
  /// could.
  std::optional<std::string> obstacle() const;

 private:
  struct Notes;
  std::shared_ptr<Notes> notes_;
  std::unique_ptr<c10::DebugInfoGuard> guard_;
  at::CallbackHandle handle_ = at::INVALID_CALLBACK_HANDLE;
};

}  // namespace zoo

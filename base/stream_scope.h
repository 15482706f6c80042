#pragma once

#include <memory>

#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

namespace zoo {

/// While it lives, this thread's work goes to a stream of its own: nothing can be recorded on the default
/// one. Work that was begun before comes first, and what is begun afterwards comes later, because all of it
/// uses the tables of one model.
class StreamScope {
 public:
  explicit StreamScope(const c10::Stream& own)
      : own_(own), before_(c10::impl::VirtualGuardImpl(own.device_type()).getStream(own.device())) {
    order(before_, own_);
    guard_ = std::make_unique<c10::StreamGuard>(own_);
  }
  ~StreamScope() {
    guard_.reset();
    try {
      order(own_, before_);
    } catch (const c10::Error&) {
      // The device has failed, and its next work says so.
    }
  }
  StreamScope(const StreamScope&) = delete;
  StreamScope& operator=(const StreamScope&) = delete;

 private:
  static void order(const c10::Stream& first, const c10::Stream& second) {
    c10::Event event(first.device_type());
    event.record(first);
    event.block(second);
  }

  c10::Stream own_, before_;
  std::unique_ptr<c10::StreamGuard> guard_;  // g++ 12 takes an optional one for unset
};

}  // namespace zoo

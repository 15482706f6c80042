#pragma once
// Imitates a full disk: no file can grow beyond `bytes` while this object lives.

#include <signal.h>
#include <sys/resource.h>

namespace zoo::testing {

class SmallDisk {
 public:
  explicit SmallDisk(size_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SmallDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

 private:
  rlimit before_{};
  sighandler_t handler_ = SIG_DFL;
};

}  // namespace zoo::testing

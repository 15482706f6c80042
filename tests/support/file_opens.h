#pragma once
// Counts how often files are opened.

#include <sys/inotify.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace zoo::testing {

/// Counts from its construction on, by any process. Opens of a file without a close between them may count as
/// one.
class FileOpens {
 public:
  explicit FileOpens(const std::vector<std::filesystem::path>& files) {
    for (const auto& file : files) {
      const int watch = ::inotify_add_watch(events_, file.c_str(), IN_OPEN | IN_CLOSE);
      EXPECT_GE(watch, 0) << file;
      names_[watch] = file.filename().string();
      counts_[names_[watch]] = 0;
    }
  }
  ~FileOpens() { ::close(events_); }
  FileOpens(const FileOpens&) = delete;
  FileOpens& operator=(const FileOpens&) = delete;

  /// The number of opens of each file, by its name without the folder.
  const std::map<std::string, int>& counts() {
    alignas(inotify_event) char buffer[1 << 16];
    for (;;) {
      const auto size = ::read(events_, buffer, sizeof(buffer));
      if (size <= 0) return counts_;
      for (const char* at = buffer; at < buffer + size;) {
        inotify_event event{};
        std::memcpy(&event, at, sizeof(event));
        if ((event.mask & IN_OPEN) != 0) ++counts_[names_[event.wd]];
        at += sizeof(event) + event.len;
      }
    }
  }

 private:
  int events_ = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
  std::map<int, std::string> names_;  // by watch
  std::map<std::string, int> counts_;
};

}  // namespace zoo::testing

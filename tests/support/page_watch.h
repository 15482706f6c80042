#pragma once
// How much of some tensors a piece of code touches: their pages of memory are made unreadable, and the
// handler of the fault notes a page and gives it back. So it holds for every kernel, whatever it says of
// itself.

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <vector>

#include <c10/util/Exception.h>
#include <torch/types.h>

namespace zoo::testing {

/// Watches the pages that lie within these tensors as a whole. At most one watches at a time.
class PageWatch {
 public:
  explicit PageWatch(const std::vector<torch::Tensor>& tensors)
      : page_(static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE))) {
    for (const auto& tensor : tensors) {
      const auto begin = reinterpret_cast<uintptr_t>(tensor.const_data_ptr());
      const auto first = (begin + page_ - 1) / page_ * page_, end = (begin + tensor.nbytes()) / page_ * page_;
      if (first < end) ranges_.push_back({.begin = first, .end = end});
    }
    TORCH_CHECK(watching() == nullptr, "one watch at a time");
    watching() = this;
    struct sigaction action{};
    action.sa_sigaction = &PageWatch::on_fault;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &action, &before_);
    for (const auto& range : ranges_) protect(range.begin, range.end, PROT_NONE);
  }
  ~PageWatch() {
    for (const auto& range : ranges_) protect(range.begin, range.end, PROT_READ | PROT_WRITE);
    ::sigaction(SIGSEGV, &before_, nullptr);
    watching() = nullptr;
  }
  PageWatch(const PageWatch&) = delete;
  PageWatch& operator=(const PageWatch&) = delete;

  int64_t touched_bytes() const { return touched_.load() * static_cast<int64_t>(page_); }
  int64_t watched_bytes() const {
    int64_t bytes = 0;
    for (const auto& range : ranges_) bytes += static_cast<int64_t>(range.end - range.begin);
    return bytes;
  }

 private:
  struct Range {
    uintptr_t begin, end;
  };

  static PageWatch*& watching() {
    static PageWatch* one = nullptr;
    return one;
  }
  static void protect(uintptr_t begin, uintptr_t end, int how) {
    ::mprotect(reinterpret_cast<void*>(begin), end - begin, how);
  }
  /// Runs in the thread that has touched a page. A second thread may have touched it, too, and then counts it
  /// once more: a page of 4 KiB, at most once for each thread.
  static void on_fault(int, siginfo_t* fault, void*) {
    auto* const watch = watching();
    const auto at = reinterpret_cast<uintptr_t>(fault->si_addr);
    for (const auto& range : watch->ranges_) {
      if (at < range.begin || at >= range.end) continue;
      const auto page = at / watch->page_ * watch->page_;
      protect(page, page + watch->page_, PROT_READ | PROT_WRITE);
      ++watch->touched_;
      return;
    }
    ::sigaction(SIGSEGV, &watch->before_, nullptr);  // a fault of the program: it happens again
  }

  uintptr_t page_;
  std::vector<Range> ranges_;
  struct sigaction before_{};
  std::atomic<int64_t> touched_ = 0;
};

}  // namespace zoo::testing

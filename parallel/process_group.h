#pragma once
// The processes that train one model together: c10d with Gloo on the CPU and NCCL on CUDA. torchrun or
// parallel/launcher.h starts them.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "base/error.h"

namespace zoo {

/// Another process of the training failed, died or hung. This process can only end, too.
class PeerError : public Error {
 public:
  using Error::Error;
  int exit_code() const override { return kExitCode; }
  /// Used by no other error, so that the launcher can tell the cause of a failure from its consequences.
  static constexpr int kExitCode = 75;  // EX_TEMPFAIL: ExistingRun::resume goes on
};

/// The place of a process among those that train together.
struct ProcessPlace {
  int64_t rank = 0, size = 1;              // among all processes
  int64_t local_rank = 0, local_size = 1;  // among the processes on this machine
  /// Address of the TCPStore in which the processes find each other.
  std::string host = "127.0.0.1";
  uint16_t port = 29500;
  /// The owner of that store: the process of rank 0, or the program that started the processes.
  enum class Store { of_first_rank, of_launcher } store = Store::of_first_rank;
  /// Number of the launcher's restarts: a launcher that restarts the processes keeps its store.
  int64_t attempt = 0;
};

/// Reads the variables that torchrun sets: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,
/// MASTER_PORT, TORCHELASTIC_USE_AGENT_STORE, TORCHELASTIC_RESTART_COUNT. Returns nothing where WORLD_SIZE is
/// not set. Throws UsageError on invalid values.
std::optional<ProcessPlace> place_from_environment();

/// Collective operations. All processes must call the same ones in the same order, with tensors of the same
/// shape and type: contiguous, on the CPU or on this process's GPU; from another device they go through the
/// host's memory. An operation throws PeerError if another process has gone, or does not take part within the
/// timeout. On GPUs, however, wait() only makes the GPU's next work wait, and NCCL's own watchdog ends a
/// process whose peers have gone. In a process alone (size 1) the operations do nothing.
class ProcessGroup {
 public:
  /// A process alone.
  ProcessGroup();
  /// Waits until all processes are connected. Throws PeerError, UsageError (built without NCCL), SystemError
  /// (the port is taken).
  ProcessGroup(const ProcessPlace& place, torch::Device device, std::chrono::milliseconds timeout);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int64_t rank() const { return place_.rank; }
  int64_t size() const { return place_.size; }
  bool is_alone() const { return size() == 1; }
  /// The first process writes the files and reports to the user.
  bool is_first() const { return rank() == 0; }

  /// An operation under way. Its tensor must not be used until wait() returns.
  class Work {
   public:
    Work() = default;
    explicit Work(std::function<void()> wait) : wait_(std::move(wait)) {}
    void wait() {
      if (wait_) wait_();
    }

   private:
    std::function<void()> wait_;
  };

  /// tensor ← its sum over all processes, the same bits in each.
  Work all_reduce(torch::Tensor tensor) const;
  /// The same in process `root` only; in the others the tensor is undefined afterwards.
  Work reduce(torch::Tensor tensor, int64_t root) const;
  /// tensor ← the tensor of process `root`.
  Work broadcast(torch::Tensor tensor, int64_t root) const;
  /// Each process sends some rows of `from` to each process: the first sent[0] rows to process 0, and so on.
  /// to (Σ received, …) ← the rows from process 0, of which there are received[0], then those from process 1,
  /// and so on. The processes need not have equally many rows.
  Work all_to_all(torch::Tensor to, const torch::Tensor& from, const std::vector<int64_t>& received,
                  const std::vector<int64_t>& sent) const;
  /// One process sends to another, which calls recv(). Both block.
  void send(torch::Tensor tensor, int64_t to) const;
  void recv(torch::Tensor tensor, int64_t from) const;

  /// Calls `function`, which may fail in some processes only (a missing file, a full disk). If it fails in
  /// one, all processes throw: its own error where it failed, PeerError in the others. `function` must not
  /// contain collective operations. A process waits for the others for at most `timeout`, by default the
  /// timeout of the group.
  void run_or_fail_together(const std::function<void()>& function,
                            std::optional<std::chrono::milliseconds> timeout = std::nullopt) const;

  /// The bytes that this process has handed to the operations above so far.
  int64_t bytes_exchanged() const { return bytes_exchanged_; }

 private:
  struct Backends;
  template <class Start>
  Work start(torch::Tensor tensor, const Start& start) const;

  ProcessPlace place_;
  std::unique_ptr<Backends> backends_;  // null = a process alone
  mutable int64_t bytes_exchanged_ = 0;
};

}  // namespace zoo

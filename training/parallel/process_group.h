#pragma once
// The processes that train one model together: c10d with Gloo on the CPU and NCCL on CUDA, started by
// torchrun or by training/parallel/launcher.h.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <torch/types.h>

#include "base/error.h"

namespace zoo {

/// Another process of the training failed, died or hung: this one can only end, too.
class PeerError : public Error {
 public:
  using Error::Error;
  int exit_code() const override { return kExitCode; }
  /// Of its own, so that who started the processes can tell the cause from its consequences.
  static constexpr int kExitCode = 75;  // EX_TEMPFAIL: the same command with --resume goes on
};

/// Where a process stands among those that train together.
struct ProcessPlace {
  int64_t rank = 0, size = 1;              // of all
  int64_t local_rank = 0, local_size = 1;  // of those on this machine
  std::string host = "127.0.0.1";          // where they find each other: a TCPStore
  uint16_t port = 29500;
  /// Who keeps that store: the process of rank 0, or the program that started them.
  enum class Store { of_first_rank, of_launcher } store = Store::of_first_rank;
  int64_t attempt = 0;  // a launcher that starts the processes anew keeps its store
};

/// From the variables that torchrun sets: RANK, WORLD_SIZE, LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR,
/// MASTER_PORT, TORCHELASTIC_USE_AGENT_STORE, TORCHELASTIC_RESTART_COUNT. Nothing where WORLD_SIZE is not
/// set. Throws UsageError where they make no sense.
std::optional<ProcessPlace> place_from_environment();

/// Collective operations. All processes must call the same ones in the same order, with tensors of the same
/// shape and type: contiguous, on the CPU or on this process's GPU. Each throws PeerError where another
/// process has gone, or has not come for the length of the timeout; but on GPUs wait() only makes what the
/// GPU does next wait, and NCCL's own watchdog ends a process whose others are gone. A process alone (size 1)
/// does nothing in them.
class ProcessGroup {
 public:
  /// A process alone.
  ProcessGroup();
  /// Waits until all are there. Throws PeerError, UsageError (built without NCCL), SystemError (the port is
  /// taken).
  ProcessGroup(const ProcessPlace& place, torch::Device device, std::chrono::milliseconds timeout);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int64_t rank() const { return place_.rank; }
  int64_t size() const { return place_.size; }
  bool is_alone() const { return size() == 1; }
  /// The one that writes files and talks to the user.
  bool is_first() const { return rank() == 0; }

  /// An operation under way; its tensor must be left alone until wait() returns.
  class Pending {
   public:
    Pending() = default;
    explicit Pending(std::function<void()> wait) : wait_(std::move(wait)) {}
    void wait() {
      if (wait_) wait_();
    }

   private:
    std::function<void()> wait_;
  };

  /// tensor ← its sum over all processes, the same bits in each.
  Pending sum(torch::Tensor tensor) const;
  /// The same in process `rank` alone; in the others the tensor is undefined afterwards.
  Pending sum_to(int64_t rank, torch::Tensor tensor) const;
  /// tensor ← that of process `rank`.
  Pending broadcast_from(int64_t rank, torch::Tensor tensor) const;
  /// From one process to another, who calls receive_from(). Blocks.
  void send_to(int64_t rank, torch::Tensor tensor) const;
  void receive_from(int64_t rank, torch::Tensor tensor) const;

  /// Does `work`, which may fail in some processes and not in others (a file that is missing, a machine
  /// without room): throws what it threw, and PeerError in the processes where it went well. `work` holds no
  /// collective operations. The others wait for it as long as the timeout, or as `patience`.
  void together(const std::function<void()>& work,
                std::optional<std::chrono::milliseconds> patience = std::nullopt) const;

  /// What this process has handed to the operations above so far, in bytes.
  int64_t bytes_exchanged() const { return bytes_exchanged_; }

 private:
  struct Backends;
  template <class Start>
  Pending start(torch::Tensor tensor, const Start& start) const;

  ProcessPlace place_;
  std::unique_ptr<Backends> backends_;  // null = alone
  mutable int64_t bytes_exchanged_ = 0;
};

}  // namespace zoo

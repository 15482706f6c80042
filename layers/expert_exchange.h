#pragma once
// Experts that are divided among processes (GShard, Lepikhin et al. 2020, arXiv 2006.16668): each of n
// processes has E / n of them, sends each token to the processes that have its experts, and gets their
// outputs.

#include <cstdint>
#include <memory>
#include <vector>

#include <torch/types.h>

namespace zoo {

/// The processes that share the experts. All of them go through the layers in the same order, forwards and
/// backwards, each with at least one token.
class ExpertExchange {
 public:
  virtual ~ExpertExchange() = default;
  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;
  /// numbers: (m) int64 on the CPU. Returns those of all processes, (n, m). Collective.
  virtual torch::Tensor gather(const torch::Tensor& numbers) const = 0;
  /// rows: (Σ sent, D), those for process 0 first. Returns (Σ received, D), those from process 0 first.
  /// Records no gradients. Collective.
  virtual torch::Tensor exchange(const torch::Tensor& rows, const std::vector<int64_t>& sent,
                                 const std::vector<int64_t>& received) const = 0;
};

/// The way of the tokens of one forward pass to their experts and back, and of their gradients.
class ExpertRoute {
 public:
  /// `counts`: the rows that this process has for each of the E experts. Collective.
  ExpertRoute(std::shared_ptr<const ExpertExchange> exchange, const std::vector<int64_t>& counts);

  /// The rows that this process's experts get: for each expert, and all of them.
  const std::vector<int64_t>& counts() const { return counts_; }
  /// The number of the first of them, where the rows of all processes are in one tensor, sorted by expert.
  /// One process alone has that tensor, so random numbers that depend on this number are the same.
  int64_t first_row() const { return first_row_; }
  /// rows: (Σ E counts, D), sorted by expert. Returns the rows of this process's experts, from all processes:
  /// sorted by expert, then by process. Collective, like its backward pass.
  torch::Tensor to_experts(const torch::Tensor& rows) const;
  /// outputs: in the order of to_experts(). Returns those of this process's tokens, in the order of its rows.
  /// Collective, like its backward pass.
  torch::Tensor back(const torch::Tensor& outputs) const;

 private:
  std::shared_ptr<const ExpertExchange> exchange_;
  std::vector<int64_t> counts_, sent_, received_;  // of experts here; of processes
  int64_t first_row_ = 0;
  torch::Tensor order_;  // (Σ received) int64 on the CPU: from the order of arrival to that of experts
};

}  // namespace zoo

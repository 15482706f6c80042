#include "data/epoch_plan.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <stdexcept>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "base/random.h"

namespace zoo {
namespace {

constexpr size_t batches_per_stretch = 100;

/// Cuts `plan.examples` where a batch is full. Sets `plan.cuts`, which begins with 0.
void cut_batches(std::span<const int64_t> lengths, const BatchOptions& options, EpochPlan& plan) {
  plan.cuts = {0};
  const size_t n = plan.examples.size();
  if (!options.batch_tokens) {
    const auto size = std::min(static_cast<size_t>(options.batch_size), n);
    for (size_t end = size; end < n; end += size) plan.cuts.push_back(end);
  } else {
    int64_t longest = 0;
    for (size_t i = 0; i < n; ++i) {
      longest = std::max(longest, lengths[static_cast<size_t>(plan.examples[i])]);
      const auto rows = static_cast<int64_t>(i + 1 - plan.cuts.back());
      if (rows > 1 && rows * longest > *options.batch_tokens) {
        plan.cuts.push_back(i);
        longest = lengths[static_cast<size_t>(plan.examples[i])];
      }
    }
  }
  plan.cuts.push_back(n);
}

void sort_stretches(std::span<const int64_t> lengths, const BatchOptions& options,
                    std::vector<int64_t>& examples) {
  size_t rows = static_cast<size_t>(options.batch_size);
  if (options.batch_tokens) {
    const int64_t total = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
    const int64_t mean = std::max<int64_t>(1, total / static_cast<int64_t>(lengths.size()));
    rows = static_cast<size_t>(std::max<int64_t>(1, *options.batch_tokens / mean));
  }
  const size_t stretch = std::min(rows, examples.size()) * batches_per_stretch;
  for (size_t begin = 0; begin < examples.size(); begin += stretch) {
    const size_t end = std::min(begin + stretch, examples.size());
    // A stable sort gives one definite result and leaves examples of equal length shuffled.
    std::stable_sort(examples.begin() + static_cast<ptrdiff_t>(begin),
                     examples.begin() + static_cast<ptrdiff_t>(end), [&](int64_t a, int64_t b) {
                       return lengths[static_cast<size_t>(a)] < lengths[static_cast<size_t>(b)];
                     });
  }
}

void shuffle_batches(const BatchOptions& options, int64_t epoch, EpochPlan& plan) {
  std::vector<size_t> order(plan.cuts.size() - 1);
  std::iota(order.begin(), order.end(), size_t{0});
  CounterRandom random({options.seed, static_cast<uint64_t>(epoch), kBatchesPurpose});
  random.shuffle(order);
  EpochPlan shuffled;
  shuffled.examples.reserve(plan.examples.size());
  shuffled.cuts = {0};
  for (const size_t i : order) {
    shuffled.examples.insert(shuffled.examples.end(),
                             plan.examples.begin() + static_cast<ptrdiff_t>(plan.cuts[i]),
                             plan.examples.begin() + static_cast<ptrdiff_t>(plan.cuts[i + 1]));
    shuffled.cuts.push_back(shuffled.examples.size());
  }
  plan = std::move(shuffled);
}

}  // namespace

std::span<const int64_t> EpochPlan::batch(int64_t index) const {
  if (index < 0 || index >= n_batches()) {
    throw std::out_of_range(
        fmt::format("there is no batch {}: the epoch has {} batches", index, n_batches()));
  }
  const auto i = static_cast<size_t>(index);
  return std::span(examples).subspan(cuts[i], cuts[i + 1] - cuts[i]);
}

EpochPlan plan_epoch(std::span<const int64_t> lengths, const BatchOptions& options, int64_t epoch) {
  if (lengths.empty()) throw DataError("there are no examples to make batches from");
  if (options.batch_size < 1 || options.batch_tokens.value_or(1) < 1) {
    throw std::invalid_argument("a batch must have at least one sequence");
  }
  EpochPlan plan;
  plan.examples.resize(lengths.size());
  std::iota(plan.examples.begin(), plan.examples.end(), int64_t{0});
  if (options.order == BatchOptions::Order::sequential) {
    cut_batches(lengths, options, plan);
    return plan;
  }
  CounterRandom random({options.seed, static_cast<uint64_t>(epoch), kOrderPurpose});
  random.shuffle(plan.examples);
  const bool by_length = options.bucketing == BatchOptions::Bucketing::by_length;
  if (!options.batch_tokens) {
    // Before sorting: otherwise the longest examples would always be left out.
    const auto size = static_cast<size_t>(options.batch_size);
    if (plan.examples.size() > size) plan.examples.resize(plan.examples.size() / size * size);
  }
  if (by_length) sort_stretches(lengths, options, plan.examples);
  cut_batches(lengths, options, plan);
  if (by_length) shuffle_batches(options, epoch, plan);
  return plan;
}

EpochPlan plan_by_length(std::span<const int64_t> lengths, const BatchLimits& most) {
  const auto length = [&](int64_t i) { return lengths[static_cast<size_t>(i)]; };
  EpochPlan plan;
  plan.examples.resize(lengths.size());
  std::iota(plan.examples.begin(), plan.examples.end(), int64_t{0});
  std::ranges::stable_sort(plan.examples, std::greater(), length);
  plan.cuts = {0};
  if (lengths.empty()) return plan;
  for (size_t i = 1; i < lengths.size(); ++i) {
    const auto rows = static_cast<int64_t>(i + 1 - plan.cuts.back());
    const int64_t longest = length(plan.examples[plan.cuts.back()]);
    if (rows > most.rows || rows * longest > most.tokens) plan.cuts.push_back(i);
  }
  plan.cuts.push_back(lengths.size());
  return plan;
}

void for_each_batch(std::span<const int64_t> lengths, const BatchLimits& most,
                    const std::function<void(std::span<const int64_t> examples)>& use,
                    const std::function<void(int64_t done, int64_t all)>& on_progress) {
  const auto plan = plan_by_length(lengths, most);
  int64_t done = 0;
  for (int64_t i = 0; i < plan.n_batches(); ++i) {
    const auto examples = plan.batch(i);
    use(examples);
    done += std::ssize(examples);
    if (on_progress) on_progress(done, std::ssize(lengths));
  }
}

BatchOptions unbucketed(BatchOptions options) {
  options.bucketing = BatchOptions::Bucketing::none;
  return options;
}

RowRange PlannedBatches::used_rows(int64_t n_rows) const {
  const int64_t n_parts = std::min(share_.n_parts, n_rows);
  return share_.index < n_parts ? rows_of_part(n_rows, share_.index, n_parts) : RowRange();
}

const EpochPlan& PlannedBatches::plan(int64_t epoch) {
  if (epoch < 0) throw std::out_of_range("epochs begin with 0");
  Slot& slot = slots_[static_cast<size_t>(epoch) % 2];
  if (slot.epoch != epoch) {
    slot.plan = make_plan(epoch);
    slot.epoch = epoch;
  }
  return slot.plan;
}

}  // namespace zoo

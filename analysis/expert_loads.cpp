#include "analysis/expert_loads.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "layers/attention/activation_observer.h"
#include "models/observation_scope.h"

namespace zoo {
namespace {

/// While this object lives, evaluation counts the tokens of some experts.
class CountingScope {
 public:
  explicit CountingScope(std::vector<std::shared_ptr<ExpertsImpl>> experts) : experts_(std::move(experts)) {
    for (const auto& one : experts_) {
      one->begin_step();
      one->count(CountedPasses::all);
    }
  }
  ~CountingScope() {
    for (const auto& one : experts_) one->count(CountedPasses::training);
  }
  CountingScope(const CountingScope&) = delete;
  CountingScope& operator=(const CountingScope&) = delete;

 private:
  std::vector<std::shared_ptr<ExpertsImpl>> experts_;
};

}  // namespace

double LayerLoad::busiest() const {
  const auto all = static_cast<double>(std::accumulate(tokens.begin(), tokens.end(), int64_t{0}));
  if (all == 0) return 0;
  return static_cast<double>(std::ranges::max(tokens)) * static_cast<double>(tokens.size()) / all;
}

int64_t LayerLoad::n_idle() const { return std::ranges::count(tokens, 0); }

std::vector<LayerLoad> expert_loads(const Run& run, int64_t most_batches) {
  const auto all = experts_of(run.model());
  if (all.empty()) return {};
  const CountingScope counting(all);
  run.evaluate(Split::valid, {}, {.max_batches = most_batches});
  std::vector<LayerLoad> loads;
  const auto stacks = stacks_of(run.model());
  for (const auto& stack : stacks) {
    for (size_t i = 0; i < stack->layers.size(); ++i) {
      const auto& experts = stack->layers[i]->experts;
      if (!experts) continue;
      const ActivationPlace place{.kind = ActivationKind::feed_forward,
                                  .layer = static_cast<int64_t>(i),
                                  .side = side_of(*stack, stacks.size())};
      const auto counts = experts->counts();
      loads.push_back(
          {.place = place.name(),
           .tokens = {counts.const_data_ptr<int64_t>(), counts.const_data_ptr<int64_t>() + counts.numel()}});
    }
  }
  return loads;
}

}  // namespace zoo

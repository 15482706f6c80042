#include "base/random.h"

#include <mutex>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>

namespace zoo {
namespace {

thread_local SeedSource* innermost = nullptr;
thread_local int64_t first_row_here = 0;

uint64_t seed_of_default_generator() {
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return at::check_generator<at::CPUGeneratorImpl>(generator)->random64();
}

}  // namespace

RowScope::RowScope(int64_t first) : outer_(std::exchange(first_row_here, first)) {}

RowScope::~RowScope() { first_row_here = outer_; }

int64_t first_row() { return first_row_here; }

RowSeed draw_row_seed() { return {.seed = draw_seed(), .first_row = first_row()}; }

SeedSource::SeedSource() : outer_(std::exchange(innermost, this)) {}

SeedSource::~SeedSource() { innermost = outer_; }

uint64_t SeedSource::outer_seed() { return outer_ != nullptr ? outer_->next() : seed_of_default_generator(); }

uint64_t SeedReplay::next() {
  TORCH_CHECK(n_drawn_ < seeds_.size(),
              "more random seeds are drawn than in the recorded call: ", seeds_.size());
  return seeds_[n_drawn_++];
}

uint64_t draw_seed() { return innermost != nullptr ? innermost->next() : seed_of_default_generator(); }

}  // namespace zoo

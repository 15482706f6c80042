#pragma once
// Random numbers that are the same on every machine and with every compiler, unlike <random>'s distributions
// and std::shuffle. They need no history: a sequence can start at any coordinates. draw_seed() and
// draw_row_seed() give layers their seeds.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

namespace zoo {

/// SplitMix64 (Steele, Lea & Flood 2014), started from a hash of coordinates such as {seed, epoch, example}.
class CounterRandom {
 public:
  explicit CounterRandom(std::initializer_list<uint64_t> coordinates) {
    for (const uint64_t c : coordinates) state_ = mix(state_ ^ mix(c + increment));
  }

  uint64_t next() { return mix(state_ += increment); }

  /// A uniform integer in 0 … n-1; n ≥ 1.
  int64_t below(int64_t n) {
    const auto range = static_cast<uint64_t>(n);
    // Numbers above the largest multiple of n are drawn again, so that all results are equally likely.
    const uint64_t excess = (UINT64_MAX % range + 1) % range;
    uint64_t x = next();
    while (x > UINT64_MAX - excess) x = next();
    return static_cast<int64_t>(x % range);
  }

  /// In [0, 1), with 53 random bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  /// Fisher-Yates.
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (auto i = static_cast<int64_t>(values.size()) - 1; i > 0; --i) {
      std::swap(values[static_cast<size_t>(i)], values[static_cast<size_t>(below(i + 1))]);
    }
  }

 private:
  static constexpr uint64_t increment = 0x9E3779B97F4A7C15ULL;
  static uint64_t mix(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  uint64_t state_ = 0;
};

/// A seed for one random operation of a layer. It comes from the innermost SeedSource of this thread, or else
/// from LibTorch's default generator on the CPU.
uint64_t draw_seed();

/// The random numbers of one operation on rows of a training step, such as a dropout: row i of its tensors is
/// row first_row + i of the step. Random numbers that depend on the seed and this number alone are the same
/// whichever thread or process takes the row through the model, and with whichever other rows.
struct RowSeed {
  uint64_t seed = 0;
  int64_t first_row = 0;
};
/// draw_seed(), for the rows of the innermost RowScope of this thread, or else from row 0 on.
RowSeed draw_row_seed();

/// The step's row that is row 0 of this thread's tensors; see RowScope.
int64_t first_row();

/// While it lives, row i of this thread's tensors is row `first` + i of the training step.
class RowScope {
 public:
  explicit RowScope(int64_t first);
  ~RowScope();
  RowScope(const RowScope&) = delete;
  RowScope& operator=(const RowScope&) = delete;

 private:
  int64_t outer_;
};

/// While it lives, draw_seed() on this thread takes its seeds from it. The thread that made sources must
/// destroy them, in reverse order.
class SeedSource {
 public:
  SeedSource(const SeedSource&) = delete;
  SeedSource& operator=(const SeedSource&) = delete;

 protected:
  SeedSource();
  ~SeedSource();
  /// The seed that draw_seed() would give without this source.
  uint64_t outer_seed();

 private:
  friend uint64_t draw_seed();
  virtual uint64_t next() = 0;
  SeedSource* outer_;
};

/// A sequence of its own. The parts of a batch that run in parallel have equal ones, so their numbers depend
/// neither on the order in which they run nor on the number of parts.
class RandomScope final : public SeedSource {
 public:
  explicit RandomScope(std::initializer_list<uint64_t> coordinates) : random_(coordinates) {}

 private:
  uint64_t next() override { return random_.next(); }
  CounterRandom random_;
};

/// Records the seeds that are drawn, without changing them.
class SeedRecord final : public SeedSource {
 public:
  const std::vector<uint64_t>& seeds() const { return seeds_; }

 private:
  uint64_t next() override { return seeds_.emplace_back(outer_seed()); }
  std::vector<uint64_t> seeds_;
};

/// Repeats the seeds of a record, on any thread. Throws c10::Error if more are drawn than were recorded.
class SeedReplay final : public SeedSource {
 public:
  explicit SeedReplay(std::vector<uint64_t> seeds) : seeds_(std::move(seeds)) {}

 private:
  uint64_t next() override;
  std::vector<uint64_t> seeds_;
  size_t n_drawn_ = 0;
};

}  // namespace zoo

#include "layers/attention/kinds/sparse_patterns.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/random.h"

namespace zoo {
namespace {

int64_t blocks_in(int64_t n, int64_t size) { return (n + size - 1) / size; }

/// The positions of blocks `begin` … `end` - 1 in a sequence of n positions.
Progression positions_of(int64_t begin, int64_t end, int64_t size, int64_t n) {
  return {.first = begin * size, .step = 1, .count = std::min(end * size, n) - begin * size};
}

}  // namespace

StridedPattern::StridedPattern(Direction direction, int64_t stride)
    : AttentionPattern(direction), stride_(stride) {
  TORCH_CHECK(stride >= 2, "a strided pattern needs a stride of at least 2");
}

Bands StridedPattern::bands(int64_t n) const {
  const Progression all{.first = 0, .step = 1, .count = n};
  Bands bands{{.queries = all, .keys = all, .low = 1 - stride_, .high = stride_}};
  for (int64_t remainder = 0; remainder < std::min(stride_, n); ++remainder) {
    const Progression column{.first = remainder, .step = stride_, .count = (n - remainder - 1) / stride_ + 1};
    bands.push_back({.queries = column, .keys = column, .low = -n, .high = 0});
    if (direction() == Direction::bidirectional)
      bands.push_back({.queries = column, .keys = column, .low = 1, .high = n});
  }
  return directed(std::move(bands));
}

torch::Tensor StridedPattern::sees(const torch::Tensor& queries, const torch::Tensor& keys) const {
  const auto distance = queries - keys;
  return distance.ge(0).logical_and(distance.lt(stride_).logical_or(distance.remainder(stride_).eq(0)));
}

std::string StridedPattern::description() const { return fmt::format("strided(stride={})", stride_); }

FixedPattern::FixedPattern(Direction direction, int64_t stride, int64_t n_summary)
    : AttentionPattern(direction), stride_(stride), n_summary_(n_summary) {
  TORCH_CHECK(n_summary >= 1 && n_summary < stride, "a fixed pattern needs 1 <= n_summary < stride");
}

Bands FixedPattern::bands(int64_t n) const {
  Bands bands;
  const int64_t n_blocks = blocks_in(n, stride_);
  for (int64_t block = 0; block < n_blocks; ++block) {
    const auto own = positions_of(block, block + 1, stride_, n);
    bands.push_back(Band::all(own, own));
    for (int64_t column = stride_ - n_summary_; column < stride_; ++column) {
      const auto column_of = [&](int64_t begin, int64_t end) {
        const int64_t first = begin * stride_ + column;
        const int64_t existing = first < n ? (n - first - 1) / stride_ + 1 : 0;
        return Progression{.first = first, .step = stride_, .count = std::min(end - begin, existing)};
      };
      for (const auto& keys : {column_of(0, block), column_of(block + 1, n_blocks)})
        if (keys.count > 0) bands.push_back(Band::all(own, keys));
    }
  }
  return directed(std::move(bands));
}

torch::Tensor FixedPattern::sees(const torch::Tensor& queries, const torch::Tensor& keys) const {
  const auto block = [&](const torch::Tensor& x) { return x.div(stride_, "floor"); };
  const auto is_summary = keys.remainder(stride_).ge(stride_ - n_summary_);
  return keys.le(queries).logical_and(is_summary.logical_or(block(queries).eq(block(keys))));
}

std::string FixedPattern::description() const {
  return fmt::format("fixed(stride={}, n_summary={})", stride_, n_summary_);
}

BlocksPattern::BlocksPattern(Direction direction, const BlockOptions& options)
    : AttentionPattern(direction), options_(options) {
  TORCH_CHECK(
      options.size() > 0 && options.n_window() >= 0 && options.n_global() >= 0 && options.n_random() >= 0,
      "blocks need a positive size, and no negative number of blocks");
  TORCH_CHECK(options.full_up_to() == 0 || direction == Direction::bidirectional,
              "full_up_to is for a bidirectional pattern");
}

bool BlocksPattern::is_global(int64_t block, int64_t n_blocks) const {
  const bool is_last = direction() == Direction::bidirectional && block >= n_blocks - options_.n_global();
  return block < options_.n_global() || is_last;
}

std::vector<int64_t> BlocksPattern::blocks_of(int64_t block, int64_t n_blocks) const {
  const int64_t end = direction() == Direction::causal ? block + 1 : n_blocks;
  std::vector<int64_t> seen, others;
  for (int64_t other = 0; other < end; ++other) {
    const bool near = std::abs(other - block) <= options_.n_window();
    (near || is_global(block, n_blocks) || is_global(other, n_blocks) ? seen : others).push_back(other);
  }
  CounterRandom random({static_cast<uint64_t>(options_.seed()), static_cast<uint64_t>(block)});
  random.shuffle(others);
  others.resize(std::min(others.size(), static_cast<size_t>(options_.n_random())));
  seen.insert(seen.end(), others.begin(), others.end());
  std::ranges::sort(seen);
  return seen;
}

Bands BlocksPattern::bands(int64_t n) const {
  Bands bands;
  if (n <= options_.full_up_to()) {
    bands.push_back(Band::all({.first = 0, .step = 1, .count = n}, {.first = 0, .step = 1, .count = n}));
    return bands;
  }
  const int64_t n_blocks = blocks_in(n, options_.size());
  for (int64_t block = 0; block < n_blocks; ++block) {
    const auto queries = positions_of(block, block + 1, options_.size(), n);
    const auto seen = blocks_of(block, n_blocks);
    for (size_t i = 0; i < seen.size();) {
      size_t j = i + 1;  // neighbouring blocks of keys are one band
      while (j < seen.size() && seen[j] == seen[j - 1] + 1) ++j;
      bands.push_back(Band::all(queries, positions_of(seen[i], seen[j - 1] + 1, options_.size(), n)));
      i = j;
    }
  }
  return directed(std::move(bands));
}

VisiblePairs BlocksPattern::visible(const PatternInput& input) const {
  if (!input.lengths.defined() || direction() == Direction::causal) return AttentionPattern::visible(input);
  const auto lengths = input.lengths.to(torch::kCPU, torch::kInt64).contiguous();
  std::map<int64_t, std::shared_ptr<const Bands>> by_length;
  std::vector<std::shared_ptr<const Bands>> rows;
  for (int64_t b = 0; b < lengths.numel(); ++b) {
    const int64_t length = lengths.const_data_ptr<int64_t>()[b];
    auto& made = by_length[length];
    if (!made) made = std::make_shared<const Bands>(bands(length));
    rows.push_back(made);
  }
  return VisiblePairs(std::move(rows));
}

torch::Tensor BlocksPattern::sees(const torch::Tensor& queries, const torch::Tensor& keys) const {
  const auto block = [&](const torch::Tensor& x) { return x.div(options_.size(), "floor").clamp_min(0); };
  const auto of_queries = block(queries);
  const auto first = of_queries.min().item<int64_t>(), last = of_queries.max().item<int64_t>();
  const auto table = torch::zeros({last - first + 1, last + 1}, torch::kBool);
  auto visible_blocks = table.accessor<bool, 2>();
  for (int64_t i = first; i <= last; ++i)
    for (const int64_t j : blocks_of(i, last + 1)) visible_blocks[i - first][j] = true;
  const auto visible = table.to(queries.device()).index({of_queries - first, block(keys).clamp_max(last)});
  return visible.logical_and(keys.le(queries));
}

std::string BlocksPattern::description() const {
  return fmt::format("blocks(size={}, n_window={}, n_global={}, n_random={})", options_.size(),
                     options_.n_window(), options_.n_global(), options_.n_random());
}

}  // namespace zoo

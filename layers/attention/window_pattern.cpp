#include "layers/attention/window_pattern.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace zoo {
namespace {

/// Positions begin … end - 1.
struct Run {
  int64_t begin = 0, end = 0;

  Progression positions() const { return {.first = begin, .step = 1, .count = end - begin}; }
};

/// Runs of consecutive positions.
std::vector<Run> runs_of(const std::vector<int64_t>& positions) {
  std::vector<Run> runs;
  for (const int64_t position : positions) {
    if (!runs.empty() && runs.back().end == position) {
      ++runs.back().end;
    } else {
      runs.push_back({position, position + 1});
    }
  }
  return runs;
}

/// The positions 0 … n-1 that are in none of the runs.
std::vector<Run> gaps_between(const std::vector<Run>& runs, int64_t n) {
  std::vector<Run> gaps;
  int64_t begin = 0;
  for (const auto& run : runs) {
    if (begin < run.begin) gaps.push_back({begin, run.begin});
    begin = run.end;
  }
  if (begin < n) gaps.push_back({begin, n});
  return gaps;
}

/// The positions of a run that leave `remainder` when they are divided by `step`.
Progression every(const Run& run, int64_t step, int64_t remainder) {
  const int64_t first = run.begin + ((remainder - run.begin) % step + step) % step;
  return {.first = first, .step = step, .count = first < run.end ? (run.end - first - 1) / step + 1 : 0};
}

/// The windows of the queries of a run, as far as they are in a run of keys. Queries see keys of their own
/// remainder only, so there is one band for each remainder.
void add_windows(const Run& queries, const Run& keys, const WindowOptions& options, Bands& bands) {
  const int64_t reach = options.size() * options.dilation();
  if (keys.begin >= queries.end + reach || queries.begin >= keys.end + reach) return;
  for (int64_t remainder = 0; remainder < options.dilation(); ++remainder) {
    const auto q = every(queries, options.dilation(), remainder),
               k = every(keys, options.dilation(), remainder);
    if (q.count == 0 || k.count == 0) continue;
    const int64_t shift = (q.first - k.first) / options.dilation();
    bands.push_back(
        {.queries = q, .keys = k, .low = shift - options.size(), .high = shift + options.size() + 1});
  }
}

}  // namespace

WindowPattern::WindowPattern(Direction direction, const WindowOptions& options)
    : AttentionPattern(direction), options_(options) {
  TORCH_CHECK(options.size() > 0 && options.dilation() > 0 && options.n_global() >= 0,
              "a window needs a positive size and dilation");
  TORCH_CHECK(options.global_ids().empty() || direction == Direction::bidirectional,
              "a causal window cannot have global tokens by their ids");
}

Bands WindowPattern::bands_with(int64_t n, const std::vector<int64_t>& global) const {
  const auto global_runs = runs_of(global);
  const auto local_runs = gaps_between(global_runs, n);
  Bands bands;
  for (const auto& run : global_runs) {
    if (options_.global_queries())
      bands.push_back(Band::all(run.positions(), {.first = 0, .step = 1, .count = n}));
    for (const auto& queries : local_runs) bands.push_back(Band::all(queries.positions(), run.positions()));
  }
  for (const auto& queries : local_runs)
    for (const auto& keys : local_runs) add_windows(queries, keys, options_, bands);
  return directed(std::move(bands));
}

Bands WindowPattern::bands(int64_t n) const {
  std::vector<int64_t> global;
  for (int64_t i = 0; i < std::min(options_.n_global(), n); ++i) global.push_back(i);
  return bands_with(n, global);
}

std::vector<std::vector<int64_t>> WindowPattern::global_positions(const PatternInput& input) const {
  TORCH_CHECK(input.ids.defined() || options_.global_ids().empty(),
              "global tokens are known by their ids, but the input is not made of tokens");
  const auto ids = input.ids.defined() ? input.ids.to(torch::kCPU).contiguous() : torch::Tensor();
  const int64_t n_rows = options_.global_ids().empty() ? 1 : ids.size(0);
  std::vector<std::vector<int64_t>> result(static_cast<size_t>(n_rows));
  for (int64_t b = 0; b < n_rows; ++b) {
    const int64_t* const row = ids.defined() ? ids.const_data_ptr<int64_t>() + b * input.length : nullptr;
    for (int64_t i = 0; i < input.length; ++i) {
      const bool named =
          row && std::ranges::find(options_.global_ids(), row[i]) != options_.global_ids().end();
      if (i < options_.n_global() || named) result[static_cast<size_t>(b)].push_back(i);
    }
  }
  return result;
}

VisiblePairs WindowPattern::visible(const PatternInput& input) const {
  if (options_.global_ids().empty()) return AttentionPattern::visible(input);
  std::vector<std::shared_ptr<const Bands>> rows;
  for (const auto& global : global_positions(input))
    rows.push_back(std::make_shared<const Bands>(bands_with(input.length, global)));
  return VisiblePairs(std::move(rows), input.lengths);
}

torch::Tensor WindowPattern::sees(const torch::Tensor& queries, const torch::Tensor& keys) const {
  const auto distance = queries - keys;
  auto visible = distance.ge(0).logical_and(distance.le(options_.size() * options_.dilation()));
  if (options_.dilation() > 1) visible = visible.logical_and(distance.remainder(options_.dilation()).eq(0));
  if (options_.n_global() > 0) {
    visible = visible.logical_or(keys.lt(options_.n_global()));
    if (options_.global_queries()) visible = visible.logical_or(queries.lt(options_.n_global()));
  }
  return visible.logical_and(distance.ge(0));
}

std::optional<Reach> WindowPattern::reach() const {
  return Reach{.first = options_.n_global(), .recent = options_.size() * options_.dilation() + 1};
}

std::optional<int64_t> WindowPattern::plain_window() const {
  const bool is_plain = options_.dilation() == 1 && options_.n_global() == 0 && options_.global_ids().empty();
  return is_plain ? std::optional(options_.size()) : std::nullopt;
}

std::string WindowPattern::description() const {
  std::string text = fmt::format("window(size={}", options_.size());
  if (options_.dilation() > 1) text += fmt::format(", dilation={}", options_.dilation());
  if (options_.n_global() > 0) text += fmt::format(", n_global={}", options_.n_global());
  if (!options_.global_ids().empty())
    text += fmt::format(", global_ids=[{}]", fmt::join(options_.global_ids(), ", "));
  return text + ")";
}

}  // namespace zoo

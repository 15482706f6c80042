#include "comparison/planning/matching.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include <fmt/format.h>

#include "base/error.h"

namespace zoo {
namespace {

constexpr double kTolerance = 0.02;
constexpr int64_t kFeedForwardUnit = 4;

class Matcher {
 public:
  Matcher(const ModelPurpose& purpose, MatchQuantity quantity, double target, int64_t length)
      : purpose_(purpose), quantity_(quantity), target_(target), length_(length) {}

  /// (reached - target) / target
  double deviation(const ModelConfig& config) const {
    return matched_quantity(config, purpose_, quantity_, length_) / target_ - 1;
  }

  /// Sets d_ff to the value nearest to the target, between `low` and `high` times the present d_ff. The
  /// quantity grows with d_ff.
  MatchedModel with_feed_forward(ModelConfig config, double low, double high) const {
    const auto width = static_cast<double>(config.feed_forward_width());
    const auto units = [&](double factor) {
      return std::max<int64_t>(1, std::llround(width * factor / kFeedForwardUnit));
    };
    int64_t least = units(low), most = units(high);
    const auto set = [&](int64_t n) {
      config.d_ff = n * kFeedForwardUnit;
      return deviation(config);
    };
    while (least < most) {  // search the smallest one that is not too small
      const int64_t middle = std::midpoint(least, most);
      set(middle) < 0 ? least = middle + 1 : most = middle;
    }
    const double above = set(least);
    if (least > units(low)) {
      const double below = set(least - 1);
      if (std::abs(below) < std::abs(above)) return {config, below};
    }
    set(least);
    return {config, above};
  }

 private:
  ModelPurpose purpose_;
  MatchQuantity quantity_;
  double target_;
  int64_t length_;
};

/// Widths must be multiples of this.
int64_t width_unit(const ModelConfig& config) {
  if (config.head_dim) return 8;
  const bool pairs = config.position == Position::rotary || config.position == Position::sinusoidal;
  return config.n_heads * (pairs ? 2 : 1);
}

bool is_valid(const ModelConfig& config) {
  bool valid = true;
  validate(config, [&](std::string_view, std::string_view) { valid = false; });
  return valid;
}

}  // namespace

double matched_quantity(const ModelConfig& config, const ModelPurpose& purpose, MatchQuantity quantity,
                        int64_t length) {
  const auto cost = unit_cost(config, purpose, length);
  return quantity == MatchQuantity::parameters ? static_cast<double>(cost.parameters) : cost.flops_per_token;
}

MatchedModel match_model(const ModelConfig& config, const ModelPurpose& purpose, MatchQuantity quantity,
                         double target, int64_t length) {
  const Matcher matcher(purpose, quantity, target, length);
  const double now = matcher.deviation(config);
  if (now == 0) return {config, 0};
  const auto simple = matcher.with_feed_forward(config, 0.5, 2);
  if (std::abs(simple.deviation) <= kTolerance / 2) return simple;

  const int64_t unit = width_unit(config);
  const double shape = static_cast<double>(config.feed_forward_width()) / static_cast<double>(config.d_model);
  std::optional<MatchedModel> best;
  double best_distance = 0;
  for (int64_t d_model = unit; d_model <= 4 * config.d_model; d_model += unit) {
    if (4 * d_model < config.d_model) continue;
    ModelConfig scaled = config;
    scaled.d_model = d_model;
    scaled.d_ff = std::max<int64_t>(kFeedForwardUnit, std::llround(shape * static_cast<double>(d_model)));
    if (!is_valid(scaled)) continue;
    const auto matched = matcher.with_feed_forward(scaled, 0.5, 2);
    if (std::abs(matched.deviation) > kTolerance / 2) continue;
    // Among the widths that fit, take the one that changes the shape of the feed-forward network least.
    const double ratio = static_cast<double>(*matched.config.d_ff) / static_cast<double>(*scaled.d_ff);
    const double distance = std::abs(std::log(ratio));
    if (!best || distance < best_distance) best = matched, best_distance = distance;
  }
  if (!best && std::abs(simple.deviation) <= kTolerance) return simple;
  if (!best) {
    throw ConfigError(
        fmt::format("no width of this model comes within 2 % of {:.4g} {}: give it another depth", target,
                    quantity == MatchQuantity::parameters ? "parameters" : "FLOPs per token or image"));
  }
  return *best;
}

}  // namespace zoo

#include "comparison/unequal_machine.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace zoo {

std::optional<std::string> unequal_machine(const Budget& budget, const std::vector<RunResults>& runs) {
  // Seeds of one variant do the same work, and differ by some percent on a quiet machine. Evaluations and
  // checkpoints of different variants take unequal shares of the seconds, too.
  constexpr double of_seeds = 1.15, of_runs = 1.25;
  if (budget.kind != BudgetKind::seconds) return std::nullopt;
  struct Pace {
    double tokens_per_second;
    std::string who;
  };
  const auto said = [](const std::vector<Pace>& paces, double most, std::string_view measure) {
    if (paces.empty()) return std::optional<std::string>();
    const auto [least, largest] = std::ranges::minmax(paces, {}, &Pace::tokens_per_second);
    if (largest.tokens_per_second <= most * least.tokens_per_second) return std::optional<std::string>();
    return std::optional(fmt::format(
        "The machine was busy with something else: {}{} had {:.0f} % of the speed of {}; "
        "train again on a quiet machine, or with a budget of tokens",
        measure, least.who, 100 * least.tokens_per_second / largest.tokens_per_second, largest.who));
  };
  std::vector<Pace> all;
  bool is_measured = true;
  for (const auto& run : runs) {
    if (run.ablation) continue;  // is not trained
    std::vector<Pace> own;
    for (const auto& seed : run.seeds)
      if (seed.state && seed.state->seconds > 0 && seed.state->tokens > 0 && seed.end != SeedEnd::elsewhere)
        own.push_back({static_cast<double>(seed.state->tokens) / seed.state->seconds,
                       fmt::format("{} (seed {})", run.name, seed.seed)});
    if (auto text = said(own, of_seeds, "")) return text;
    const auto* const speed =
        run.speed && run.speed->train_tokens_per_second ? &*run.speed->train_tokens_per_second : nullptr;
    is_measured = is_measured && speed && speed->median > 0;
    if (!is_measured) continue;
    for (auto& pace : own) all.push_back({pace.tokens_per_second / speed->median, std::move(pace.who)});
  }
  return is_measured ? said(all, of_runs, "beside the speeds that are measured in turns, ") : std::nullopt;
}

}  // namespace zoo

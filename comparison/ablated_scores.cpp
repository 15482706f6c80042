#include "comparison/ablated_scores.h"

#include <optional>

#include "analysis/causes/head_kinds.h"
#include "analysis/causes/standing_ablation.h"
#include "base/named_enum.h"
#include "checkpoints/run.h"
#include "comparison/kept_results.h"
#include "comparison/planning/kept_json.h"
#include "io/config/config_file.h"

namespace zoo {
namespace {

std::vector<AblatedPart> parts_of(const Run& run, const AblationConfig& ablation) {
  if (ablation.strongest) return strongest_heads(head_kinds(run).heads, *ablation.strongest, ablation.heads);
  std::vector<AblatedPart> parts;
  for (const auto& name : ablation.parts) parts.push_back(ablated_part(name));
  return parts;
}

std::optional<AblatedScores> scores_in(const Json& json) try {
  auto scores = metrics_in(json.at("scores"));
  if (!scores) return std::nullopt;
  return AblatedScores{.scores = std::move(*scores),
                       .parts = json.at("parts").get<std::vector<std::string>>()};
} catch (const Json::exception&) {
  return std::nullopt;
}

}  // namespace

AblatedScores ablated_scores(const std::filesystem::path& run_dir, const AblationConfig& ablation,
                             const std::filesystem::path& kept_at, c10::Device device) {
  auto key = score_key(run_dir, device);
  auto named = ablation;
  named.of.clear();
  key["ablation"] = dump_config(named);
  return kept(kept_at, key, scores_in,
              [&] {
                const auto run = Run::open(run_dir, device);
                const auto parts = parts_of(run, ablation);
                const int64_t n_batches = ablation.by == AblationBy::zero ? 1 : ablation.batches;
                const StandingAblation standing(run.model(), parts, ablation.by, ablation.positions,
                                                run.batches(Split::valid, {}, n_batches));
                Json names = Json::array();
                for (const auto& part : parts) names.push_back(part.name());
                return Json{{"scores", run.evaluate(Split::valid)}, {"parts", std::move(names)}};
              })
      .value();
}

}  // namespace zoo

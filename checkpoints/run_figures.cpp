#include "checkpoints/run_figures.h"

#include <cstdint>
#include <string>
#include <string_view>

#include "checkpoints/checkpoint.h"
#include "checkpoints/run.h"
#include "io/files.h"
#include "io/json_document.h"

namespace zoo {

std::optional<TrainingFigures> figures_of_run(const std::filesystem::path& dir) {
  const auto path = dir / "metrics.jsonl";
  const auto checkpoint = is_run(dir) ? newest_checkpoint(dir) : std::nullopt;
  if (!checkpoint || !is_there(path)) return std::nullopt;
  const int64_t best = read_training_state(*checkpoint).best_step;
  constexpr std::string_view prefix = "valid_";
  std::optional<TrainingFigures> found;
  const std::string text = read_json_text(path);
  for (size_t begin = 0, end; (end = text.find('\n', begin)) != text.npos; begin = end + 1) {
    const auto line = std::string_view(text).substr(begin, end - begin);
    if (!line.starts_with('{')) continue;  // to parse what is no row takes long
    const auto row = ordered_json_or_null(line);
    if (!row.is_object() || row.value("step", nlohmann::ordered_json()) != best ||
        !row.contains("valid_loss"))
      continue;
    found = TrainingFigures{.step = best};
    if (const auto& tokens = row.value("tokens", nlohmann::ordered_json()); tokens.is_number_integer())
      found->tokens = tokens.get<int64_t>();
    for (const auto& [key, value] : row.items()) {
      if (key.starts_with(prefix) && value.is_number())
        found->validation.emplace(key.substr(prefix.size()), value.get<double>());
    }
  }
  return found;
}

}  // namespace zoo

#include "pages/causes/cause_views.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/named_enum.h"
#include "pages/json.h"

namespace zoo {
namespace {

/// A table whose cells are coloured by numbers. cause_cards.js draws it.
struct Grid {
  std::string title, note, corner;
  std::vector<std::string> rows, columns;
  std::vector<std::vector<std::optional<double>>> values;
  /// In place of the numbers, and what is said of a cell that is chosen.
  std::vector<std::vector<std::string>> texts = {}, hints = {};
};

Json as_json(const Grid& grid) {
  Json values = Json::array();
  for (const auto& row : grid.values) {
    auto& list = values.emplace_back(Json::array());
    for (const auto& value : row) list.push_back(or_null(value));
  }
  return {{"title", grid.title}, {"note", grid.note},       {"corner", grid.corner},
          {"rows", grid.rows},   {"columns", grid.columns}, {"values", std::move(values)},
          {"texts", grid.texts}, {"hints", grid.hints}};
}

Json view_of(const std::string& kind, const std::string& name, const std::string& title,
             const std::string& summary, const std::vector<Grid>& grids, const Json& bars) {
  Json view{{"kind", kind}, {"name", name}, {"title", title}, {"summary", summary}, {"grids", Json::array()}};
  for (const auto& grid : grids) view["grids"].push_back(as_json(grid));
  view["bars"] = bars;
  return view;
}

Grid lens_grid(const LensReport& report) {
  const auto& question = report.question;
  Grid grid{.title = "What the model would say after each layer",
            .note =
                "Columns are the places where it predicts, rows the layers that it has passed. A cell shows "
                "the likeliest output; the stronger its colour, the likelier is the right one.",
            .corner = "layers",
            .rows = {},
            .columns = question.places,
            .values = {}};
  for (int64_t depth = report.n_layers(); depth >= 0; --depth) {
    grid.rows.push_back(std::to_string(depth));
    auto& values = grid.values.emplace_back();
    auto &texts = grid.texts.emplace_back(), &hints = grid.hints.emplace_back();
    const auto& cells = report.depths[static_cast<size_t>(depth)];
    for (size_t place = 0; place < cells.size(); ++place) {
      const auto& cell = cells[place];
      values.emplace_back(cell.probability);
      texts.push_back(cell.likeliest.front().label);
      std::vector<std::string> likeliest;
      for (const auto& [id, label, probability] : cell.likeliest)
        likeliest.push_back(fmt::format("“{}” {:.3f}", label, probability));
      hints.push_back(
          fmt::format("after {} layers: {}; right is “{}” with {:.3f}, rank {}; divergence {:.3f}", depth,
                      fmt::join(likeliest, ", "), question.label(question.targets[place]), cell.probability,
                      cell.rank, cell.divergence));
    }
  }
  return grid;
}

Json bars_of(const LensReport& report, const LensContributions& found) {
  const auto& label = report.question.label;
  if (!found.reason.empty())
    return Json::array(
        {{{"title", "No parts of the answer"}, {"note", found.reason}, {"items", Json::array()}}});
  Json items = Json::array();
  auto parts = found.contributions.parts;
  std::ranges::stable_sort(parts, std::ranges::greater(),
                           [](const auto& part) { return std::abs(part.logit); });
  for (const auto& [name, logit] : parts) items.push_back({{"name", name}, {"value", logit}});
  return Json::array(
      {{{"title", fmt::format("Parts of the logit of “{}” at place {}", label(found.output), found.place)},
        {"note",
         fmt::format("They add up to {:.4f}. The final norm keeps the scale that it has for their sum.",
                     found.contributions.logit)},
        {"items", std::move(items)}}});
}

/// Values of heads as rows of layers, a grid for each side and kind.
class HeadGrids {
 public:
  HeadGrids(std::string title, std::string note) : title_(std::move(title)), note_(std::move(note)) {}
  void add(const ActivationPlace& place, int64_t head, double value, std::string hint) {
    auto& cells = grids_[{place.side, place.kind}];
    cells[{place.layer, head}] = {value, std::move(hint)};
  }
  void append_to(std::vector<Grid>& grids) const {
    for (const auto& [key, cells] : grids_) {
      const auto& [side, kind] = key;
      const auto of_side = side == StackSide::only ? std::string() : fmt::format(", {}", name_of(side));
      const auto is_cross = kind == ActivationKind::cross_attention_heads;
      Grid grid{.title = title_ + of_side + (is_cross ? ", cross-attention" : ""),
                .note = note_,
                .corner = "layer",
                .rows = {},
                .columns = {},
                .values = {}};
      int64_t n_layers = 0, n_heads = 0;
      for (const auto& [at, cell] : cells) {
        n_layers = std::max(n_layers, at.first + 1);
        n_heads = std::max(n_heads, at.second + 1);
      }
      for (int64_t head = 0; head < n_heads; ++head) grid.columns.push_back(fmt::format("head {}", head));
      for (int64_t layer = n_layers - 1; layer >= 0; --layer) {
        grid.rows.push_back(std::to_string(layer));
        auto& values = grid.values.emplace_back();
        auto& hints = grid.hints.emplace_back();
        for (int64_t head = 0; head < n_heads; ++head) {
          const auto found = cells.find({layer, head});
          values.push_back(found == cells.end() ? std::nullopt : std::optional(found->second.first));
          hints.push_back(found == cells.end() ? std::string() : found->second.second);
        }
      }
      grids.push_back(std::move(grid));
    }
  }

 private:
  std::string title_, note_;
  std::map<std::pair<StackSide, ActivationKind>,
           std::map<std::pair<int64_t, int64_t>, std::pair<double, std::string>>>
      grids_;
};

/// Positions of one kind of part, a row for each layer.
std::vector<Grid> position_grids(const PatchReport& report) {
  std::map<std::pair<StackSide, ActivationKind>, std::map<int64_t, std::map<int64_t, double>>> found;
  for (const auto& [patch, difference, recovered] : report.positions)
    found[{patch.part.place.side, patch.part.place.kind}][patch.part.place.layer][*patch.position] =
        recovered;
  std::vector<Grid> grids;
  for (const auto& [key, layers] : found) {
    const auto& [side, kind] = key;
    const auto& clean = report.clean;
    const bool decodes = side == StackSide::decoder && !clean.target_tokens.empty();
    const auto& tokens = decodes ? clean.target_tokens : clean.source_tokens;
    const auto& others = decodes ? report.corrupt.target_tokens : report.corrupt.source_tokens;
    const auto name = ActivationPlace{.kind = kind, .layer = 0, .side = side}.name();
    Grid grid{
        .title = kind == ActivationKind::residual
                     ? name.substr(0, name.rfind('.')) + " stream"
                     : name.substr(name.rfind('.') + 1) +
                           (side == StackSide::only ? std::string() : fmt::format(", {}", name_of(side))),
        .note =
            "One activation of the clean text at one position. A column where the texts differ names both.",
        .corner = kind == ActivationKind::residual ? "before layer" : "layer",
        .rows = {},
        .columns = {},
        .values = {}};
    for (size_t t = 0; t < tokens.size(); ++t)
      grid.columns.push_back(t < others.size() && others[t] != tokens[t] ? tokens[t] + " / " + others[t]
                                                                         : tokens[t]);
    for (auto layer = layers.rbegin(); layer != layers.rend(); ++layer) {
      grid.rows.push_back(std::to_string(layer->first));
      auto& values = grid.values.emplace_back();
      for (const auto& [position, recovered] : layer->second) values.emplace_back(recovered);
    }
    grids.push_back(std::move(grid));
  }
  return grids;
}

}  // namespace

Json lens_view(const LensReport& report, const std::optional<LensContributions>& contributions) {
  const auto& question = report.question;
  const auto title = question.target.empty() ? question.input : question.input + " → " + question.target;
  const bool is_trained = report.kind == LensKind::trained;
  return view_of(
      is_trained ? "Trained lens" : "Lens", report.name, title,
      fmt::format(
          "{} layers, {} places. The vectors after each layer go through {}the final norm and the head.",
          report.n_layers(), question.places.size(),
          is_trained ? "a map that was trained for this layer, " : ""),
      {lens_grid(report)}, contributions ? bars_of(report, *contributions) : Json::array());
}

Json ablation_view(const AblationReport& report) {
  const double whole = report.whole.loss();
  HeadGrids heads("Loss without a head", "How much the loss rises or falls without one head.");
  Json items = Json::array();
  for (const auto& [parts, score] : report.rows) {
    const double change = score.loss() - whole;
    const auto accuracy =
        report.has_accuracy ? fmt::format(", accuracy {:.4f}", score.accuracy()) : std::string();
    std::vector<std::string> names;
    for (const auto& part : parts) names.push_back(part.name());
    const auto name = fmt::format("{}", fmt::join(names, " + "));
    if (parts.size() == 1 && parts.front().head) {
      heads.add(parts.front().place, *parts.front().head, change,
                fmt::format("without {}: loss {:.4f}{}", name, score.loss(), accuracy));
    } else {
      items.push_back({{"name", name}, {"value", change}});
    }
  }
  std::vector<Grid> grids;
  heads.append_to(grids);
  Json bars = Json::array();
  if (!items.empty())
    bars.push_back({{"title", "Loss without a sub-layer"},
                    {"note", "How much the loss rises or falls without it."},
                    {"items", std::move(items)}});
  const auto positions = report.positions.empty()
                             ? std::string()
                             : fmt::format(", at positions {}", fmt::join(report.positions, ", "));
  return view_of(
      "Ablation", report.name, report.data,
      fmt::format("The loss is {:.4f} over {} targets{}. In place of an activation: {}{}.", whole,
                  report.whole.targets,
                  report.has_accuracy ? fmt::format(", the accuracy {:.4f}", report.whole.accuracy()) : "",
                  name_of(report.by), positions),
      grids, bars);
}

Json patch_view(const PatchReport& report) {
  HeadGrids heads("Heads, at all positions",
                  "0: the corrupted text's answer stays; 1: the clean one is back.");
  for (const auto& [patch, difference, recovered] : report.heads) {
    heads.add(
        patch.part.place, *patch.part.head, recovered,
        fmt::format("{}: {:.3f} recovered, difference {:.4f}", patch.part.name(), recovered, difference));
  }
  std::vector<Grid> grids;
  heads.append_to(grids);
  for (auto& grid : position_grids(report)) grids.push_back(std::move(grid));
  const auto& label = report.clean.label;
  return view_of(
      "Patching", report.name, report.clean.input + " / " + report.corrupt.input,
      fmt::format("The logit of “{}” less that of “{}” is {:.4f} for the clean text and {:.4f} for the "
                  "corrupted one. Recovered: how much of this difference a patch brings back.",
                  label(report.answer), label(report.against), report.clean_difference,
                  report.corrupt_difference),
      grids, Json::array());
}

}  // namespace zoo

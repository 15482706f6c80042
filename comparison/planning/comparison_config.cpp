#include "comparison/planning/comparison_config.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <map>
#include <set>
#include <string_view>
#include <system_error>
#include <tuple>

#include <fmt/format.h>

#include "base/error.h"
#include "checkpoints/stored_model.h"
#include "comparison/planning/copied_models.h"
#include "experiments/load_experiment.h"
#include "interop/foreign_files.h"
#include "io/config/config_tree.h"
#include "io/config/find_config.h"
#include "io/files.h"

namespace zoo {
namespace {

/// By BudgetKind.
constexpr std::optional<double> BudgetConfig::* kBudgets[] = {&BudgetConfig::steps, &BudgetConfig::tokens,
                                                              &BudgetConfig::flops, &BudgetConfig::seconds};

namespace fs = std::filesystem;

/// A variant before it is read: its name, its values in the grid, and the keys in which it differs from the
/// base. The other members are those of Variant.
struct Draft {
  std::string name, cell;
  ConfigNode keys;
  std::string variant = {};
  std::vector<KeyValue> grid = {};
  std::string size = {}, without_size = {};
  std::optional<AblationConfig> ablation = {};
};

/// The most rows of a comparison, and the most values in their configurations together. A few keys of a grid
/// make more combinations than anybody can train.
constexpr size_t kMostVariants = 1000, kMostValues = 2'000'000;

ConfigNode empty_map(const ConfigPlace& place) {
  ConfigNode map;
  map.kind = ConfigNode::Kind::kMap;
  map.place = place;
  return map;
}

[[noreturn]] void fail(const ConfigPlace& place, std::string_view problem) {
  throw ConfigError(fmt::format("{}: {}", place.text(), problem));
}

[[noreturn]] void fail_too_many(const ConfigPlace& place) {
  fail(place, fmt::format("makes more than {} variants, or variants with too many keys", kMostVariants));
}

/// The entries of a map in the order of the file; the tree keeps them sorted by key.
std::vector<std::pair<std::string, ConfigNode::Entry>> in_order(const ConfigNode& map) {
  std::vector<std::pair<std::string, ConfigNode::Entry>> entries(map.entries.begin(), map.entries.end());
  std::stable_sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::tie(a.second.place.line, a.second.place.column) <
           std::tie(b.second.place.line, b.second.place.column);
  });
  return entries;
}

fs::path find_base(const ConfigNode& base) {
  try {
    return find_config(ConfigPath(base.text, base.place.directory().value_or("")));
  } catch (const ConfigError& error) {
    fail(base.place, fmt::format("base: {}", error.what()));
  }
}

ConfigNode read_base(const ConfigNode& base) {
  if (base.is_map()) return resolve_extends(base);
  if (base.kind != ConfigNode::Kind::kScalar || base.text.empty())
    fail(base.place,
         fmt::format("base must be a configuration file or a group of keys, not {}", base.shown()));
  const auto path = find_base(base);
  auto tree = load_config_tree(path, &base.place);
  // A file without a name gets the name that zoo train gives its run.
  if (tree.find("name") == nullptr) {
    ConfigNode name = base;
    name.text = path.stem().string();
    tree.entries.emplace("name", ConfigNode::Entry{base.place, name});
  }
  return tree;
}

/// A key of a variant's `ablate` as an error about the file.
[[noreturn]] void fail_ablation(const ConfigNode& keys, std::string_view name, std::string_view problem) {
  fail(keys.place, fmt::format("variant '{}': ablate: {}", name, problem));
}

/// Takes `ablate` out of the keys of a variant, and gives it those of the variant whose model it has.
void read_ablation(Draft& draft, const std::vector<Draft>& above) {
  const auto taken = draft.keys.entries.extract("ablate");
  if (taken.empty()) return;
  const auto& keys = taken.mapped().value;
  if (!draft.keys.entries.empty())
    fail_ablation(keys, draft.name, "this variant is another one's trained model, so it has no other keys");
  if (!keys.is_map())
    fail_ablation(keys, draft.name, fmt::format("this is no group of keys: {}", keys.shown()));
  const auto file = ConfigFile::from_tree(keys.place.text(), keys);
  AblationConfig ablation;
  file.read(ablation);
  const auto of = std::ranges::find(above, ablation.of, &Draft::name);
  if (of == above.end())
    fail_ablation(
        keys, draft.name,
        fmt::format("of: no variant above it is called '{}': name one that is trained", ablation.of));
  if (of->ablation)
    fail_ablation(keys, draft.name,
                  fmt::format("of: '{}' is an ablation itself: name one that is trained", ablation.of));
  if (ablation.parts.empty() == !ablation.strongest)
    fail_ablation(keys, draft.name, "give one of `parts`, such as [1.0], and `strongest`, such as induction");
  if (file.sets("heads") && !ablation.strongest) fail_ablation(keys, draft.name, "heads is for `strongest`");
  if (file.sets("batches") && ablation.by == AblationBy::zero)
    fail_ablation(keys, draft.name, "batches is for `by: mean` and `by: resample`: zeros need no data");
  for (const auto& part : ablation.parts) {
    try {
      ablated_part(part);
    } catch (const UsageError& error) {
      fail_ablation(keys, draft.name, fmt::format("parts: {}", error.what()));
    }
  }
  draft.keys = of->keys;
  draft.ablation = std::move(ablation);
}

std::vector<Draft> read_variants(const ConfigNode* variants, const ConfigPlace& place) {
  if (variants == nullptr || variants->is_null()) return {{.name = "", .cell = "", .keys = empty_map(place)}};
  if (!variants->is_map() || variants->entries.empty()) {
    fail(variants->place,
         fmt::format("variants must be names, each with the keys that differ from the base, not {}",
                     variants->shown()));
  }
  if (variants->entries.size() > kMostVariants) fail_too_many(variants->place);
  std::vector<Draft> drafts;
  for (auto& [name, entry] : in_order(*variants)) {
    ConfigNode keys = entry.value.is_null() ? empty_map(entry.place) : entry.value;
    if (!keys.is_map()) {
      fail(keys.place, fmt::format("variant '{}' must be a group of keys, not {}", name, keys.shown()));
    }
    drafts.push_back({.name = name, .cell = "", .keys = resolve_extends(std::move(keys)), .variant = name});
  }
  for (auto& draft : drafts) {
    const std::vector<Draft> above(drafts.data(), &draft);
    read_ablation(draft, above);
  }
  return drafts;
}

/// The first dotted key that both trees set, if there is one: to a value, or as a group of which one tree
/// sets the whole. Keys of a file that `one` extends may be set anew.
std::optional<std::string> set_by_both(const ConfigNode& one, const ConfigNode& other) {
  for (const auto& [key, entry] : one.entries) {
    const auto* const twin = other.find(key);
    if (twin == nullptr) continue;
    if (!entry.value.is_map() || !twin->value.is_map()) {
      if (!entry.place.named_by_file) return key;
      continue;
    }
    if (const auto rest = set_by_both(entry.value, twin->value)) return fmt::format("{}.{}", key, *rest);
  }
  return std::nullopt;
}

/// Adds keys that `what`, such as "grid", gives to a row. One key in two places would lose one of its values.
void add_keys(ConfigNode& keys, ConfigNode added, std::string_view what, const std::string& row) {
  if (const auto twice = set_by_both(keys, added)) {
    fail(added.place, fmt::format("{}: {} has a value of its own in {}: say it in one place only", what,
                                  *twice, row.empty() ? "the grid" : fmt::format("'{}'", row)));
  }
  merge_config_trees(keys, std::move(added));
}

/// "model.n_layers" → "n_layers"
std::string last_part(const std::string& dotted) { return dotted.substr(dotted.rfind('.') + 1); }

/// The value of a key of a grid, for people.
std::string shown(const ConfigNode& value) {
  return value.kind == ConfigNode::Kind::kScalar ? value.text : value.shown();
}

/// Whether two values, or two groups of keys, are written alike.
bool are_equal(const ConfigNode& a, const ConfigNode& b) {
  const auto same_entry = [](const auto& one, const auto& other) {
    return one.first == other.first && are_equal(one.second.value, other.second.value);
  };
  return a.kind == b.kind && a.text == b.text && std::ranges::equal(a.items, b.items, are_equal) &&
         std::ranges::equal(a.entries, b.entries, same_entry);
}

/// Gives a draft one value of a key of the grid. `what`: the key of the comparison file, for messages.
void add_to(Draft& draft, const std::string& key, const ConfigNode& value, std::string_view what) {
  const auto named = fmt::format("{}={}", last_part(key), shown(value));
  add_keys(draft.keys, nested_config_tree(key, value), what, draft.name);
  for (auto* text : {&draft.name, &draft.cell}) *text += (text->empty() ? "" : ", ") + named;
  draft.grid.push_back({key, shown(value)});
}

/// A key of a grid needs values that differ, and no other part of the comparison may decide them.
void check_values(const std::string& key, const ConfigNode& values, std::string_view what) {
  if (values.kind != ConfigNode::Kind::kList)
    fail(values.place, fmt::format("{}: {} must be a list of values, not {}", what, key, values.shown()));
  if (values.items.empty()) fail(values.place, fmt::format("{}: {} has no values", what, key));
  if (key == "training.seed")
    fail(values.place,
         fmt::format("{}: {} is no key of a grid: `seeds` gives every row its seeds", what, key));
  for (auto value = values.items.begin(); value != values.items.end(); ++value) {
    const auto is_same = [&](const ConfigNode& other) { return are_equal(other, *value); };
    if (std::any_of(values.items.begin(), value, is_same))
      fail(value->place, fmt::format("{}: {} has the value {} twice", what, key, shown(*value)));
  }
}

/// `what`: the key of the comparison file, for messages.
std::vector<Draft> expand(std::vector<Draft> drafts, const ConfigNode* grid, std::string_view what) {
  if (grid == nullptr || grid->is_null()) return drafts;
  if (!grid->is_map())
    fail(grid->place,
         fmt::format("{} must be keys, each with a list of values, not {}", what, grid->shown()));
  size_t n_values = 0;
  for (const auto& [key, entry] : in_order(*grid)) {
    const auto& values = entry.value;
    check_values(key, values, what);
    std::vector<Draft> expanded;
    for (const auto& draft : drafts) {
      for (const auto& value : values.items) {
        Draft next = draft;
        add_to(next, key, value, what);
        n_values += cost_of(next.keys);
        if (expanded.size() == kMostVariants || n_values > kMostValues) fail_too_many(grid->place);
        expanded.push_back(std::move(next));
      }
    }
    drafts = std::move(expanded);
  }
  return drafts;
}

/// The combinations of `grid` that a fractional design has, for each draft. Column j of the design is the
/// parity of the run's bits in the j-th number with an odd number of bits: the sum of two columns is none of
/// them.
std::vector<Draft> expand_fraction(const std::vector<Draft>& drafts, const ConfigNode& grid) {
  const auto keys = grid.is_map() ? in_order(grid) : std::vector<std::pair<std::string, ConfigNode::Entry>>();
  constexpr size_t fewest = 4, most = 64;
  if (keys.size() < fewest || keys.size() > most) {
    fail(grid.place, fmt::format("design: fractional is for {} to {} keys of a grid, and these are {}",
                                 fewest, most, keys.size()));
  }
  for (const auto& [key, entry] : keys) {
    check_values(key, entry.value, "grid");
    if (entry.value.kind != ConfigNode::Kind::kList || entry.value.items.size() != 2)
      fail(entry.value.place,
           fmt::format("design: fractional needs two values of each key, for {} too", key));
  }
  std::vector<unsigned> masks;
  for (unsigned mask = 1; masks.size() < keys.size(); ++mask) {
    if (std::popcount(mask) % 2 == 1) masks.push_back(mask);
  }
  const unsigned n_runs = std::bit_ceil(masks.back() + 1);
  std::vector<Draft> expanded;
  for (const auto& draft : drafts) {
    for (unsigned run = 0; run < n_runs; ++run) {
      Draft next = draft;
      for (size_t j = 0; j < keys.size(); ++j) {
        const auto& [key, entry] = keys[j];
        add_to(next, key, entry.value.items[static_cast<size_t>(std::popcount(run & masks[j]) % 2)], "grid");
      }
      if (expanded.size() == kMostVariants) fail_too_many(grid.place);
      expanded.push_back(std::move(next));
    }
  }
  return expanded;
}

/// Every draft at every size.
std::vector<Draft> at_sizes(const std::vector<Draft>& drafts, const std::vector<Draft>& sizes) {
  std::vector<Draft> all;
  for (const auto& draft : drafts) {
    for (const auto& size : sizes) {
      if (all.size() == kMostVariants) fail_too_many(size.keys.place);
      Draft next{.name = draft.name + (draft.name.empty() ? "" : ", ") + size.name,
                 .cell = draft.cell + (draft.cell.empty() ? "" : ", ") + size.name,
                 .keys = draft.keys,
                 .variant = draft.variant,
                 .grid = draft.grid,
                 .size = size.name,
                 .without_size = draft.name,
                 .ablation = draft.ablation};
      add_keys(next.keys, size.keys, fmt::format("sizes: {}", size.name), draft.name);
      all.push_back(std::move(next));
    }
  }
  return all;
}

/// The groups of keys under `sizes`; none without the key.
std::vector<Draft> read_sizes(const ConfigNode* sizes, const ConfigPlace& place) {
  if (sizes == nullptr || sizes->is_null()) return {};
  if (!sizes->is_map() || sizes->entries.size() < 2) {
    fail(sizes->place,
         fmt::format("sizes must be two or more names, each with the keys that make the size, not {}",
                     sizes->shown()));
  }
  auto groups = read_variants(sizes, place);
  for (const auto& group : groups) {
    const auto same =
        std::ranges::find_if(groups, [&](const Draft& other) { return are_equal(other.keys, group.keys); });
    if (same->name != group.name)
      fail(group.keys.place, fmt::format("sizes: '{}' has the keys of '{}'", group.name, same->name));
  }
  return groups;
}

/// Throws ConfigError for a key that says how long a training is, because something else `says` that.
void check_lengths_of(const ConfigNode& grid, std::string_view what, std::string_view says) {
  for (const auto* const key : {"training.steps", "training.epochs", "training.max_seconds"}) {
    if (const auto* const values = grid.find(key))
      fail(values->value.place,
           fmt::format("{}: {} cannot be here: {} how long every training is", what, key, says));
  }
}

/// Takes `tune.grid` out of the file and returns the candidates; none without `tune`.
std::vector<Draft> take_candidates(ConfigNode& tree) {
  const auto tune = tree.entries.find("tune");
  if (tune == tree.entries.end() || tune->second.value.is_null()) return {};
  auto& keys = tune->second.value;
  if (!keys.is_map()) return {};  // reading the settings says what is wrong
  const auto grid = keys.entries.extract("grid");
  if (grid.empty() || !grid.mapped().value.is_map() || grid.mapped().value.entries.empty())
    fail(keys.place, "tune needs `grid`: the keys to choose, each with a list of values");
  check_lengths_of(grid.mapped().value, "tune.grid", "the budget and tune.share say");
  return expand({{.name = "", .cell = "", .keys = empty_map(keys.place)}}, &grid.mapped().value, "tune.grid");
}

void validate(const ComparisonSettings& c, const ConfigFile& file) {
  const auto& budget = c.budget;
  const int given = int{budget.steps.has_value()} + int{budget.tokens.has_value()} +
                    int{budget.flops.has_value()} + int{budget.seconds.has_value()};
  if (given > 1)
    file.fail("budget", "gives several amounts: give only one of steps, tokens, flops and seconds");
  for (const int64_t length : c.evaluate_lengths) {
    if (length < 3)
      file.fail("evaluate_lengths", fmt::format("{} is too short: a sequence has at least 3 tokens", length));
  }
  if (c.name.empty() || c.name.front() == '.' || c.name.find('/') != c.name.npos)
    file.fail("name", fmt::format("'{}' cannot be the name of a directory", c.name));
}

/// "a", "a" → "a", "a (2)"
void make_names_unique(std::vector<Variant>& variants) {
  std::set<std::string> taken;
  for (auto& variant : variants) {
    const std::string name = variant.name;
    for (int i = 2; !taken.insert(variant.name).second; ++i) variant.name = fmt::format("{} ({})", name, i);
  }
}

/// `of` names a variant in the file, and then the row of this variant at the same place of grid and sizes.
void name_ablated_rows(std::vector<Variant>& variants) {
  for (auto& row : variants) {
    if (!row.ablation) continue;
    const auto of = std::ranges::find_if(variants, [&](const Variant& other) {
      return other.variant == row.ablation->of && other.grid == row.grid && other.size == row.size;
    });
    row.ablation->of = of->name;
  }
}

}  // namespace

Budget parse_budget(std::string_view text) {
  const auto fail = [&] {
    throw UsageError(fmt::format(
        "--budget {}: write it as steps=N, tokens=N, flops=N or seconds=N, such as tokens=2e6", text));
  };
  const size_t equals = text.find('=');
  if (equals == text.npos) fail();
  const auto kind = enumerator_named<BudgetKind>(text.substr(0, equals));
  if (!kind) fail();
  const auto number = text.substr(equals + 1);
  Budget budget{.kind = *kind};
  const char* const end = number.data() + number.size();
  const auto result = std::from_chars(number.data(), end, budget.amount);
  if (result.ec != std::errc() || result.ptr != end || !(budget.amount > 0) || !std::isfinite(budget.amount))
    fail();
  return budget;
}

void describe(ConfigVisitor& v, BudgetConfig& c) {
  v.field("steps", c.steps, "Optimiser steps.", Limits::at_least(1));
  v.field("tokens", c.tokens, "Tokens read.", Limits::positive());
  v.field("flops", c.flops, "FLOPs of forward and backward passes.", Limits::positive());
  v.field("seconds", c.seconds, "Time of training, evaluation included.", Limits::positive());
}

void describe(ConfigVisitor& v, TuneConfig& c) {
  v.field("share", c.share, "The share of the budget that each short training gets.",
          {.min = 0, .max = 1, .min_excluded = true});
  v.field("seeds", c.seeds, "Short trainings of each candidate; their seeds are used for nothing else.",
          Limits::between(1, 100));
}

void describe(ConfigVisitor& v, AblationConfig& c) {
  v.field("of", c.of, "The variant, above this one, whose trained models are ablated.");
  v.field("parts", c.parts, "Names of heads and other parts, such as 3.2 or layers.3.feed_forward.");
  v.field(
      "strongest", c.strongest,
      "In place of `parts`: the heads of this kind with the largest weights, found in each trained model.");
  v.field("heads", c.heads, "How many heads `strongest` takes.", Limits::between(1, 1000));
  v.field("by", c.by, "What stands in the place of the activations.");
  v.field("positions", c.positions, "Ablate at these positions only, from 0; default: at all.");
  v.field("batches", c.batches,
          "How many batches of the validation data means are over, or activations are resampled from.",
          Limits::between(1, 1000));
}

void describe(ConfigVisitor& v, ComparisonSettings& c) {
  v.field("name", c.name,
          "Names the directory runs/NAME, unless another is given; default: the name of the file.");
  v.field("title", c.title, "Title of the report.");
  v.field("folklore", c.folklore,
          "What people say about the question; the report shows it beside the findings.");
  v.field("note", c.note,
          "What a reader should know about the result, such as why it contradicts the folklore; the report "
          "shows it beside the findings.");
  v.field("budget", c.budget,
          "How long every variant is trained; default: as in the configuration of the first variant.");
  v.field("tune", c.tune,
          "Each variant chooses its own best values among those of `grid` (dotted keys, each with a list of "
          "values) by short trainings, before it is compared.");
  v.field("seeds", c.seeds, "Every variant is trained with the seeds 1, 2, … up to this number.",
          Limits::between(1, 1000));
  v.field("match", c.match,
          "Scale widths until parameters or FLOPs per token agree with the first variant's.");
  v.field(
      "design", c.design,
      "Which combinations of `grid` are compared: all, or for keys with two values each a part, which shows "
      "what each key changes on average.");
  v.field("margin", c.margin,
          "Differences below this do not matter: a share of the baseline's value, or for a metric in percent "
          "points / 100. Rows whose difference is surely smaller are called the same.",
          Limits::between(0, 1));
  v.field(
      "correction", c.correction,
      "How p-values are corrected for the number of tests: holm holds the chance of any false difference to "
      "5 %, benjamini_hochberg the share of false ones among the differences that are found.");
  v.field("subject", c.subject,
          "Dotted keys, such as init_from, that a fair comparison has in common and that this one is about.");
  v.field("inputs", c.inputs,
          "Texts that every variant continues, answers, classifies or fills in; default: some "
          "of the validation data. The report shows the attention maps of the first text that has at most 48 "
          "tokens.");
  v.field("evaluate_lengths", c.evaluate_lengths,
          "language_modeling: further sequence lengths at which the trained models are evaluated.");
  v.field("speed_seconds", c.speed_seconds,
          "Seconds for measuring the speed of each variant; 0: not measured.", Limits::at_least(0));
  v.field("scaling", c.scaling, "Measure how the cost of each variant grows with the length of its input.");
}

BudgetConfig config_of(const Budget& budget) {
  BudgetConfig config;
  config.*kBudgets[static_cast<size_t>(budget.kind)] = budget.amount;
  return config;
}

std::optional<Budget> Comparison::budget() const {
  for (size_t i = 0; i < std::size(kBudgets); ++i) {
    if (const auto& amount = settings.budget.*kBudgets[i])
      return Budget{.kind = static_cast<BudgetKind>(i), .amount = *amount};
  }
  return std::nullopt;
}

bool is_comparison_file(const fs::path& path) {
  if (!has_file(path)) return false;
  const auto tree = load_config_tree(path);
  constexpr auto keys =
      std::to_array<std::string_view>({"base", "variants", "grid", "tune", "sizes", "tasks"});
  return std::ranges::any_of(keys, [&](std::string_view key) { return tree.find(key) != nullptr; });
}

namespace {

std::optional<ConfigNode> take(ConfigNode& tree, const std::string& key) {
  const auto entry = tree.entries.extract(key);
  if (entry.empty()) return std::nullopt;
  return std::move(entry.mapped().value);
}

/// The comparison that a tree without `tasks` describes. task_keys: what comes before `base`.
Comparison comparison_from(const fs::path& path, ConfigNode tree, const std::vector<std::string>& overrides,
                           const ConfigNode* task_keys = nullptr) {
  const auto base = take(tree, "base"), variants = take(tree, "variants"), grid = take(tree, "grid"),
             sizes = take(tree, "sizes");
  const auto candidates = take_candidates(tree);
  const ConfigPlace place = tree.place;

  Comparison comparison;
  comparison.settings.name = path.stem().string();
  comparison.yaml = read_file(path);
  const auto file = ConfigFile::from_tree(path.string(), std::move(tree));
  file.read(comparison.settings);
  validate(comparison.settings, file);

  auto common = task_keys != nullptr ? *task_keys : empty_map(place);
  if (base) merge_config_trees(common, read_base(*base));
  const auto named = read_variants(variants ? &*variants : nullptr, place);
  if (grid && comparison.budget()) check_lengths_of(*grid, "grid", "the budget says");
  const bool is_fraction = comparison.settings.design == Design::fractional;
  if (is_fraction && !grid) file.fail("design", "fractional is for a `grid`");
  auto drafts = is_fraction ? expand_fraction(named, *grid) : expand(named, grid ? &*grid : nullptr, "grid");
  if (const auto groups = read_sizes(sizes ? &*sizes : nullptr, place); !groups.empty()) {
    const auto& budget = comparison.settings.budget;
    if (budget.flops || budget.seconds)
      file.fail("budget", "with `sizes`, larger models need more FLOPs and time: give steps or tokens");
    drafts = at_sizes(drafts, groups);
    for (const auto& group : groups) comparison.sizes.push_back(group.name);
  }
  const size_t n_experiments = drafts.size() * (1 + candidates.size());
  if (n_experiments * cost_of(common) > kMostValues || n_experiments > 2 * kMostVariants)
    fail_too_many(place);
  for (const auto& draft : drafts) {
    auto keys = common;
    merge_config_trees(keys, draft.keys);
    const auto experiment_with = [&](const ConfigNode& all_keys) {
      Experiment defaults;
      defaults.name = comparison.settings.name;
      return read_experiment(ConfigFile::from_tree(path.string(), all_keys, overrides), std::move(defaults));
    };
    Variant variant{.name = draft.name,
                    .experiment = experiment_with(keys),
                    .variant = draft.variant,
                    .grid = draft.grid,
                    .size = draft.size,
                    .without_size = draft.without_size,
                    .ablation = draft.ablation};
    for (const auto& candidate : candidates) {
      if (variant.ablation) break;  // it has the choice of its model
      auto own_keys = draft.keys, candidate_keys = common;
      add_keys(own_keys, candidate.keys, "tune.grid", draft.name);
      merge_config_trees(candidate_keys, std::move(own_keys));
      variant.candidates.push_back({candidate.name, experiment_with(candidate_keys), candidate.grid});
    }
    // With a single variant, every row of the grid is compared with the first row.
    if (named.size() > 1) variant.cell = draft.cell;
    if (named.size() == 1 && grid && !draft.size.empty()) variant.cell = draft.size;
    if (variant.name.empty()) variant.name = variant.experiment.name;
    if (variant.variant.empty()) variant.variant = variant.experiment.name;
    if (variant.without_size.empty()) variant.without_size = variant.experiment.name;
    comparison.variants.push_back(std::move(variant));
  }
  make_names_unique(comparison.variants);
  name_ablated_rows(comparison.variants);
  return comparison;
}

/// The tasks of a comparison file and their keys.
std::vector<std::pair<std::string, ConfigNode>> read_tasks(const ConfigNode& tasks) {
  std::vector<std::pair<std::string, ConfigNode>> read;
  std::set<std::string> names;
  const auto add = [&](std::string name, const ConfigNode& base) {
    constexpr size_t longest = 64;
    const bool is_plain = !name.empty() && name.size() <= longest && name.front() != '.' &&
                          name.find_first_of("/\\\n") == name.npos;
    if (!is_plain) fail(base.place, fmt::format("tasks: '{}' cannot be the name of a directory", name));
    if (!names.insert(name).second) fail(base.place, fmt::format("tasks: {} comes twice", name));
    read.emplace_back(std::move(name), read_base(base));
  };
  if (tasks.kind == ConfigNode::Kind::kList) {
    for (const auto& base : tasks.items) {
      if (base.kind != ConfigNode::Kind::kScalar || base.text.empty())
        fail(base.place, fmt::format("tasks: a list has configuration files, not {}", base.shown()));
      add(fs::path(base.text).stem().string(), base);
    }
  } else if (tasks.is_map()) {
    for (const auto& [name, entry] : in_order(tasks)) add(name, entry.value);
  }
  if (read.size() < 2) {
    fail(tasks.place,
         fmt::format(
             "tasks must be two or more names, each with a configuration file or a group of keys, or a "
             "list of configuration files, not {}",
             tasks.shown()));
  }
  constexpr size_t most = 64;
  if (read.size() > most) fail(tasks.place, fmt::format("tasks: more than {} tasks", most));
  return read;
}

}  // namespace

bool is_task_comparison_file(const fs::path& path) {
  return has_file(path) && load_config_tree(path).find("tasks") != nullptr;
}

Comparison load_comparison(const fs::path& path, const std::vector<std::string>& overrides) {
  return comparison_from(path, load_config_tree(path), overrides);
}

TaskComparison load_task_comparison(const fs::path& path, const std::vector<std::string>& overrides) {
  auto tree = load_config_tree(path);
  const auto tasks = take(tree, "tasks");
  if (!tasks) fail(tree.place, "a comparison of several tasks needs `tasks`");
  TaskComparison result;
  for (auto& [name, keys] : read_tasks(*tasks)) {
    auto comparison = comparison_from(path, tree, overrides, &keys);
    // Each report says which of the tasks it is about.
    auto& settings = comparison.settings;
    result.settings = settings;
    settings.title = fmt::format("{}: {}", settings.title.empty() ? settings.name : settings.title, name);
    settings.note.clear();
    comparison.of_task = name;
    result.tasks.push_back({.name = name, .comparison = std::move(comparison)});
  }
  result.yaml = result.tasks.front().comparison.yaml;
  return result;
}

namespace {

/// The keys of a configuration without its seed.
std::map<std::string, std::string> keys_without_seed(const Experiment& experiment) {
  std::map<std::string, std::string> keys;
  for (const auto& [key, value] : flatten(experiment)) keys.emplace(key, value);
  keys.erase("training.seed");
  return keys;
}

/// The variant whose finished runs differ from this run only in the seed; null: there is none.
Variant* same_but_for_seed(std::vector<Variant>& variants, const Variant& run) {
  const int64_t seed = run.finished.front().seed;
  const auto same = std::ranges::find_if(variants, [&](const Variant& other) {
    const auto has_seed = [&](const FinishedRun& one) { return one.seed == seed; };
    return !other.finished.empty() && std::ranges::none_of(other.finished, has_seed) &&
           keys_without_seed(other.experiment) == keys_without_seed(run.experiment);
  });
  return same == variants.end() ? nullptr : &*same;
}

}  // namespace

Comparison comparison_of(const std::vector<fs::path>& configs_and_runs,
                         const std::vector<std::string>& overrides, const GivenData& data) {
  Comparison comparison;
  std::set<std::string> runs;
  for (const auto& path : configs_and_runs) {
    std::error_code ignored;
    Variant variant;
    if (names_stored_model(path)) {
      if (is_foreign(path) && data.is_empty()) {
        throw UsageError(fmt::format(
            "{}: a model from elsewhere names no data to compare it on; add --data FILE or --choices FILE",
            path.string()));
      }
      variant.experiment = read_stored_experiment(path);
      variant.finished.push_back({path, variant.experiment.training.seed});
      if (!runs.insert(fs::weakly_canonical(path, ignored).string()).second)
        throw UsageError(fmt::format("{}: the same run is given twice", path.string()));
      if (auto* const row = same_but_for_seed(comparison.variants, variant)) {
        row->finished.push_back(variant.finished.front());
        continue;
      }
    } else if (!data.is_empty()) {
      throw UsageError(
          fmt::format("{}: {} is for finished runs and directories; a configuration names its data",
                      path.string(), data.choices.empty() ? "--data" : "--choices"));
    } else if (is_comparison_file(path)) {
      throw UsageError(fmt::format("{}: this is a comparison file: give it alone", path.string()));
    } else {
      variant.experiment = load_experiment(path, overrides);
    }
    variant.name = variant.experiment.name;
    comparison.variants.push_back(std::move(variant));
  }
  make_names_unique(comparison.variants);
  for (auto& variant : comparison.variants) variant.variant = variant.name;
  if (!data.is_empty()) evaluate_on(comparison, data);
  return comparison;
}

}  // namespace zoo

#include "comparison/tasks/task_results.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/student_t.h"
#include "comparison/findings/findings.h"
#include "comparison/protocol.h"
#include "io/json_document.h"
#include "pages/json.h"
#include "pages/tables/report_document.h"
#include "pages/tables/task_document.h"
#include "statistics/paired_test.h"

namespace zoo {
namespace {

using BySeed = std::map<int64_t, double>;

/// One variant in one task.
struct Row {
  std::string name;
  std::optional<std::string> baseline;
  BySeed values;     // of the metric, of every seed that was trained to the end
  std::string said;  // the verdict of the task's own results
  double margin = 0;
};

/// One task that did not fail.
struct Column {
  std::string task;
  Better better = Better::lower;
  std::vector<Row> rows;
  double mean = 0, deviation = 0;  // over all values

  const Row* row_of(const std::string& name) const {
    const auto found = std::ranges::find(rows, name, &Row::name);
    return found == rows.end() ? nullptr : &*found;
  }
  /// In deviations over all values, where more is better.
  double standardised(double value) const {
    if (deviation == 0) return 0;
    return (better == Better::higher ? 1 : -1) * (value - mean) / deviation;
  }
};

std::vector<double> list_of(const BySeed& values) {
  std::vector<double> list;
  for (const auto& [seed, value] : values) list.push_back(value);
  return list;
}

double mean_of(const BySeed& values) {
  double sum = 0;
  for (const auto& [seed, value] : values) sum += value;
  return sum / static_cast<double>(values.size());
}

Row row_of(const Json& run, const std::string& metric) {
  Row row{.name = text_at(run, "name"), .baseline = {}, .values = {}, .said = {}};
  if (const auto baseline = text_at(run, "baseline"); !baseline.empty()) row.baseline = baseline;
  const Json& versus = member(run, "versus_baseline");
  row.said = text_at(versus, "verdict");
  row.margin = number_at(versus, "margin").value_or(0);
  for (const auto& seed : run["seeds"]) {
    const auto value = number_at(member(seed, "valid"), metric.c_str());
    if (value && text_at(seed, "end") != "failed") row.values.emplace(seed["seed"].get<int64_t>(), *value);
  }
  return row;
}

Column column_of(const TaskOutcome& outcome) {
  const Json& metric = outcome.results["metric"];
  Column column{.task = outcome.name,
                .better = text_at(metric, "better") == "higher" ? Better::higher : Better::lower,
                .rows = {}};
  std::vector<double> all;
  for (const auto& run : outcome.results["runs"]) {
    if (run.contains("ablation")) continue;  // no variant that was trained: its own page has it
    column.rows.push_back(row_of(run, text_at(metric, "key")));
    for (const auto& [seed, value] : column.rows.back().values) all.push_back(value);
  }
  if (!all.empty()) {
    const auto interval = mean_interval(all);
    column.mean = interval.mean;
    column.deviation = interval.deviation.value_or(0);
  }
  return column;
}

/// The values of the seeds that both have.
struct Pairs {
  std::vector<double> values, baseline;
};
Pairs pairs_of(const BySeed& values, const BySeed& baseline) {
  Pairs pairs;
  for (const auto& [seed, value] : values) {
    if (const auto other = baseline.find(seed); other != baseline.end()) {
      pairs.values.push_back(value);
      pairs.baseline.push_back(other->second);
    }
  }
  return pairs;
}

/// A test of a row against its baseline, before and after the correction for all tests.
struct Tested {
  std::string name;
  PairedTest test;
  double margin = 0;
  std::optional<double> p_same = {}, p_corrected = {}, p_same_corrected = {};
  std::optional<std::string> kept = {};  // a verdict that no p-value changes
};

/// Corrects the p-values of differences and those of equivalences, two families of tests.
void correct(std::vector<Tested*> tests, Correction correction) {
  std::erase_if(tests, [](const Tested* test) { return test->kept.has_value(); });
  std::vector<std::optional<double>> p, p_same;
  for (const auto* test : tests) {
    p.push_back(test->test.p);
    p_same.push_back(test->p_same);
  }
  p = corrected_known(correction, p);
  p_same = corrected_known(correction, p_same);
  for (size_t i = 0; i < tests.size(); ++i) {
    tests[i]->p_corrected = p[i];
    tests[i]->p_same_corrected = p_same[i];
  }
}

std::vector<Tested> tests_of(const Column& column) {
  std::vector<Tested> tests;
  for (const auto& row : column.rows) {
    const auto* const baseline = row.baseline ? column.row_of(*row.baseline) : nullptr;
    if (baseline == nullptr) continue;
    const auto pairs = pairs_of(row.values, baseline->values);
    if (pairs.values.empty()) continue;
    Tested test{.name = row.name, .test = paired_t_test(pairs.values, pairs.baseline), .margin = row.margin};
    if (row.margin > 0) test.p_same = equivalence_p(test.test, row.margin);
    // Seeds that learnt nothing, and unequal conditions, make a test meaningless.
    if (row.said == "unsteady" || row.said == "unfair") test.kept = row.said;
    tests.push_back(std::move(test));
  }
  return tests;
}

Json versus_json(const Tested& tested, Better better) {
  const auto said =
      tested.kept
          ? *tested.kept
          : std::string(name_of(verdict(tested.test, tested.p_corrected, tested.p_same_corrected, better)));
  const bool has_p = !tested.kept;
  return {{"difference", tested.test.difference},
          {"low", or_null(tested.test.low)},
          {"high", or_null(tested.test.high)},
          {"n", tested.test.n},
          {"p", has_p ? or_null(tested.test.p) : Json()},
          {"p_corrected", or_null(tested.p_corrected)},
          {"p_same", or_null(tested.p_same_corrected)},
          {"verdict", said}};
}

Json interval_json(const BySeed& values) {
  if (values.empty()) return nullptr;
  const auto interval = mean_interval(list_of(values));
  return {{"mean", interval.mean},
          {"low", or_null(interval.low)},
          {"high", or_null(interval.high)},
          {"deviation", or_null(interval.deviation)},
          {"n", interval.n}};
}

/// The difference of two equal variants that seeds alone show once in twenty times; null where no variant has
/// two seeds.
Json noise_of(const Column& column) {
  double squares = 0, degrees = 0;
  size_t fewest = 0;
  for (const auto& row : column.rows) {
    if (row.values.size() < 2) continue;
    const auto interval = mean_interval(list_of(row.values));
    const auto n = static_cast<double>(row.values.size());
    squares += *interval.deviation * *interval.deviation * (n - 1);
    degrees += n - 1;
    fewest = fewest == 0 ? row.values.size() : std::min(fewest, row.values.size());
  }
  if (degrees == 0) return nullptr;
  const double deviation = std::sqrt(squares / degrees);
  return {{"deviation", deviation},
          {"difference", student_t_quantile(0.5 + kConfidence / 2, degrees) * deviation *
                             std::sqrt(2 / static_cast<double>(fewest))}};
}

/// The ranks of the rows by their means, from 1; equal means share the mean of their ranks. Rows without a
/// value have none.
std::map<std::string, double> ranks_of(const Column& column) {
  std::map<std::string, double> ranks;
  for (const auto& row : column.rows) {
    if (row.values.empty()) continue;
    const double own = column.standardised(mean_of(row.values));
    double better = 0, equal = 0;
    for (const auto& other : column.rows) {
      if (other.values.empty()) continue;
      const double value = column.standardised(mean_of(other.values));
      better += value > own ? 1 : 0;
      equal += value == own ? 1 : 0;
    }
    ranks[row.name] = better + (equal + 1) / 2;
  }
  return ranks;
}

/// The mean of the standardised results over `columns` for each seed that all of them have.
BySeed over_tasks(const std::vector<const Column*>& columns, const std::string& name) {
  std::map<int64_t, std::vector<double>> found;
  for (const auto* column : columns) {
    if (const auto* const row = column->row_of(name)) {
      for (const auto& [seed, value] : row->values) found[seed].push_back(column->standardised(value));
    }
  }
  BySeed means;
  for (const auto& [seed, values] : found) {
    if (values.size() == columns.size()) means[seed] = mean_interval(values).mean;
  }
  return means;
}

/// The tasks in which all of these variants have a value.
std::vector<const Column*> with_values(const std::vector<Column>& columns,
                                       const std::vector<std::string>& names) {
  std::vector<const Column*> found;
  for (const auto& column : columns) {
    const bool all = std::ranges::all_of(names, [&](const std::string& name) {
      const auto* const row = column.row_of(name);
      return row != nullptr && !row->values.empty();
    });
    if (all) found.push_back(&column);
  }
  return found;
}

/// The names of the variants in the order of the file, each with its baseline.
std::vector<std::pair<std::string, std::optional<std::string>>> variants_of(
    const std::vector<Column>& columns) {
  std::vector<std::pair<std::string, std::optional<std::string>>> names;
  for (const auto& column : columns) {
    for (const auto& row : column.rows) {
      const auto is_it = [&](const auto& one) { return one.first == row.name; };
      if (std::ranges::none_of(names, is_it)) names.emplace_back(row.name, row.baseline);
    }
  }
  return names;
}

Json overall_json(const std::vector<Column>& columns, Correction correction) {
  const auto variants = variants_of(columns);
  std::vector<std::map<std::string, double>> ranks;
  for (const auto& column : columns) ranks.push_back(ranks_of(column));
  std::vector<std::optional<Tested>> tests;
  for (const auto& [name, baseline] : variants) {
    auto& tested = tests.emplace_back();
    if (!baseline) continue;
    const auto common = with_values(columns, {name, *baseline});
    const auto pairs = pairs_of(over_tasks(common, name), over_tasks(common, *baseline));
    if (common.empty() || pairs.values.empty()) continue;
    tested = Tested{.name = name, .test = paired_t_test(pairs.values, pairs.baseline)};
  }
  std::vector<Tested*> all;
  for (auto& tested : tests) {
    if (tested) all.push_back(&*tested);
  }
  correct(all, correction);
  Json overall = Json::array();
  for (size_t i = 0; i < variants.size(); ++i) {
    const auto& [name, baseline] = variants[i];
    const auto own = with_values(columns, {name});
    double rank = 0, n = 0;
    for (const auto& of_task : ranks) {
      if (const auto found = of_task.find(name); found != of_task.end()) rank += found->second, ++n;
    }
    overall.push_back({{"name", name},
                       {"tasks", own.size()},
                       {"rank", n > 0 ? Json(rank / n) : Json()},
                       {"standardised", interval_json(over_tasks(own, name))},
                       {"baseline", or_null(baseline)},
                       {"versus_baseline", tests[i] ? versus_json(*tests[i], Better::higher) : Json()}});
  }
  return overall;
}

Json task_json(const TaskOutcome& outcome, const Column& column, const std::vector<Tested>& tests) {
  const Json& results = outcome.results;
  const auto ranks = ranks_of(column);
  Json rows = Json::array();
  for (const auto& row : column.rows) {
    const auto tested = std::ranges::find(tests, row.name, &Tested::name);
    const auto rank = ranks.find(row.name);
    BySeed standardised;
    for (const auto& [seed, value] : row.values) standardised[seed] = column.standardised(value);
    rows.push_back(
        {{"name", row.name},
         {"metric", interval_json(row.values)},
         {"standardised", interval_json(standardised)},
         {"rank", rank == ranks.end() ? Json() : Json(rank->second)},
         {"baseline", or_null(row.baseline)},
         {"versus_baseline", tested == tests.end() ? Json() : versus_json(*tested, column.better)}});
  }
  return {{"name", outcome.name},
          {"error", nullptr},
          {"report", outcome.name + "/report.html"},
          {"task", results["task"]},
          {"metric", results["metric"]},
          {"budget", results["budget"]},
          {"seeds", results["seeds"]},
          {"fair", results["fair"]},
          {"measured", results["measured"]},
          {"noise", noise_of(column)},
          {"runs", std::move(rows)}};
}

/// What the tasks lack of the protocol, each sentence once.
Json gaps_of(const std::vector<TaskOutcome>& outcomes) {
  Json gaps = Json::array();
  for (const auto& outcome : outcomes) {
    if (outcome.results.is_null()) continue;
    for (const auto& gap : protocol_gaps(outcome.results)) {
      if (std::ranges::find(gaps, Json(gap)) == gaps.end()) gaps.push_back(gap);
    }
  }
  return gaps;
}

/// The name of the baseline where all rows have the same. n: the rows that a sentence is about.
std::string baseline_name(const Json& rows, size_t n) {
  std::set<std::string> names;
  for (const auto& row : rows) {
    if (auto name = text_at(row, "baseline"); !name.empty()) names.insert(std::move(name));
  }
  return names.size() == 1 ? *names.begin() : n == 1 ? "its baseline" : "their baselines";
}

/// A sentence about the best mean rank, and one for each verdict over all tasks.
std::string measured_of(const Json& document) {
  const Json& rows = document["overall"];
  const Json* best = nullptr;
  std::map<std::string, std::vector<std::string>> said;
  for (const auto& row : rows) {
    const auto rank = number_at(row, "rank");
    if (rank && (best == nullptr || *rank < *number_at(*best, "rank"))) best = &row;
    const auto verdict = text_at(member(row, "versus_baseline"), "verdict");
    if (!verdict.empty()) said[verdict].push_back(text_at(row, "name"));
  }
  const auto n_failed = static_cast<size_t>(std::ranges::count_if(
      document["tasks"], [](const Json& task) { return member(task, "error").is_string(); }));
  const auto n = document["tasks"].size();
  if (best == nullptr) return "No task gave a result.";
  auto text = fmt::format("Over {}{} tasks {} has the best mean rank, {:.1f}.",
                          n_failed > 0 ? fmt::format("{} of ", n - n_failed) : "", n, text_at(*best, "name"),
                          *number_at(*best, "rank"));
  constexpr std::pair<const char*, const char*> words[] = {
      {"better", "better than"}, {"worse", "worse than"}, {"undecided", "not told apart from"}};
  for (const auto& [verdict, than] : words) {
    if (const auto& names = said[verdict]; !names.empty()) {
      text += fmt::format(" On the mean of the tasks {} {} {} {}.", list_of_names(names),
                          names.size() == 1 ? "is" : "are", than, baseline_name(rows, names.size()));
    }
  }
  return text;
}

}  // namespace

Json task_results(const TaskComparison& comparison, const std::vector<TaskOutcome>& outcomes,
                  const std::string& command) {
  std::vector<Column> columns;
  std::vector<std::vector<Tested>> tests;
  const Json* first = nullptr;
  for (const auto& outcome : outcomes) {
    if (outcome.results.is_null()) continue;
    if (first == nullptr) first = &outcome.results;
    columns.push_back(column_of(outcome));
    tests.push_back(tests_of(columns.back()));
  }
  std::vector<Tested*> all;
  for (auto& of_task : tests) {
    for (auto& tested : of_task) all.push_back(&tested);
  }
  correct(all, comparison.settings.correction);
  Json tasks = Json::array();
  size_t next = 0;
  for (const auto& outcome : outcomes) {
    if (outcome.results.is_null()) {
      tasks.push_back({{"name", outcome.name}, {"error", outcome.error}, {"runs", Json::array()}});
      continue;
    }
    tasks.push_back(task_json(outcome, columns[next], tests[next]));
    ++next;
  }
  const auto& settings = comparison.settings;
  Json document = {{"schema", kTasksSchema},
                   {"name", settings.name},
                   {"title", settings.title},
                   {"folklore", settings.folklore},
                   {"measured", ""},
                   {"note", settings.note},
                   {"command", command},
                   {"yaml", comparison.yaml},
                   {"created", first != nullptr ? (*first)["created"] : Json()},
                   {"machine", first != nullptr ? (*first)["machine"] : Json()},
                   {"versions", first != nullptr ? (*first)["versions"] : Json()},
                   {"tests", all.size()},
                   {"tasks", std::move(tasks)},
                   {"overall", overall_json(columns, comparison.settings.correction)},
                   {"protocol", gaps_of(outcomes)}};
  if (settings.correction != Correction::holm) document["correction"] = name_of(settings.correction);
  document["measured"] = measured_of(document);
  return Json::parse(shown_json(document));
}

}  // namespace zoo

#include "comparison/findings/findings.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numbers>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/named_enum.h"
#include "pages/tables/table.h"
#include "statistics/power.h"
#include "statistics/translation_test.h"

namespace zoo {
namespace {

using Runs = std::vector<RunResults>;

/// The metrics of two runs for the seeds that count for both, side by side.
struct Pairs {
  std::vector<double> values, baseline;
};
Pairs pairs_of(const RunResults& run, const RunResults& other) {
  Pairs pairs;
  // Models that are compared on examples have one seed each, whichever.
  const bool is_any_seed = run.examples && other.examples;
  for (const auto& seed : run.seeds) {
    for (const auto& twin : other.seeds) {
      if (twin.seed != seed.seed && !is_any_seed) continue;
      const auto value = counted_value(run, seed), baseline = counted_value(other, twin);
      if (!value || !baseline) continue;
      pairs.values.push_back(*value);
      pairs.baseline.push_back(*baseline);
    }
  }
  return pairs;
}

/// How many pairs differ in the direction of their mean difference; none of equal ones.
int64_t n_agreeing(const Pairs& pairs, double difference) {
  int64_t n = 0;
  for (size_t i = 0; i < pairs.values.size(); ++i)
    n += (pairs.values[i] - pairs.baseline[i]) * difference > 0;
  return n;
}

/// "1.9070 ± 0.0062", "83.12 ± 0.44 %": two digits of the interval that are not zero; four of a mean without.
std::string shown(const Interval& interval, const Metric& metric) {
  const double factor = metric.percent ? 100 : 1;
  const double mean = factor * interval.mean;
  const std::string unit = metric.percent ? " %" : "";
  if (!interval.high)
    return fmt::format("{:.{}f}{}", mean, digits_after_point(mean, metric.percent ? 3 : 4), unit);
  const double half = factor * *interval.high - mean;
  const int digits = digits_after_point(half, 2);
  return fmt::format("{:.{}f} ± {:.{}f}{}", mean, digits, half, digits, unit);
}

/// How many pairs would show a difference as large as the measured one; nothing if too many to train.
std::optional<int64_t> needed_for(const PairedTest& test, int64_t n_tests) {
  if (!test.error || *test.error == 0 || test.difference == 0) return std::nullopt;
  const double deviation = *test.error * std::sqrt(static_cast<double>(test.n));
  return pairs_needed(test.difference / deviation, n_tests);
}

bool learnt_in_part(const RunResults& run) {
  const int64_t n = n_not_learnt(run);
  return n > 0 && n < std::ssize(run.seeds);
}

using Names = std::vector<std::string>;

/// "a, b and c"
std::string enumerated(const Names& parts) {
  if (parts.size() < 2) return parts.empty() ? "" : parts.front();
  return fmt::format("{} and {}", fmt::join(parts.begin(), parts.end() - 1, ", "), parts.back());
}

/// The most runs that a sentence names; of more it gives the number.
constexpr size_t kMostNames = 6;

/// "a", "a and b", "9 runs"
std::string named(const Names& names) {
  return names.size() > kMostNames ? fmt::format("{} runs", names.size()) : list_of_names(names);
}

/// The runs with one verdict.
struct Said {
  Verdict verdict;
  std::string_view than;  // "is worse than"
  Names names = {};
};

/// The verdicts that some run has, the most frequent first.
std::vector<Said> verdicts_of(const Runs& runs) {
  std::vector<Said> all = {{Verdict::better, "is better than"},
                           {Verdict::worse, "is worse than"},
                           {Verdict::same, "is the same, up to the margin, as"},
                           {Verdict::undecided, "cannot be told from"},
                           {Verdict::unsteady, "cannot be compared with"}};
  for (auto& said : all) {
    for (const auto& run : runs) {
      if (run.ablation) continue;  // ablation_finding() is about these
      if (run.versus_baseline && run.versus_baseline->verdict == said.verdict) said.names.push_back(run.name);
    }
  }
  std::erase_if(all, [](const Said& said) { return said.names.empty(); });
  std::ranges::stable_sort(all, std::greater(), [](const Said& said) { return said.names.size(); });
  return all;
}

/// The variants of a grid in which every other run has its own baseline; empty where all share one.
Names variants_of_grid(const Runs& runs) {
  Names variants;
  int64_t n_baselines = 0;
  for (const auto& run : runs) {
    if (run.ablation) continue;
    n_baselines += !run.baseline;
    if (std::ranges::find(variants, run.variant) == variants.end()) variants.push_back(run.variant);
  }
  return n_baselines > 1 ? variants : Names();
}

/// "1 of 3 runs is worse than gpt", "2 of 3 runs are worse than gpt"
std::string counted(const Said& said, const std::string& baseline, size_t n) {
  constexpr std::string_view is = "is ";
  const auto count = said.names.size();
  const bool plural = count > 1 && said.than.starts_with(is);
  return fmt::format("{} of {} runs {}{} {}", count, n, plural ? "are " : "",
                     plural ? said.than.substr(is.size()) : said.than, baseline);
}

/// How many runs have a verdict.
size_t n_said(const std::vector<Said>& verdicts) {
  size_t n = 0;
  for (const auto& said : verdicts) n += said.names.size();
  return n;
}

/// "post-norm is worse than pre-norm at 3 of 6 points of the grid, better at 1 and undecided at 2"
std::string of_variant(const std::string& variant, const Runs& runs, const std::string& baseline) {
  Runs own;
  std::ranges::copy_if(runs, std::back_inserter(own),
                       [&](const auto& run) { return run.variant == variant; });
  const auto verdicts = verdicts_of(own);
  if (verdicts.empty()) return "";
  const size_t n = n_said(verdicts);
  Names parts = {fmt::format("{} {} {} at {} of {} point{} of the grid", variant, verdicts.front().than,
                             baseline, verdicts.front().names.size(), n, n == 1 ? "" : "s")};
  for (size_t i = 1; i < verdicts.size(); ++i)
    parts.push_back(fmt::format("{} at {}", name_of(verdicts[i].verdict), verdicts[i].names.size()));
  return enumerated(parts);
}

/// A part for each variant but the first, which is the baseline. If there are many, "5 of 12 runs are worse
/// than gpt at the same point of the grid and 7 undecided".
std::string on_grid(const Runs& runs, const Names& variants) {
  Names parts;
  if (variants.size() <= kMostNames) {
    for (size_t i = 1; i < variants.size(); ++i) {
      if (auto part = of_variant(variants[i], runs, variants[0]); !part.empty())
        parts.push_back(std::move(part));
    }
    return fmt::format("{}", fmt::join(parts, "; "));
  }
  const auto verdicts = verdicts_of(runs);
  for (const auto& said : verdicts) {
    parts.push_back(parts.empty()
                        ? counted(said, variants[0], n_said(verdicts)) + " at the same point of the grid"
                        : fmt::format("{} {}", said.names.size(), name_of(said.verdict)));
  }
  return enumerated(parts);
}

/// "2 of 3 runs are worse than gpt (a and b) and 1 undecided (c)"; with two runs "a is worse than gpt".
std::string against_one(const std::vector<Said>& verdicts, const std::string& baseline, size_t n) {
  if (n == 1) return fmt::format("{} {} {}", verdicts.front().names.front(), verdicts.front().than, baseline);
  Names parts;
  for (const auto& said : verdicts) {
    const auto count = said.names.size();
    const auto what =
        parts.empty() ? counted(said, baseline, n) : fmt::format("{} {}", count, name_of(said.verdict));
    parts.push_back(count > kMostNames ? what : fmt::format("{} ({})", what, list_of_names(said.names)));
  }
  return enumerated(parts);
}

/// The runs that failed, or learnt nothing with some seeds: "; a never learnt …".
std::string without_success(const Runs& runs) {
  Names failed, never, partly;
  for (const auto& run : runs) {
    if (run.ablation) continue;
    if (!run.metric)
      failed.push_back(run.name);
    else if (n_not_learnt(run) == std::ssize(run.seeds))
      never.push_back(run.name);
    else if (learnt_in_part(run))
      partly.push_back(run.name);
  }
  std::string text;
  const auto add = [&](const Names& names, std::string_view what) {
    if (!names.empty()) text += fmt::format("; {} {}", named(names), what);
  };
  add(never, "never learnt more than how frequent each label is");
  add(partly, "learnt with some seeds only, and only those count in the mean");
  add(failed, "failed with every seed");
  return text;
}

/// "gpt has the best mean of 4 runs: 1.907 ± 0.006 bits per byte (mean of 3 seeds, 95 % interval)."
std::string best_finding(const Runs& runs, const Metric& metric) {
  const RunResults* best = nullptr;
  int64_t n_trained = 0;
  for (const auto& run : runs) {
    if (run.ablation) continue;
    ++n_trained;
    if (run.metric && (!best || metric.is_better(run.metric->mean, best->metric->mean))) best = &run;
  }
  const int64_t n = best->metric->n;
  const auto what = n_trained == 1 ? "" : fmt::format("the best mean of {} runs: ", n_trained);
  return fmt::format("{} has {}{} {} {}.", best->name, what, shown(*best->metric, metric), metric.label,
                     n > 1 ? fmt::format("(mean of {} seeds, 95 % interval)", n) : "(one seed: no interval)");
}

bool failed(const RunResults& run) { return !run.metric; }

/// The examples or documents of the tests, such as "600 examples". Nothing if the tests are over seeds.
std::optional<std::string> tested_examples(const Runs& runs) {
  for (const auto& run : runs)
    if (run.versus_baseline && run.versus_baseline->over != TestedOver::seeds)
      return fmt::format("{} {}", run.versus_baseline->test.n, name_of(run.versus_baseline->over));
  return std::nullopt;
}

/// The mean number of tokens over the seeds of which it is known.
std::optional<double> tokens_of(const RunResults& run) {
  double sum = 0, n = 0;
  for (const auto& seed : run.seeds) {
    if (!seed.state) continue;
    sum += static_cast<double>(seed.state->tokens);
    ++n;
  }
  return n > 0 ? std::optional(sum / n) : std::nullopt;
}

/// "3.11 M", "612"
std::string amount_text(double value) {
  auto text = with_prefix(value);
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

/// The numbers of the documents of a translator's lines, if they have some.
std::vector<int64_t> documents_of(const RunResults& run) {
  const bool are_of_lines =
      run.examples && run.examples->documents.size() == run.translations->outputs.size();
  return are_of_lines ? run.examples->documents : std::vector<int64_t>();
}

std::vector<TextCounts> sums_by_document(std::vector<TextCounts> lines,
                                         const std::vector<int64_t>& documents) {
  if (documents.empty() || lines.empty()) return lines;
  std::vector<TextCounts> sums(static_cast<size_t>(std::ranges::max(documents) + 1),
                               TextCounts(lines.front().size()));
  for (size_t i = 0; i < lines.size(); ++i) {
    auto& sum = sums[static_cast<size_t>(documents[i])];
    std::ranges::transform(sum, lines[i], sum.begin(), std::plus<>());
  }
  return sums;
}

/// Whether two translators have translated the same lines.
bool are_of_the_same_lines(const RunResults& run, const RunResults& other) {
  return other.translations && documents_of(run) == documents_of(other) &&
         other.translations->sources == run.translations->sources &&
         other.translations->references == run.translations->references;
}

}  // namespace

std::string list_of_names(const std::vector<std::string>& names) {
  const auto has_comma = [](const std::string& name) { return name.find(',') != name.npos; };
  if (names.size() < 2 || std::ranges::none_of(names, has_comma)) return enumerated(names);
  Names quoted;
  for (const auto& name : names) quoted.push_back(fmt::format("“{}”", name));
  return enumerated(quoted);
}

int digits_after_point(double value, int significant) {
  constexpr int most = 6;
  if (value == 0 || !std::isfinite(value)) return 2;
  return std::clamp(significant - 1 - static_cast<int>(std::floor(std::log10(std::abs(value)))), 0, most);
}

bool ever_learnt(const RunResults& run) {
  return std::ranges::any_of(run.seeds, [](const SeedResults& seed) { return seed.learnt == true; });
}

int64_t n_not_learnt(const RunResults& run) {
  return std::ranges::count_if(run.seeds, [](const SeedResults& seed) { return seed.learnt == false; });
}

std::optional<double> counted_value(const RunResults& run, const SeedResults& seed) {
  return seed.learnt == false && ever_learnt(run) ? std::nullopt : seed.metric;
}

std::optional<Interval> mean_of_seeds(const RunResults& run) {
  std::vector<double> values;
  for (const auto& seed : run.seeds) {
    if (const auto value = counted_value(run, seed)) values.push_back(*value);
  }
  return values.empty() ? std::nullopt : std::optional(mean_interval(values));
}

void compare_with_baselines(Runs& runs, const Metric& metric, const TestRules& rules) {
  std::vector<RunResults*> tested;
  std::vector<std::optional<double>> p, p_same;
  for (auto& run : runs) {
    if (!run.baseline) continue;
    const auto& baseline = *std::ranges::find(runs, *run.baseline, &RunResults::name);
    const auto pairs = pairs_of(run, baseline);
    if (pairs.values.empty()) continue;
    VersusBaseline versus{.test = paired_t_test(pairs.values, pairs.baseline), .margin = rules.margin};
    if (run.examples && baseline.examples) {
      if (const auto test = test_on_examples(*run.examples, *baseline.examples)) {
        constexpr size_t most_shown = 8;
        versus.test = *test;
        versus.over = run.examples->documents.empty() ? TestedOver::examples : TestedOver::documents;
        run.differing = differing_examples(*run.examples, *baseline.examples, most_shown);
      }
    }
    if (versus.over == TestedOver::seeds) versus.agreeing = n_agreeing(pairs, versus.test.difference);
    if (!metric.percent) versus.margin *= std::abs(mean_interval(pairs.baseline).mean);
    p_same.push_back(
        versus.over == TestedOver::seeds
            ? equivalence_p(versus.test, versus.margin)
            : equivalence_on_examples(*run.examples, *baseline.examples, versus.test, versus.margin));
    if (learnt_in_part(run) || learnt_in_part(baseline)) {  // no test
      versus.verdict = Verdict::unsteady;
      versus.test.p.reset();
      p_same.back().reset();
    }
    p.push_back(versus.test.p);
    run.versus_baseline = versus;
    tested.push_back(&run);
  }
  const int64_t n_tests = std::ranges::count_if(p, [](const auto& one) { return one.has_value(); });
  p = corrected_known(rules.correction, p);
  p_same = corrected_known(rules.correction, p_same);
  for (size_t i = 0; i < tested.size(); ++i) {
    auto& versus = *tested[i]->versus_baseline;
    versus.p_corrected = p[i];
    versus.p_same = p_same[i];
    if (versus.verdict != Verdict::unsteady)
      versus.verdict = verdict(versus.test, p[i], p_same[i], metric.better);
    // Two models differ on examples or not, however they were trained.
    if (versus.over != TestedOver::seeds) continue;
    if (!rules.fair) versus.verdict = Verdict::unfair;
    if (versus.verdict == Verdict::undecided) versus.seeds_needed = needed_for(versus.test, n_tests);
  }
}

void compare_translations(Runs& runs, Correction correction) {
  for (const auto metric : {TextMetric::bleu, TextMetric::chrf}) {
    std::vector<std::vector<TextCounts>> counts;  // of each run; empty without translations
    for (const auto& run : runs) {
      counts.emplace_back();
      if (run.translations)
        counts.back() =
            sums_by_document(text_counts(metric, run.translations->outputs, {run.translations->references}),
                             documents_of(run));
    }
    for (size_t i = 0; i < runs.size(); ++i) {
      auto& run = runs[i];
      if (!run.translations) continue;
      TranslationScore score{.metric = metric, .value = score_of_lines(metric, counts[i])};
      const auto baseline =
          run.baseline ? std::ranges::find(runs, *run.baseline, &RunResults::name) : runs.end();
      constexpr size_t fewest = 2;  // lines or documents that a test needs
      if (baseline != runs.end() && counts[i].size() >= fewest && are_of_the_same_lines(run, *baseline)) {
        const PairedTranslations pair(metric, counts[i],
                                      counts[static_cast<size_t>(baseline - runs.begin())]);
        score.baseline_value = pair.baseline_score();
        score.test = test_on_translations(pair);
        if (run.translations->outputs == baseline->translations->outputs) score.verdict = Verdict::same;
      }
      run.translation_scores.push_back(std::move(score));
    }
  }
  std::vector<TranslationScore*> tested;
  std::vector<std::optional<double>> p;
  for (auto& run : runs) {
    for (auto& score : run.translation_scores) {
      if (!score.test) continue;
      tested.push_back(&score);
      p.push_back(score.test->p);
    }
  }
  p = corrected_known(correction, p);
  for (size_t i = 0; i < tested.size(); ++i) {
    tested[i]->p_corrected = p[i];
    if (!tested[i]->verdict)
      tested[i]->verdict = verdict(*tested[i]->test, p[i], std::nullopt, Better::higher);
  }
}

std::optional<Power> power_of(const Runs& runs) {
  int64_t n_tests = 0, n_pairs = 0;
  for (const auto& run : runs) {
    if (!run.versus_baseline || !run.versus_baseline->test.p) continue;
    if (run.versus_baseline->over != TestedOver::seeds) continue;
    const int64_t n = run.versus_baseline->test.n;
    n_pairs = ++n_tests == 1 ? n : std::min(n_pairs, n);
  }
  if (n_tests == 0) return std::nullopt;
  // The difference of two independent runs has √2 times the deviation of one.
  constexpr double deviations = 2;
  const double effect = deviations / std::numbers::sqrt2;
  return Power{.deviations = deviations,
               .seeds = n_pairs,
               .tests = n_tests,
               .probability = power_of_test(effect, n_pairs, n_tests),
               .seeds_needed = pairs_needed(effect, n_tests)};
}

std::string verdict_finding(const Runs& runs, bool fair) {
  if (std::ranges::all_of(runs, failed)) return "No run could be trained to its end.";
  const auto n_examples = tested_examples(runs);
  if (!fair && !n_examples)
    return "The comparison is not fair, so it has no winner: the notices say what differs.";
  const auto verdicts = verdicts_of(runs);
  const auto variants = variants_of_grid(runs);
  const size_t n = n_said(verdicts);
  auto text = without_success(runs);
  if (n_examples) text = fmt::format(", on the same {}", *n_examples) + text;
  if (!fair) text += "; the notices say what differs in how they were trained";
  if (n > 0)
    return (variants.empty() ? against_one(verdicts, runs[0].name, n) : on_grid(runs, variants)) + text + ".";
  if (text.empty()) return "";
  text.erase(0, 2);
  return text + ".";
}

std::string consumption_finding(const Budget& budget, const Runs& runs, std::string_view unit) {
  constexpr double as_good_as_equal = 1.01;  // a training ends with a whole step
  if (budget.kind == BudgetKind::steps) return "";
  std::vector<std::pair<double, std::string>> seen;
  for (const auto& run : runs)
    if (const auto tokens = tokens_of(run)) seen.emplace_back(*tokens, run.name);
  if (seen.empty()) return "";
  const auto [least, most] = std::ranges::minmax(seen);
  const auto amount = [](const auto& one) { return amount_text(one.first); };
  const auto within = budget.kind == BudgetKind::seconds ? fmt::format("In {:g} s ", budget.amount)
                      : budget.kind == BudgetKind::flops
                          ? fmt::format("With {}FLOPs ", with_prefix(budget.amount))
                          : std::string();
  const std::string the = within.empty() ? "The" : "the", every = within.empty() ? "Every" : "every";
  if (most.first <= as_good_as_equal * least.first) {
    const auto who = seen.size() == 1 ? least.second : every + " run";
    return fmt::format("{}{} saw {} {}s.", within, who, amount(most), unit);
  }
  if (seen.size() > kMostNames) {
    return fmt::format("{}{} runs saw between {} {}s ({}) and {} ({}).", within, the, amount(least), unit,
                       least.second, amount(most), most.second);
  }
  Names parts;
  for (const auto& one : seen) {
    parts.push_back(parts.empty() ? fmt::format("{} saw {} {}s", one.second, amount(one), unit)
                                  : fmt::format("{} {}", one.second, amount(one)));
  }
  return within + enumerated(parts) + ".";
}

std::string ablation_finding(const Runs& runs, const Metric& metric, bool fair) {
  if (!fair) return "";
  std::string text;
  for (const auto& run : runs) {
    if (!run.ablation || !run.versus_baseline) continue;
    const auto& versus = *run.versus_baseline;
    const auto& [n, difference, error, low, high, p] = versus.test;
    const double factor = metric.percent ? 100 : 1;
    const int digits =
        low ? digits_after_point(factor * (*high - *low) / 2, 2) : digits_after_point(factor * difference, 3);
    const auto number = [&](double value) {
      return fmt::format("{:.{}f}", factor * (difference < 0 ? -value : value), digits);
    };
    text += fmt::format("{}{}: {} {}{} {} than {}", text.empty() ? "" : " ", run.name, metric.label,
                        number(difference), metric.percent ? " points" : "",
                        difference < 0 ? "lower" : "higher", *run.baseline);
    if (low)
      text += difference < 0 ? fmt::format(" ({} to {})", number(*high), number(*low))
                             : fmt::format(" ({} to {})", number(*low), number(*high));
    if (versus.agreeing) text += fmt::format(", in {} of {} seeds", *versus.agreeing, n);
    text += ".";
  }
  return text;
}

std::string findings(const Runs& runs, const Metric& metric, bool fair) {
  auto verdicts = verdict_finding(runs, fair);
  if ((!fair && !tested_examples(runs)) || std::ranges::all_of(runs, failed)) return verdicts;
  const auto best = best_finding(runs, metric);
  return verdicts.empty()                 ? best
         : variants_of_grid(runs).empty() ? best + " " + verdicts
                                          : verdicts + " " + best;
}

}  // namespace zoo

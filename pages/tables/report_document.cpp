#include "pages/tables/report_document.h"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "pages/json.h"

namespace zoo {

namespace {

[[noreturn]] void complain(const std::string& what) {
  throw DataError("results.json: " + what + ": make it again with zoo compare");
}

/// The member `key` of `object`, which is at `where` in the document. Complains unless `is_right` accepts it.
const Json& needed(const Json& object, const std::string& where, const char* key,
                   bool (Json::*is_right)() const noexcept, const char* kind) {
  const Json& value = member(object, key);
  if (!(value.*is_right)())
    complain(fmt::format("{}{}{} is not {}", where, where.empty() ? "" : ".", key, kind));
  return value;
}

/// A curve is an object of lists of equal length, with one value per step.
void check_curve(const Json& curve, const std::string& where) {
  if (curve.is_null()) return;
  if (!curve.is_object()) complain(where + " is not an object of lists");
  const size_t length = needed(curve, where, "step", &Json::is_array, "a list").size();
  for (const auto& [key, list] : curve.items())
    if (!list.is_array() || list.size() != length)
      complain(
          fmt::format("{}.{} is not a list of as many values as {}.step, {}", where, key, where, length));
}

void check_seed(const Json& seed, const std::string& where) {
  needed(seed, where, "seed", &Json::is_number_integer, "a whole number");
  needed(seed, where, "end", &Json::is_string, "a text");
  check_curve(member(seed, "curve"), where + ".curve");
  check_curve(member(seed, "train_curve"), where + ".train_curve");
}

void check_run(const Json& run, const std::string& where) {
  needed(run, where, "name", &Json::is_string, "a text");
  const Json& metric = member(run, "metric");  // null where every seed failed
  if (!run.contains("metric") || (!metric.is_null() && !metric.is_object()))
    complain(where + ".metric is not an object");
  const Json& mean = member(metric, "mean");
  if (!mean.is_number() && !mean.is_null()) complain(where + ".metric.mean is not a number");
  const Json& seeds = needed(run, where, "seeds", &Json::is_array, "a list");
  for (size_t i = 0; i < seeds.size(); ++i) check_seed(seeds[i], fmt::format("{}.seeds[{}]", where, i));
}

}  // namespace

const Json& member(const Json& object, const char* key) {
  static const Json null;
  if (!object.is_object()) return null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

bool is_list_of_counts(const Json& value) {
  constexpr int64_t most = int64_t{1} << 40;
  const auto is_count = [](const Json& one) {
    return one.is_number_integer() && one.get<int64_t>() >= 0 && one.get<int64_t>() <= most;
  };
  return value.is_array() && std::ranges::all_of(value, is_count);
}

std::optional<double> number_at(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_number() ? std::optional(value.get<double>()) : std::nullopt;
}

std::string text_at(const Json& object, const char* key) {
  const Json& value = member(object, key);
  return value.is_string() ? value.get<std::string>() : "";
}

bool is_over_examples(const Json& versus) {
  const auto over = text_at(versus, "over");
  return over == "examples" || over == "documents";
}

std::optional<double> p_of_verdict(const Json& versus) {
  return number_at(versus, text_at(versus, "verdict") == "same" ? "p_same" : "p_corrected");
}

std::string unit_of(const Json& results) {
  const auto unit = text_at(results, "unit");
  return unit.empty() ? "token" : unit;
}

void check_results(const Json& results) {
  if (!results.is_object()) complain("it is not a JSON object");
  const std::string schema = text_at(results, "schema");
  if (schema != kResultsSchema)
    complain(fmt::format("its schema is \"{}\" instead of \"{}\"", excerpt(schema), kResultsSchema));
  needed(results, "", "name", &Json::is_string, "a text");
  const Json& metric = needed(results, "", "metric", &Json::is_object, "an object");
  needed(metric, "metric", "key", &Json::is_string, "a text");
  needed(metric, "metric", "label", &Json::is_string, "a text");
  needed(metric, "metric", "percent", &Json::is_boolean, "true or false");
  const std::string better = text_at(metric, "better");
  if (better != "lower" && better != "higher") complain("metric.better is neither \"lower\" nor \"higher\"");
  needed(results, "", "seeds", &Json::is_array, "a list");
  const Json& runs = needed(results, "", "runs", &Json::is_array, "a list");
  if (runs.empty()) complain("runs is empty");
  for (size_t i = 0; i < runs.size(); ++i) check_run(runs[i], fmt::format("runs[{}]", i));
}

std::string estimate_text(std::optional<double> value, std::optional<double> low, std::optional<double> high,
                          int decimals) {
  if (!value) return "–";
  auto text = fmt::format("{:.{}f}", *value, decimals);
  if (low && high) text += fmt::format(" ({:.{}f} to {:.{}f})", *low, decimals, *high, decimals);
  return text;
}

bool has_a_result(const Json& results) {
  return std::ranges::any_of(results["runs"],
                             [](const Json& run) { return member(run, "metric").is_object(); });
}

bool has_failed(const Json& run) {
  const auto failed = [](const Json& seed) { return text_at(seed, "end") == "failed"; };
  return !run["seeds"].empty() && std::ranges::all_of(run["seeds"], failed);
}

int64_t n_not_learnt(const nlohmann::ordered_json& run) {
  return std::ranges::count_if(run["seeds"],
                               [](const Json& seed) { return member(seed, "learnt") == false; });
}

}  // namespace zoo

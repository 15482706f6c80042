#include "pages/report/report_page.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "pages/json.h"
#include "pages/page_template.h"
#include "pages/tables/confusion.h"
#include "pages/tables/expert_tables.h"
#include "pages/tables/report_document.h"

namespace zoo {
namespace embedded {  // cmake/ZooEmbed.cmake
extern const char report_page[];
}  // namespace embedded

namespace {

constexpr size_t kMostPoints = 120, kFewestPoints = 12;  // of one curve
constexpr size_t kAllPoints = 50'000;                    // of all curves together: 3 MB
constexpr size_t kAttentionBytes = 3'500'000, kSampleBytes = 1'000'000, kConfusionBytes = 1'000'000,
                 kExampleBytes = 500'000, kStructureBytes = 1'000'000, kExpertBytes = 300'000;

/// A number with six significant digits: more cannot be seen, and make the page larger.
Json rounded(const Json& value) {
  if (!value.is_number_float() || !std::isfinite(value.get<double>())) return value;
  return std::strtod(fmt::format("{:.6g}", value.get<double>()).c_str(), nullptr);
}

/// The members of an object with these names.
Json only(const Json& object, std::initializer_list<const char*> keys) {
  Json result = Json::object();
  for (const char* key : keys)
    if (const Json& value = member(object, key); !value.is_null()) result[key] = value;
  return result;
}

/// At most `most` points of a curve, evenly spread, with the first and the last.
Json thinned(const Json& curve, size_t most) {
  Json result = Json::object();
  for (const auto& [key, list] : curve.items()) {
    Json& values = result[key] = Json::array();
    const size_t n = std::min(most, list.size());
    for (size_t i = 0; i < n; ++i)
      values.push_back(rounded(list[n == 1 ? 0 : (i * (list.size() - 1) + (n - 1) / 2) / (n - 1)]));
  }
  return result;
}

/// Admits values until a number of bytes is used up.
class Room {
 public:
  explicit Room(size_t bytes) : bytes_(bytes) {}
  /// `value`, or null where there is no room left.
  Json admit(Json value) {
    if (value.is_null() || value.empty()) return nullptr;
    const size_t size = escaped_for_script(as_json_text(value)).size();
    if (size > bytes_) {
      ++left_out_;
      return nullptr;
    }
    bytes_ -= size;
    return value;
  }
  int64_t left_out() const { return left_out_; }

 private:
  size_t bytes_;
  int64_t left_out_ = 0;
};

Json shown_examples(const Json& examples) {
  const bool are_lists = member(examples, "better").is_array() && member(examples, "worse").is_array();
  return are_lists ? examples : Json();
}

Json shown_attention(const Json& attention) {
  if (!attention.is_object()) return nullptr;
  Json result = attention;
  if (result.contains("heads"))
    for (auto& head : result["heads"])
      for (auto& value : head) value = rounded(value);
  return result;
}

Json shown_seed(const Json& seed, size_t points) {
  Json result =
      only(seed, {"seed", "run", "end", "error", "steps", "tokens", "flops", "seconds", "valid_loss", "valid",
                  "learnt", "best_step", "peak_memory_bytes", "peak_resident_bytes", "ablated"});
  for (const char* key : {"curve", "train_curve"})
    if (const Json& curve = member(seed, key); curve.is_object()) result[key] = thinned(curve, points);
  return result;
}

Json shown_run(const Json& run, const Json& differences, size_t points) {
  Json result =
      only(run, {"name", "variant", "grid", "architecture", "parameters", "sequence_length",
                 "flops_per_token", "guess", "metric", "best_in", "baseline", "versus_baseline", "lengths",
                 "speed", "peak_memory_bytes", "scaling", "translations", "slices", "ablation"});
  result["config"] = Json::object();
  for (const auto& key : differences)
    if (key.is_string())
      if (const Json& value = member(member(run, "config"), key.get<std::string>().c_str()); !value.is_null())
        result["config"][key.get<std::string>()] = value;
  result["seeds"] = Json::array();
  for (const auto& seed : run["seeds"]) result["seeds"].push_back(shown_seed(seed, points));
  return result;
}

/// The order in which runs get room in the page: the first run, then the best ones. The page highlights runs
/// in the same order.
std::vector<size_t> by_interest(const Json& results) {
  const Json& runs = results["runs"];
  const double sign = text_at(results["metric"], "better") == "lower" ? 1 : -1;
  const auto rank = [&](size_t i) {
    const auto mean = number_at(runs[i]["metric"], "mean");
    return mean ? sign * *mean : std::numeric_limits<double>::infinity();
  };
  std::vector<size_t> order(runs.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin() + 1, order.end(), [&](size_t a, size_t b) { return rank(a) < rank(b); });
  return order;
}

Json page_data(const Json& results) {
  Json data =
      only(results,
           {"schema",  "name",     "title",       "folklore", "measured", "note",     "command",   "yaml",
            "created", "progress", "machine",     "versions", "task",     "unit",     "metric",    "budget",
            "match",   "margin",   "power",       "tuning",   "sizes",    "variants", "grid",      "seeds",
            "fair",    "notices",  "differences", "protocol", "effects",  "design",   "correction"});
  size_t curves = 0;
  for (const auto& run : results["runs"]) curves += 2 * run["seeds"].size();
  const size_t points = std::clamp(kAllPoints / std::max<size_t>(1, curves), kFewestPoints, kMostPoints);
  data["runs"] = Json::array();
  for (const auto& run : results["runs"])
    data["runs"].push_back(shown_run(run, member(results, "differences"), points));
  Room samples(kSampleBytes), attention(kAttentionBytes), confusion(kConfusionBytes), examples(kExampleBytes),
      structure(kStructureBytes), experts(kExpertBytes);
  for (const size_t i : by_interest(results)) {
    const Json& run = results["runs"][i];
    data["runs"][i]["samples"] = samples.admit(member(run, "samples"));
    data["runs"][i]["examples"] = examples.admit(shown_examples(member(run, "examples")));
    data["runs"][i]["structure"] = structure.admit(member(run, "structure"));
    data["runs"][i]["attention"] = attention.admit(shown_attention(member(run, "attention")));
    if (!expert_loads_of(run).empty()) data["runs"][i]["experts"] = experts.admit(member(run, "experts"));
    if (confusion_of(run)) data["runs"][i]["confusion"] = confusion.admit(member(run, "confusion"));
  }
  data["left_out"] = {{"samples", samples.left_out()},     {"examples", examples.left_out()},
                      {"structure", structure.left_out()}, {"attention", attention.left_out()},
                      {"confusion", confusion.left_out()}, {"experts", experts.left_out()}};
  return data;
}

std::string page_title(const Json& results) {
  const std::string title = text_at(results, "title");
  return "Comparison: " + (title.empty() ? text_at(results, "name") : title);
}

}  // namespace

std::string report_page(const Json& results) {
  check_results(results);
  return filled_page(embedded::report_page, page_title(results), as_json_text(page_data(results)));
}

}  // namespace zoo

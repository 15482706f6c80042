#pragma once
// Reads results.json for the reports; docs/comparison.md describes its contents.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace zoo {

inline constexpr std::string_view kResultsSchema = "transformer-zoo/comparison/2";

/// Checks that a report can be made: the schema, the metric, the runs with their names, seeds and curves.
/// Anything else may be missing or null, and is then missing in the report. Throws DataError.
void check_results(const nlohmann::ordered_json& results);

/// The member `key` of an object; null where it has no such member, or where `object` is no object.
const nlohmann::ordered_json& member(const nlohmann::ordered_json& object, const char* key);

/// Whether the value is a list of whole numbers from 0 to 2⁴⁰, whose sums fit in 64 bits.
bool is_list_of_counts(const nlohmann::ordered_json& value);

/// The number at `key`; absent where there is none.
std::optional<double> number_at(const nlohmann::ordered_json& object, const char* key);

/// Whether any run has a value of the metric.
bool has_a_result(const nlohmann::ordered_json& results);

/// Whether a run has seeds, and all of them failed.
bool has_failed(const nlohmann::ordered_json& run);
/// The number of seeds that have not learnt more than the frequencies of the targets; failed seeds are not
/// counted.
int64_t n_not_learnt(const nlohmann::ordered_json& run);

/// "0.80 (0.71 to 0.90)", of an estimate and its interval with so many decimals; "–" without a value.
std::string estimate_text(std::optional<double> value, std::optional<double> low, std::optional<double> high,
                          int decimals);

/// The text at `key`; empty where there is none.
std::string text_at(const nlohmann::ordered_json& object, const char* key);

/// Whether a test against the baseline is over examples or documents, not seeds.
bool is_over_examples(const nlohmann::ordered_json& versus);

/// The p behind a verdict: of a difference as large as the margin for "same", else of none.
std::optional<double> p_of_verdict(const nlohmann::ordered_json& versus);

/// What the results count as tokens: "image" for tasks on images, else "token".
std::string unit_of(const nlohmann::ordered_json& results);

}  // namespace zoo

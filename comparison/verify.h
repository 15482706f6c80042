#pragma once
// Whether a study can be believed: one of its trainings is made again, and every number compared.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comparison/planning/comparison_config.h"
#include "comparison/runner.h"
#include "pages/json.h"

namespace zoo {

/// A training of a study.
struct StudyTraining {
  std::string run;  // the name of a row
  int64_t seed = 0;
};

/// A number, or another value, that is not what the study says.
struct VerifiedDifference {
  std::string place;  // "curve.valid_loss[3] (step 400)"
  Json was, is;
};

struct Verification {
  StudyTraining training;
  int64_t n_values = 0;  // that were compared
  std::vector<VerifiedDifference> differences = {};
  /// Circumstances that may explain the differences, such as "processor: … in the study, … here".
  std::vector<std::string> circumstances = {};
};

/// The trainings of a results.json that can be made again; those that failed, and finished runs, cannot.
/// Throws DataError where it is not as docs/comparison.md describes.
std::vector<StudyTraining> trainings_of(const Json& results);

/// Makes a training again, in options.dir, with as many threads as the study had, and compares its numbers
/// with those of `results`: configuration and size, curves and scores, the hash of the data, and over all
/// seeds the mean. Times are not compared.
/// `comparison`: what the study was made from. Nothing where options.should_stop ended it. Throws UsageError
/// where the comparison has no such row, or a budget of seconds; the errors of make_plan(), train_all() and
/// collect_results().
std::optional<Verification> verify(const Json& results, Comparison comparison, const StudyTraining& training,
                                   const RunnerOptions& options);

/// Where a key of a variant is set, "FILE:LINE:COLUMN", in the `base` of a comparison file or a file that
/// this extends. Nothing where it is not set there. Throws ConfigError.
std::optional<std::string> place_in_base(const std::filesystem::path& comparison_file, std::string_view key);

/// Compares two values as verify() does: appends what differs. Numbers that a study has rounded to six digits
/// are compared as far. `place` is that of both. Returns the number of values that were compared.
int64_t compare_values(const Json& was, const Json& is, const std::string& place,
                       std::vector<VerifiedDifference>& differences);

}  // namespace zoo

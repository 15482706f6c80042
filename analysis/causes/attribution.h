#pragma once
// What each token of an input, or each part of a picture, adds to an answer, by gradients: integrated
// gradients (Sundararajan et al. 2017), or gradient × input (Shrikumar et al. 2017). They are taken at the
// vectors of the tokens, to which no positions are added yet, and at the pixels of a picture.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <torch/types.h>

#include "analysis/causes/baseline_path.h"
#include "analysis/causes/gauss_legendre.h"
#include "analysis/causes/question.h"
#include "checkpoints/run.h"
#include "models/model.h"

namespace zoo {

/// integrated_gradients: the difference from a baseline, times the mean gradient on the straight way from it
/// to the input. Their sum is the difference of the scores, up to the error of the integral.
/// gradient_input: the input times its gradient, from one pass.
enum class AttributionBy { integrated_gradients, gradient_input };
constexpr auto config_names(AttributionBy) {
  return std::to_array<std::string_view>({"integrated_gradients", "gradient_input"});
}

struct AttributionOptions {
  AttributionBy by = AttributionBy::integrated_gradients;
  AttributionBaseline baseline = AttributionBaseline::zero;
  int64_t baseline_token = -1;  // of pad and mask; see baseline_token()
  /// Points of the integral, which is a Gauss-Legendre sum, as in captum.
  int64_t steps = 50;
  /// Default: Question::place, and the right output there or the model's first choice.
  std::optional<int64_t> place = {}, answer = {};
  /// The score is the logit of `answer` less that of this output; default: the logit of `answer`.
  std::optional<int64_t> against = {};
};

/// The id of <pad> or <mask>; -1 for the other baselines. Throws UsageError if the vocabulary has none.
int64_t baseline_token(const Run& run, AttributionBaseline baseline);

/// Parts of a picture: squares, row by row.
struct PictureParts {
  int64_t rows = 0, columns = 0;
  /// What they cover of the picture, in its pixels; absent if the question does not say it.
  std::optional<Box> covered = {};
};

struct AttributionReport {
  std::string name = {};  // of the run
  Question question = {};
  AttributionOptions options = {};
  int64_t place = 0, answer = 0;
  double score = 0, baseline_score = 0;
  /// Of each token that the encoder, or the only stack, reads, or of each part of the picture; and of each
  /// that the decoder of a model with two sides reads.
  std::vector<double> source = {}, target = {};
  /// The names of the latter: Question::target_tokens, or, where the decoder reads the source behind a start
  /// token, "start" and its tokens.
  std::vector<std::string> target_names = {};
  std::optional<PictureParts> picture = {};

  double sum() const;
  /// sum() - (score - baseline_score): what the integral misses.
  double completeness_error() const;
};

/// An attribution in parts of one pass each, so that a server does other work between two.
class Attributing {
 public:
  /// Throws UsageError for a model whose inputs are neither tokens nor pictures, for a place that the
  /// question has not, and for baselines that pictures have not; CheckpointError if scores are not numbers.
  /// The weights get no gradients.
  Attributing(Model& model, Question question, const AttributionOptions& options);
  /// Whether points of the way are left.
  bool has_more() const { return next_ < points_.size(); }
  /// Takes the gradients at the next points.
  void go_on();
  /// Once no points are left.
  AttributionReport report() &&;

 private:
  Model& model_;
  AttributionReport report_;
  BaselinePath path_;
  std::vector<IntegralPoint> points_;
  size_t next_ = 0;
  GradientInputs sums_;  // of the weighted gradients, in double on the CPU
};

/// All parts at once.
AttributionReport attribution_report(Model& model, Question question, const AttributionOptions& options = {});

/// In a line: what is explained, and how.
std::string describe(const AttributionReport& report);

}  // namespace zoo

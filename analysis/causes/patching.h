#pragma once
// Activation patching: a model reads a corrupted text, and one activation is replaced by that of a clean
// text. The share of the clean answer that comes back says what the activation carries (Vig et al. 2020; Meng
// et al. 2022; practices of Zhang & Nanda 2024).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <torch/types.h>

#include "analysis/causes/ablation.h"
#include "analysis/causes/question.h"
#include "models/model.h"

namespace zoo {

/// One activation that is carried over; at one position, or without one, at all.
struct Patch {
  AblatedPart part = {};
  std::optional<int64_t> position = {};
};

/// For each patch, the logits (V) at `place` of the features of `corrupt`, with the activation of `clean` in
/// its place: (P, V) double on the CPU. Both batches have one row of the same length, without padding, and
/// are on the model's device. Several patches share a pass.
torch::Tensor patched_logits(Model& model, const Batch& clean, const Batch& corrupt, int64_t place,
                             const std::vector<Patch>& patches);

/// It measures the logit of `answer` less the logit of `against`.
struct PatchReport {
  std::string name = {};  // of the run
  Question clean = {}, corrupt = {};
  int64_t place = 0;
  int64_t answer = 0, against = 0;  // outputs
  double clean_difference = 0, corrupt_difference = 0;
  struct Result {
    Patch patch;
    double difference;  // of the patched pass
    double recovered;   // 0: as the corrupted text, 1: as the clean one
  };
  std::vector<Result> heads = {};      // at all positions
  std::vector<Result> positions = {};  // residual streams and sub-layers, at each position
};

struct PatchRequest {
  /// Default: the likeliest output of the clean text and of the corrupted one.
  std::optional<int64_t> answer = {}, against = {};
  /// Default: Question::place of the clean text.
  std::optional<int64_t> place = {};
};

/// A report in parts of one pass each, so that a server does other work between two.
class Patching {
 public:
  /// Patches every head, and every residual stream and sub-layer at every position. Throws UsageError for
  /// texts of different numbers of tokens, and if the answers of both are the same or the texts do not tell
  /// them apart.
  Patching(Model& model, Question clean, Question corrupt, const PatchRequest& request = {});
  const Question& clean() const { return report_.clean; }
  /// How many patches there are, and whether some are left.
  int64_t n_patches() const { return std::ssize(patches_); }
  bool has_more() const { return n_done_ < patches_.size(); }
  /// Does the next patches.
  void go_on();
  /// Once no patch is left.
  PatchReport report() && { return std::move(report_); }

 private:
  double difference(const torch::Tensor& logits) const;

  Model& model_;
  PatchReport report_;
  Activations activations_;  // of the clean text
  std::vector<Patch> patches_;
  size_t n_done_ = 0;
};

/// All patches at once.
PatchReport patch_report(Model& model, Question clean, Question corrupt, const PatchRequest& request = {});

}  // namespace zoo

#pragma once
// The reports of this folder as JSON documents, as the commands print them with --json.

#include <string>
#include <vector>

#include "analysis/causes/ablation.h"
#include "analysis/causes/attribution.h"
#include "analysis/causes/contributions.h"
#include "analysis/causes/head_kinds.h"
#include "analysis/causes/lens.h"
#include "analysis/causes/lens_training.h"
#include "analysis/causes/patching.h"

namespace zoo {

/// A row of an ablation: the parts that are replaced together, and the score.
struct AblationRow {
  std::vector<AblatedPart> parts;
  AblationScore score;
};
struct AblationReport {
  std::string name = {};  // of the run
  std::string data = {};  // what was read
  AblationBy by = AblationBy::zero;
  std::vector<int64_t> positions = {};  // empty: all
  bool has_accuracy = true;             // whether targets are classes or tokens
  AblationScore whole = {};
  std::vector<AblationRow> rows = {};
};

/// {"name", "lens": plain or trained, "input", "target", "source_tokens", "target_tokens", "places": [label,
/// …], "answers": [{"id", "label"}, …], "depths": [{"depth": from 0, "cells": [{"likeliest": [{"id", "label",
/// "probability"}, …], "probability", "rank", "divergence"}, …]}, …], "contributions": {"place", "output",
/// "logit", "parts":
/// [{"name", "logit"}, …]}} with a cell for each place; "contributions" is absent without them. Where they
/// cannot be told, "logit" is null, "parts" is empty, and "reason" says why.
std::string to_json(const LensReport& report, const std::optional<LensContributions>& contributions);

/// {"name", "data", "steps", "lr", "seed", "trained_batches", "held_out_batches", "held_out_places",
/// "depths": [{"depth": from 0, "plain", "trained"}, …]} with divergences in nats, without the last depth.
std::string to_json(const LensTraining& training);

/// {"name", "data", "by", "positions", "loss", "accuracy", "targets", "ablations": [{"parts": [name, …],
/// "loss", "accuracy", "loss_change", "accuracy_change"}, …]}; without accuracies for other targets than
/// classes.
std::string to_json(const AblationReport& report);

/// {"name", "clean", "corrupt", "clean_tokens", "corrupt_tokens", "place", "answer", "against": {"id",
/// "label"}, "clean_difference", "corrupt_difference", "heads": [{"part", "difference", "recovered"}, …],
/// "positions": [{"part", "position", "difference", "recovered"}, …]}.
std::string to_json(const PatchReport& report);

/// {"name", "input", "target", "by", "baseline", "steps", "place", "answer": {"id", "label"}, "against": the
/// same or null, "score", "baseline_score", "sum", "completeness_error", "source": [{"token", "attribution"},
/// …], "decoder": the same of what the decoder of two sides reads}; gradient_input has no baseline, steps,
/// baseline_score and completeness_error. A picture has "picture": {"rows", "columns", "attributions": rows
/// of numbers} in place of both lists.
std::string to_json(const AttributionReport& report);

/// {"name", "length", "recall", "heads": [{"kind", "layer", "head", "previous", "duplicate", "induction"},
/// …]}; recall is null for a model that does not write.
std::string to_json(const HeadKindReport& report);

}  // namespace zoo

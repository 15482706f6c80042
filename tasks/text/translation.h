#pragma once
// Translates a corpus with a model of the task text_to_text, and measures the quality.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "generation/generation_config.h"
#include "io/metrics_log.h"
#include "models/model.h"
#include "tasks/task.h"
#include "text/text_rows.h"

namespace zoo {

struct TranslateOptions {
  /// With beam > 1 the best hypothesis is taken, else the most likely token at each position. temperature,
  /// top_k, top_p and num_samples have no effect.
  GenerationConfig generation = {};
  std::function<void(int64_t done, int64_t all)> on_progress = nullptr;  // counts sources
};

/// Lists of equal length, in the order of the corpus. Outputs are lines of UTF-8: if a model of bytes writes
/// a line break, it becomes a blank, and invalid UTF-8 becomes U+FFFD.
struct Translations {
  std::vector<std::string> sources, outputs, references;
};

/// The output of `model` for each source. Sources are cut to data.sequence_length tokens and outputs to
/// data.target_length, with eos: the model was trained on these lengths and has positions for them. Throws
/// UsageError on options out of range, DataError as Tokenizer::encode(), CheckpointError if the model's
/// logits are NaN.
std::vector<std::string> translate(Model& model, const Task& task, const std::vector<std::string>& sources,
                                   const TranslateOptions& options = {});

/// The same for the pairs of a split, see parallel_texts(). The task must be text_to_text. Also throws
/// DataError as parallel_texts().
Translations translate(Model& model, const Task& task, Split split, const TranslateOptions& options = {});

/// The metrics `bleu` and `chrf`, see text_metrics.h.
Metrics translation_metrics(const Translations& translations);

}  // namespace zoo

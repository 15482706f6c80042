#pragma once
// What a model of the task text_to_text makes of a corpus, and how good that is.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/text/corpus.h"
#include "generation/generation_config.h"
#include "io/metrics_log.h"
#include "models/model.h"
#include "training/tasks/task.h"

namespace zoo {

struct TranslateOptions {
  /// With beam > 1 the best hypothesis is taken, else the likeliest token each time: temperature, top_k,
  /// top_p and num_samples have no meaning.
  GenerationConfig generation = {};
  std::function<void(int64_t done, int64_t all)> on_progress = nullptr;  // sources
};

/// Equally many, in the order of the corpus. Outputs are lines of UTF-8: where a model of bytes wrote a line
/// break there is a blank, where it wrote what is no text U+FFFD.
struct Translations {
  std::vector<std::string> sources, outputs, references;
};

/// What `model` writes for each source. Sources are cut to data.sequence_length tokens and outputs to
/// data.target_length, with eos: so much it was trained on, and has positions for. Throws UsageError on
/// options out of range, DataError as Tokenizer::encode(), CheckpointError where the model's logits are NaN.
std::vector<std::string> translate(Model& model, const Task& task, const std::vector<std::string>& sources,
                                   const TranslateOptions& options = {});

/// The same for the pairs of a split, see read_parallel(); the task must be text_to_text. Throws also
/// DataError as read_parallel().
Translations translate(Model& model, const Task& task, Split split, const TranslateOptions& options = {});

/// `bleu` and `chrf`, see text_metrics.h.
Metrics translation_metrics(const Translations& translations);

}  // namespace zoo

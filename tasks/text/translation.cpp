#include "tasks/text/translation.h"

#include <algorithm>
#include <limits>

#include "data/epoch_plan.h"
#include "generation/generator.h"
#include "tasks/metrics/text_metrics.h"
#include "tasks/text/text_tasks.h"
#include "text/batches/padded_rows.h"

namespace zoo {
namespace {

GenerationConfig best_output(const DataConfig& data, GenerationConfig options) {
  options.num_samples = 1;
  if (options.beam == 1) options.temperature = 0;
  constexpr int64_t n_before = 1;  // what the decoder reads first
  options.max_new_tokens =
      std::min(most_new_tokens(options, n_before), data.target_length.value_or(data.sequence_length));
  return options;
}

}  // namespace

std::vector<std::string> translate(Model& model, const Task& task, const std::vector<std::string>& sources,
                                   const TranslateOptions& options) {
  const auto& data = task.experiment().data;
  const auto generation = best_output(data, options.generation);
  check(generation);
  std::vector<TokenIds> prompts;
  for (const auto& source : sources) {
    TokenIds prompt = task.tokenizer().encode(source);
    prompt.resize(std::min(prompt.size(), static_cast<size_t>(data.sequence_length - 1)));
    prompts.push_back(std::move(prompt));
  }
  // As many as the generator takes at once, all of about the same length.
  std::vector<int64_t> lengths;
  for (const auto& prompt : prompts) lengths.push_back(static_cast<int64_t>(prompt.size()));
  const BatchLimits most{.rows = std::max<int64_t>(1, generation.batch_size / generation.beam),
                         .tokens = std::numeric_limits<int64_t>::max()};

  const Generator generator(model, task.tokenizer());
  std::vector<std::string> outputs(sources.size());
  const auto translate_batch = [&](std::span<const int64_t> batch) {
    const auto generations = generator.generate(rows_at(prompts, batch), generation);
    for (size_t b = 0; b < batch.size(); ++b)
      outputs[static_cast<size_t>(batch[b])] = as_line(generations[b].outputs.front().text);
  };
  for_each_batch(lengths, most, translate_batch, options.on_progress);
  return outputs;
}

Translations translate(Model& model, const Task& task, Split split, const TranslateOptions& options) {
  auto pairs = parallel_texts(task.experiment().data).take(split);
  auto outputs = translate(model, task, pairs.source, options);
  return {.sources = std::move(pairs.source),
          .outputs = std::move(outputs),
          .references = std::move(pairs.target)};
}

Metrics translation_metrics(const Translations& translations) {
  const ReferenceTexts references = {translations.references};
  return {{"bleu", corpus_bleu(translations.outputs, references)},
          {"chrf", corpus_chrf(translations.outputs, references)}};
}

}  // namespace zoo

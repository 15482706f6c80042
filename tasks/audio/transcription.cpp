#include "tasks/audio/transcription.h"

#include <algorithm>
#include <string_view>

#include "generation/ctc_search.h"
#include "generation/generator.h"
#include "models/families/families.h"
#include "models/inference_scope.h"
#include "tasks/text/text_tasks.h"

namespace zoo {
namespace {

std::vector<std::string> transcribe_by_ctc(Model& model, const Task& task, const Batch& recordings,
                                           int64_t beam) {
  const InferenceScope scope(model);
  const auto& aligning = *model.aligning();
  const auto logits = model.logits(model.hidden_states(model.on_device(recordings)));
  const auto log_probs = logits.to(torch::kCPU, torch::kFloat).log_softmax(-1);  // (B, T, C)
  const auto& tokenizer = task.tokenizer();
  std::vector<std::string> texts;
  for (auto& [ids, logprob] : ctc_search(log_probs, aligning.n_moments(recordings), beam, aligning.blank())) {
    // A published model may have more classes than tokens.
    std::erase_if(ids, [&](int64_t id) { return id >= tokenizer.vocab_size(); });
    texts.push_back(tokenizer.decode(ids));
  }
  return texts;
}

std::vector<std::string> transcribe_by_decoder(Model& model, const Task& task, const Batch& recordings,
                                               const GenerationConfig& options) {
  Batch sources;
  for (const char* const name : {fields::kSpectrograms, fields::kFrames}) {
    if (recordings.fields.contains(name)) sources.fields[name] = recordings.field(name);
  }
  std::vector<std::string> texts;
  for (auto& generation :
       Generator(model, task.tokenizer()).transcribe(sources, writing_options(task, options)))
    texts.push_back(std::move(generation.outputs.front().text));
  return texts;
}

}  // namespace

bool uses_ctc(const Experiment& experiment) {
  const auto& heads = model_families().at(experiment.model.architecture).heads;
  return std::ranges::find(heads, HeadKind::ctc) != heads.end();
}

GenerationConfig writing_options(const Task& task, GenerationConfig options) {
  options.num_samples = 1;
  if (options.beam == 1) options.temperature = 0;
  const int64_t n_before = 1 + std::ssize(options.start_tokens);  // what the decoder reads first
  options.max_new_tokens =
      std::min(most_new_tokens(options, n_before), task.experiment().data.sequence_length);
  return options;
}

std::vector<std::string> transcribe(Model& model, const Task& task, const Batch& recordings,
                                    const GenerationConfig& options) {
  auto texts = uses_ctc(task.experiment()) ? transcribe_by_ctc(model, task, recordings, options.beam)
                                           : transcribe_by_decoder(model, task, recordings, options);
  for (auto& text : texts) text = as_line(text);
  return texts;
}

}  // namespace zoo

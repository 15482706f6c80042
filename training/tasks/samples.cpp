#include "training/tasks/samples.h"

#include "generation/generator.h"

namespace zoo {
namespace {

std::vector<Sample> texts(Model& model, const Task& task, const std::vector<TokenIds>& prompts,
                          const GenerationConfig& options) {
  const Generator generator(model, task.tokenizer());
  std::vector<Sample> result;
  for (const auto& generation : generator.generate(prompts, options)) {
    result.push_back(
        {.input = task.tokenizer().decode(generation.prompt_ids), .output = generation.outputs.front().text});
  }
  return result;
}

}  // namespace

std::vector<Sample> sampled_texts(Model& model, const Task& task, const std::vector<TokenIds>& prompts) {
  GenerationConfig options = task.experiment().generation;
  options.num_samples = 1;
  return texts(model, task, prompts, options);
}

std::vector<Sample> greedy_texts(Model& model, const Task& task, const std::vector<TokenIds>& prompts) {
  GenerationConfig options;
  options.temperature = 0;
  options.max_new_tokens = task.experiment().generation.max_new_tokens;
  return texts(model, task, prompts, options);
}

}  // namespace zoo

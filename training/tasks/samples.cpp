#include "training/tasks/samples.h"

#include "generation/generator.h"

namespace zoo {

std::vector<Sample> sampled_texts(Model& model, const Task& task, const std::vector<TokenIds>& prompts) {
  GenerationConfig options = task.experiment().generation;
  options.num_samples = 1;
  const Generator generator(model, task.tokenizer());
  std::vector<Sample> result;
  for (const auto& generation : generator.generate(prompts, options)) {
    result.push_back(
        {.input = task.tokenizer().decode(generation.prompt_ids), .output = generation.outputs.front().text});
  }
  return result;
}

}  // namespace zoo

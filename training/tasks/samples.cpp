#include "training/tasks/samples.h"

#include "generation/generator.h"

namespace zoo {
namespace {

std::vector<std::string> texts(Model& model, const Task& task, const std::vector<TokenIds>& prompts,
                               const GenerationConfig& options) {
  const Generator generator(std::dynamic_pointer_cast<Model>(model.shared_from_this()),
                            task.vocabulary().tokenizer);
  const auto& tokenizer = task.tokenizer();
  std::vector<std::string> result;
  for (const auto& generation : generator.generate(prompts, options)) {
    const bool with_prompt = generator.continues_prompt();
    result.push_back((with_prompt ? tokenizer.decode(generation.prompt_ids) : "") +
                     generation.outputs.front().text);
  }
  return result;
}

}  // namespace

std::vector<std::string> sampled_texts(Model& model, const Task& task, const std::vector<TokenIds>& prompts) {
  GenerationConfig options = task.experiment().generation;
  options.num_samples = 1;
  return texts(model, task, prompts, options);
}

std::vector<std::string> greedy_texts(Model& model, const Task& task, const std::vector<TokenIds>& prompts) {
  GenerationConfig options;
  options.temperature = 0;
  options.max_new_tokens = task.experiment().generation.max_new_tokens;
  return texts(model, task, prompts, options);
}

}  // namespace zoo

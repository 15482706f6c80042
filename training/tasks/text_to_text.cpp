// Pairs of lines: read one, write the other. By an encoder-decoder, or by a decoder that reads and writes in
// one sequence.

#include <algorithm>

#include <fmt/format.h>

#include "data/corpus.h"
#include "data/token_store.h"
#include "training/evaluation.h"
#include "training/tasks/samples.h"
#include "training/tasks/tasks.h"

namespace zoo {
namespace {

class TextToText final : public Task {
 public:
  using Task::Task;

  ModelPurpose purpose() const override {
    return {.head = Head::language_modeling,
            .prompt = PromptUse::answered,
            .vocab_size = tokenizer().vocab_size(),
            .start_token = tokenizer().special().bos};
  }

  /// What it makes of the first pairs of the validation data.
  std::vector<Sample> samples(Model& model, const std::vector<std::string>& inputs) override {
    constexpr size_t n_samples = 4;
    ParallelTexts pairs;
    if (inputs.empty()) {
      pairs = read_parallel(experiment().data, Split::valid);
      pairs.source.resize(std::min(n_samples, pairs.source.size()));
    } else {
      pairs.source = inputs;
    }
    std::vector<TokenIds> prompts;
    for (const auto& source : pairs.source) {
      TokenIds prompt = tokenizer().encode(source);
      prompt.resize(std::min(prompt.size(), static_cast<size_t>(experiment().data.sequence_length - 1)));
      prompts.push_back(std::move(prompt));
    }
    auto result = greedy_texts(model, *this, prompts);
    for (size_t i = 0; i < result.size(); ++i) {
      result[i].input = pairs.source[i];  // whole, where the model read a part
      if (!pairs.target.empty()) result[i].reference = pairs.target[i];
    }
    return result;
  }

 private:
  std::unique_ptr<BatchSource> open(Split split) override {
    const auto& data = experiment().data;
    const auto pairs = read_parallel(data, split);
    const bool alone = experiment().model.architecture == Architecture::decoder;
    return text_to_text_batches(tokenize(pairs.source, tokenizer(), RowEnding::bare),
                                tokenize(pairs.target, tokenizer(), RowEnding::bare), data.sequence_length,
                                data.target_length.value_or(data.sequence_length),
                                alone ? PairLayout::one_stream : PairLayout::two_sides, tokenizer().special(),
                                batch_options(split));
  }
};

}  // namespace

std::unique_ptr<Task> make_text_to_text(const Experiment& experiment, Vocabulary vocabulary) {
  if (!vocabulary.tokenizer) {
    const auto pairs = read_parallel(experiment.data, Split::train);
    vocabulary.tokenizer =
        make_tokenizer_for(experiment.data.tokenizer, SpecialTokenSet::all, {&pairs.source, &pairs.target});
  }
  return std::make_unique<TextToText>(experiment, std::move(vocabulary));
}

}  // namespace zoo

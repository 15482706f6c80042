// Pairs of lines: read one, write the other.

#include <algorithm>

#include <fmt/format.h>

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
            .vocab_size = tokenizer().vocab_size(),
            .start_token = tokenizer().special().bos};
  }

  /// The first pairs of the validation data: what was read, what the model writes, what it should be.
  std::string sample(Model& model) override {
    constexpr size_t n_samples = 4;
    auto pairs = read_parallel(experiment().data, Split::valid);
    const size_t n = std::min(n_samples, pairs.source.size());
    pairs.source.resize(n);
    std::vector<TokenIds> prompts;
    for (const auto& source : pairs.source) {
      TokenIds prompt = tokenizer().encode(source);
      prompt.resize(std::min(prompt.size(), static_cast<size_t>(experiment().data.sequence_length - 1)));
      prompts.push_back(std::move(prompt));
    }
    const auto written = greedy_texts(model, *this, prompts);
    std::string text;
    for (size_t i = 0; i < n; ++i) {
      text += fmt::format("  {}\n= {}\n> {}\n", pairs.source[i], pairs.target[i], written[i]);
    }
    return text;
  }

 private:
  std::unique_ptr<BatchSource> open(Split split) override {
    const auto& data = experiment().data;
    const auto pairs = read_parallel(data, split);
    return text_to_text_batches(tokenize(pairs.source, tokenizer(), RowEnding::bare),
                                tokenize(pairs.target, tokenizer(), RowEnding::bare), data.sequence_length,
                                data.target_length.value_or(data.sequence_length), tokenizer().special(),
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

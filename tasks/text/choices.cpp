// Questions with choices: a model that writes answers them by the likelihood of each choice, and learns to
// continue a context with the right one.

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "generation/prompt.h"
#include "models/families/families.h"
#include "tasks/library_tasks.h"
#include "tasks/task_checks.h"
#include "tasks/text/choice_scores.h"
#include "tasks/text/text_tasks.h"
#include "text/batches/text_batches.h"
#include "text/choice_questions.h"
#include "tokenizers/token_store.h"
#include "tokenizers/tokenize.h"

namespace zoo {
namespace {

/// Of texts that are cut later.
constexpr int64_t kAnyLength = int64_t{1} << 40;

bool reads_with_encoder(const Experiment& experiment) {
  return shape_of(experiment.model) == FamilyShape::encoder_decoder;
}

class Choices final : public Task {
 public:
  Choices(const Experiment& experiment, Vocabulary vocabulary, RowsBySplit<std::vector<ChoiceQuestion>> rows)
      : Task(experiment, std::move(vocabulary)), rows_(std::move(rows)) {}

  ModelPurpose purpose() const override {
    return {.head = HeadKind::language_modeling,
            .vocab_size = tokenizer().vocab_size(),
            .start_token = decoder_start(tokenizer().special())};
  }

  Metrics measure(Model& model, Split split, const EvaluationOptions& options) override {
    return choice_metrics(model, tokenizer(), set(split), batch_options(split).batch_size, options);
  }

  /// Continues the inputs, or the contexts of some questions.
  std::vector<Sample> samples(Model& model, const std::vector<std::string>& inputs) override {
    constexpr size_t n_samples = 4;
    auto contexts = inputs;
    std::vector<ChoiceQuestion> questions;
    if (inputs.empty()) {
      const auto& all = set(Split::valid);
      questions.assign(all.questions.begin(),
                       all.questions.begin() + std::min(n_samples, all.questions.size()));
      for (const auto& question : questions)
        contexts.push_back(context_with_shots(question, all.shots, all.config));
    }
    std::vector<TokenIds> prompts;
    const auto& writer = *model.generative();
    for (const auto& context : contexts) {
      auto prompt = encode_prompt(tokenizer(), context, writer);
      // Half of what a decoder sees is room to write.
      const int64_t most = std::max<int64_t>(writer.max_length() / 2, 1);
      if (std::ssize(prompt) > most) prompt.erase(prompt.begin(), prompt.end() - most);
      prompts.push_back(std::move(prompt));
    }
    auto samples = sampled_texts(model, *this, prompts);
    for (size_t i = 0; i < questions.size(); ++i) samples[i].reference = questions[i].right_choice();
    return samples;
  }

 private:
  /// The questions of a split, which stay in memory.
  const ChoiceSet& set(Split split) {
    auto& set = sets_[static_cast<size_t>(split)];
    if (!set) {
      set = ChoiceSet{.questions = rows_.take(split),
                      .shots = read_shots(experiment().data),
                      .config = experiment().data.choices};
    }
    return *set;
  }

  /// The right choices, which are predicted.
  std::unique_ptr<BatchSource> open(Split split) override {
    const auto& data = experiment().data;
    const auto use = reads_with_encoder(experiment()) ? ContextUse::answered : ContextUse::continued;
    const auto length = data.sequence_length;
    // Batches put an end token behind the choice and behind what an encoder reads.
    const auto answers = right_answers(set(split), tokenizer(), {.use = use, .most = kAnyLength});
    std::vector<TokenIds> texts, targets;
    int64_t n_cut = 0;
    for (auto [context, choice] : answers) {
      const bool is_read_alone = use == ContextUse::answered;
      if (is_read_alone && context.back() == tokenizer().special().eos) context.pop_back();
      const int64_t n = std::ssize(context) + (is_read_alone ? 0 : std::ssize(choice));
      n_cut += n > length ? 1 : 0;
      choice.resize(std::min(choice.size(), static_cast<size_t>(length)));
      const int64_t most = is_read_alone ? length - 1 : length + 1 - std::ssize(choice);
      if (std::ssize(context) > most) context.erase(context.begin(), context.end() - most);
      const int64_t begin = std::ssize(context);
      if (!is_read_alone) context.insert(context.end(), choice.begin(), choice.end());
      targets.push_back(is_read_alone ? std::move(choice) : TokenIds{begin, std::ssize(context)});
      texts.push_back(std::move(context));
    }
    if (n_cut > 0) {
      add_notes(
          {fmt::format("{} of {} questions for {} are longer than data.sequence_length, {}: their "
                       "beginnings are cut",
                       n_cut, answers.size(), name_of(split), length)});
    }
    const auto rows = TokenStore::from_rows(texts), others = TokenStore::from_rows(targets);
    if (use == ContextUse::continued)
      return answer_batches(rows, others, length, tokenizer().special(), batch_options(split));
    return text_to_text_batches(rows, others, length, length, PairLayout::two_sides, tokenizer().special(),
                                batch_options(split));
  }

  RowsBySplit<std::vector<ChoiceQuestion>> rows_;
  std::array<std::optional<ChoiceSet>, 3> sets_;  // by Split
};

std::unique_ptr<Task> make_choices(const Experiment& experiment, Vocabulary vocabulary) {
  auto rows = choice_questions(experiment.data);
  if (!vocabulary.tokenizer) {
    std::vector<std::string> texts;
    for (const auto& question : rows.of(Split::train)) {
      texts.push_back(question.context + experiment.data.choices.separator);
      for (const auto& choice : question.choices) texts.push_back(experiment.data.choices.delimiter + choice);
    }
    vocabulary.tokenizer =
        make_tokenizer_for(experiment.data.tokenizer, SpecialTokenSet::all, reader_of({&texts}));
  }
  return std::make_unique<Choices>(experiment, std::move(vocabulary), std::move(rows));
}

void validate_choices(const Experiment& experiment, const Complain& complain) {
  require_shape(experiment, {FamilyShape::decoder, FamilyShape::encoder_decoder},
                "decoder or encoder_decoder", complain);
  require_positions(experiment, "data.sequence_length", experiment.data.sequence_length, complain);
  const auto& choices = experiment.data.choices;
  if (choices.shots == 0 && !choices.shots_from.empty())
    complain("data.choices.shots_from",
             "is for data.choices.shots: say how many questions stand before others");
}

}  // namespace

TaskType choices() {
  TaskType type;
  type.name = "choices";
  type.doc = "Which of a few texts follows a context, by their likelihood.";
  type.best_by = {acc_of_choices(),
                  acc_norm_of_choices(),
                  {.key = "bits_per_byte", .label = "bits per byte of the right choices"}};
  type.comparison = acc_of_choices();
  type.search = UsualSearch::sampling;
  type.make = make_choices;
  type.validate = validate_choices;
  type.purpose = [](const Experiment&, int64_t vocab_size) -> std::optional<ModelPurpose> {
    return ModelPurpose{.head = HeadKind::language_modeling, .vocab_size = vocab_size, .start_token = 0};
  };
  type.needs_special_tokens = reads_with_encoder;
  type.layout = [](const Experiment& experiment) {
    return reads_with_encoder(experiment) ? TextLayout::source_and_target : TextLayout::tokens;
  };
  return type;
}

}  // namespace zoo

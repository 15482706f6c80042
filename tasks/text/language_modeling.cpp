// Next-token prediction over a stream of text.

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "generation/prompt.h"
#include "models/families/families.h"
#include "tasks/evaluation.h"
#include "tasks/examples.h"
#include "tasks/library_tasks.h"
#include "tasks/task_checks.h"
#include "tasks/text/choice_scores.h"
#include "tasks/text/stream_examples.h"
#include "tasks/text/text_tasks.h"
#include "text/batches/text_batches.h"
#include "text/conversations.h"
#include "text/corpus.h"
#include "text/token_streams.h"

namespace zoo {
namespace {

bool has_encoder(const Experiment& experiment) {
  return shape_of(experiment.model) == FamilyShape::encoder_decoder;
}

/// A decoder that reads one stream of text needs no tokens for begin and end.
bool needs_special_tokens(const Experiment& experiment) {
  return has_encoder(experiment) || experiment.data.documents != DocumentSplit::none;
}

/// The number of words between white space, plus one for the end of each line, also of a last line without a
/// line break.
size_t words_in(std::string_view document) {
  size_t words = document.ends_with('\n') ? 0 : 1;
  bool within = false;
  for (const char c : document) {
    const bool blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (c == '\n') ++words;
    if (within && blank) ++words;
    within = !blank;
  }
  return words + (within ? 1 : 0);
}

class LanguageModeling final : public Task {
 public:
  LanguageModeling(const Experiment& experiment, Vocabulary vocabulary, Corpus corpus)
      : Task(experiment, std::move(vocabulary)), corpus_(std::move(corpus)) {}

  std::string hash_of_data() const override { return corpus_.hash_of_data(); }

  ModelPurpose purpose() const override {
    return {.head = HeadKind::language_modeling,
            .vocab_size = tokenizer().vocab_size(),
            .start_token = decoder_start(tokenizer().special())};
  }

  Metrics measure(Model& model, Split split, const EvaluationOptions& options) override {
    ExampleRecorder examples(options);
    const Score scored = score(model, batches(split), examples.options());
    Metrics metrics = loss_metrics(scored);
    if (examples.is_wanted()) set_examples(examples, split);
    // Comparable between tokenizers, unlike the loss per token.
    const double bytes_per_token = bytes_per_token_[static_cast<size_t>(split)];
    if (bytes_per_token > 0)
      metrics[bits_key(tokenizer())] = scored.loss() / std::numbers::ln2 / bytes_per_token;
    // The metric of published word-level models, which predict the ends of lines, too.
    const double words_per_token = words_per_token_[static_cast<size_t>(split)];
    const double word_perplexity = std::exp(scored.loss() / words_per_token);
    // In texts without blanks between words, such as Chinese, whole sentences would count as words.
    constexpr double longest_words = 20;  // bytes, on average
    const bool has_words = bytes_per_token < longest_words * words_per_token;
    if (has_words && std::isfinite(word_perplexity)) metrics["word_perplexity"] = word_perplexity;
    if (split == Split::valid) {
      metrics.merge(
          side_metrics_of_choices(model, tokenizer(), choices(), batch_options(split).batch_size, options));
    }
    return metrics;
  }

  /// Continues the beginning of the validation text, or answers in its first conversation. If documents are
  /// separate, also writes one from nothing.
  std::vector<Sample> samples(Model& model, const std::vector<std::string>& inputs) override {
    constexpr size_t prompt_length = 16;
    std::vector<TokenIds> prompts;
    const auto before =
        has_encoder(experiment()) ? TokenIds{} : tokenizer().frame().value_or(TextFrame{}).before;
    for (const auto& input : inputs)
      prompts.push_back(framed({.before = before, .between = {}, .after = {}}, tokenizer().encode(input)));
    if (prompts.empty()) {
      batches(Split::valid);  // opens the validation text
      if (experiment().data.chat) {
        const auto beginning = valid_.row(0);
        return sampled_texts(model, *this, {{beginning.begin(), beginning.begin() + valid_answer_}});
      }
      if (!has_encoder(experiment()) && needs_special_tokens(experiment()))
        prompts.push_back({tokenizer().special().eos});
      TokenIds beginning = valid_.row(0);
      beginning.resize(std::min(beginning.size(), prompt_length));
      if (!beginning.empty()) prompts.push_back(std::move(beginning));
    }
    return sampled_texts(model, *this, prompts);
  }

 private:
  /// The questions of data.choices.files; none without.
  const ChoiceSet& choices() {
    const auto& data = experiment().data;
    if (!choices_ && !data.choices.files.empty()) {
      choices_ = ChoiceSet{
          .questions = read_questions(data.choices.files), .shots = read_shots(data), .config = data.choices};
    }
    if (!choices_) choices_.emplace();
    return *choices_;
  }

  /// An example is a conversation, a document, or a part of a text that is not divided into documents.
  void set_examples(ExampleRecorder& recorder, Split split) {
    const auto& data = experiment().data;
    if (data.chat) {
      recorder.finish_rows();
      const auto& bytes = predicted_answer_bytes_[static_cast<size_t>(split)];
      for (size_t i = 0; i < recorder.examples().size(); ++i) recorder.examples()[i].bytes = bytes.at(i);
      return name_inputs(recorder, batches(split), tokenizer());
    }
    const auto kind = data.documents == DocumentSplit::none ? StreamTexts::long_texts : StreamTexts::examples;
    recorder.finish(examples_of_stream(
        scored_[static_cast<size_t>(split)], corpus_.texts(split), kind, tokenizer(),
        recorder.losses().losses,
        {.prefix = data.prefix_length.value_or(usual_prefix()), .length = data.sequence_length}));
  }

  /// The tokens of a window that are read and not predicted in an evaluation.
  int64_t usual_prefix() const {
    return has_encoder(experiment()) ? std::max<int64_t>(experiment().data.sequence_length / 2, 1) : 1;
  }

  std::unique_ptr<BatchSource> open(Split split) override {
    const auto& data = experiment().data;
    if (data.chat) return open_conversations(split);
    auto stream = streams_.take(split, tokenizer(), [&](std::string_view document, Split of) {
      auto& size = sizes_[static_cast<size_t>(of)];
      size.documents.push_back(document.size());
      size.words += words_in(document);
    });
    note_size(split, stream);
    if (split == Split::valid) valid_ = stream;
    if (split != Split::train) scored_[static_cast<size_t>(split)] = stream;
    const int64_t prefix = data.prefix_length.value_or(usual_prefix());
    if (has_encoder(experiment())) {
      return prefix_language_modeling_batches(std::move(stream), data.sequence_length, prefix,
                                              tokenizer().special(), batch_options(split));
    }
    // Training uses every token of a window; evaluation scores only the tokens after the prefix, and
    // documents as they are.
    if (split != Split::train) {
      return language_modeling_batches(std::move(stream), data.sequence_length, prefix, batch_options(split));
    }
    const InfillingShares shares{.documents = data.fill_in_the_middle, .suffix_first = data.suffix_first};
    const auto infilling = shares.documents > 0 ? infilling_of(shares, tokenizer()) : Infilling{};
    return language_modeling_batches(std::move(stream), data.sequence_length, 1, batch_options(split),
                                     infilling);
  }

  void note_size(Split split, const TokenStore& stream) {
    const auto size = std::exchange(sizes_[static_cast<size_t>(split)], {});
    size_t bytes = 0;
    for (int64_t row = 0; row < stream.n_rows(); ++row) {
      const int64_t begin = stream.row_begin(row);
      bytes += predicted_bytes(tokenizer(), stream, begin, begin + stream.row_length(row),
                               size.documents[static_cast<size_t>(row)]);
    }
    const auto tokens = static_cast<double>(std::max<int64_t>(stream.n_tokens(), 1));
    bytes_per_token_[static_cast<size_t>(split)] = static_cast<double>(bytes) / tokens;
    words_per_token_[static_cast<size_t>(split)] = static_cast<double>(size.words) / tokens;
  }

  /// Notes how many bytes of answers are predicted. Of answers that are cut these are the share of their
  /// tokens.
  void note_answers(Split split, const TokenStore& answers, const std::vector<int64_t>& answer_bytes) {
    const int64_t n_read = experiment().data.sequence_length + 1;
    auto& predicted = predicted_answer_bytes_[static_cast<size_t>(split)];
    int64_t all_bytes = 0, all_tokens = 0;
    for (int64_t row = 0; row < answers.n_rows(); ++row) {
      const auto list = answers.row(row);
      int64_t n_tokens = 0, n_predicted = 0;
      for (size_t i = 0; i < list.size(); i += 2) {
        n_tokens += list[i + 1] - list[i];
        n_predicted += std::max<int64_t>(0, std::min(list[i + 1], n_read) - std::max<int64_t>(list[i], 1));
      }
      if (n_predicted == 0) continue;  // is left out
      const double share = static_cast<double>(n_predicted) / static_cast<double>(n_tokens);
      predicted.push_back(std::llround(share * static_cast<double>(answer_bytes[static_cast<size_t>(row)])));
      all_bytes += predicted.back();
      all_tokens += n_predicted;
    }
    bytes_per_token_[static_cast<size_t>(split)] =
        static_cast<double>(all_bytes) / static_cast<double>(std::max<int64_t>(all_tokens, 1));
  }

  std::unique_ptr<BatchSource> open_conversations(Split split) {
    const auto& data = experiment().data;
    auto [tokens, answers, answer_bytes, n_without_answer] =
        tokenize_conversations(corpus_, split, tokenizer());
    const int64_t n = tokens.n_rows() + n_without_answer;
    // What follows the last token that is read is predicted, too.
    for (int64_t i = 0; i < answers.n_rows(); ++i)
      n_without_answer += answers.row(i).front() > data.sequence_length ? 1 : 0;
    if (n_without_answer > 0) {
      add_notes({fmt::format(
          "{} of {} conversations for {} have no answer within data.sequence_length, {}: they are "
          "left out",
          n_without_answer, n, name_of(split), data.sequence_length)});
    }
    add_notes(notes_on_cut(n_longer_than(data.sequence_length + 1, tokens), n, "conversations", split,
                           "data.sequence_length", data.sequence_length));
    note_answers(split, answers, answer_bytes);
    if (split == Split::valid) {
      corpus_.release();
      valid_ = tokens;
      valid_answer_ = answers.row(0).front();
    }
    return answer_batches(std::move(tokens), std::move(answers), data.sequence_length, tokenizer().special(),
                          batch_options(split));
  }

  Corpus corpus_;
  TokenStreams streams_{corpus_};
  struct Size {
    std::vector<size_t> documents;  // bytes of each
    size_t words = 0;
  };
  std::array<Size, 3> sizes_;                                    // by Split, of those that are being read
  std::array<double, 3> bytes_per_token_{}, words_per_token_{};  // by Split
  std::array<std::vector<int64_t>, 3> predicted_answer_bytes_;   // by Split: of each conversation
  std::optional<ChoiceSet> choices_;
  TokenStore valid_;
  std::array<TokenStore, 3> scored_;  // by Split: what evaluations predict
  int64_t valid_answer_ = 0;          // of conversations: where the first answer of the first one begins
};

/// What a vocabulary is made from: the training text. Characters without <unk> are those of the whole text
/// where the validation text is a part of it, whose only line end may be its last character.
TextReader texts_of_vocabulary(Corpus& corpus, const DataConfig& data, SpecialTokenSet special) {
  const bool needs_all = data.tokenizer.type == TokenizerKind::character && special == SpecialTokenSet::none;
  if (!needs_all || !is_shared(data, Split::valid)) return corpus.reader(Split::train);
  return [&corpus](const std::function<void(std::string_view)>& sink) {
    constexpr std::array splits = {Split::train, Split::valid};
    corpus.visit(splits, [&](const Document& document, Split) { sink(document.text); });
  };
}

std::unique_ptr<Task> make_language_modeling(const Experiment& experiment, Vocabulary vocabulary) {
  Corpus corpus(experiment.data);
  if (!vocabulary.tokenizer) {
    const auto needed = experiment.data.fill_in_the_middle > 0 ? SpecialTokenSet::infilling
                        : needs_special_tokens(experiment)     ? SpecialTokenSet::all
                                                               : SpecialTokenSet::none;
    vocabulary.tokenizer = make_tokenizer_for(experiment.data.tokenizer, needed,
                                              texts_of_vocabulary(corpus, experiment.data, needed));
  }
  return std::make_unique<LanguageModeling>(experiment, std::move(vocabulary), std::move(corpus));
}

void validate_side_choices(const Experiment& experiment, const Complain& complain) {
  const auto& choices = experiment.data.choices;
  if (choices.files.empty()) {
    if (choices.shots > 0)
      complain("data.choices.shots", "is for questions: name them in data.choices.files");
    const auto& best_by = experiment.training.best_by;
    for (const auto& metric : {acc_of_choices(), acc_norm_of_choices(), bits_of_choices()}) {
      if (best_by == metric.key)
        complain("training.best_by",
                 fmt::format("{} needs questions: name them in data.choices.files", best_by));
    }
  } else if (choices.shots > 0 && choices.shots_from.empty()) {
    complain("data.choices.shots", "needs data.choices.shots_from, a file of questions");
  }
  if (choices.shots == 0 && !choices.shots_from.empty())
    complain("data.choices.shots_from",
             "is for data.choices.shots: say how many questions stand before others");
}

void validate_language_modeling(const Experiment& experiment, const Complain& complain) {
  validate_side_choices(experiment, complain);
  require_shape(experiment, {FamilyShape::decoder, FamilyShape::encoder_decoder},
                "decoder or encoder_decoder", complain);
  require_positions(experiment, "data.sequence_length", experiment.data.sequence_length, complain);
  if (experiment.data.chat || experiment.data.fill_in_the_middle > 0)
    require_shape(experiment, {FamilyShape::decoder}, "decoder", complain);
  if (experiment.data.chat && experiment.data.fill_in_the_middle > 0)
    complain("data.fill_in_the_middle", "is for documents, not for conversations (data.chat)");
}

}  // namespace

TaskType language_modeling() {
  TaskType type;
  type.name = "language_modeling";
  type.doc = "The next token of a text.";
  type.best_by = {acc_of_choices(), acc_norm_of_choices(), bits_of_choices()};
  type.comparison = {.key = "bits_per_byte", .label = "bits per byte"};
  type.lossy_comparison = {
      .key = "bits_per_decoded_byte", .label = "bits per decoded byte", .other_key = "bits_per_byte"};
  type.rows = BatchRows::windows_of_any_length;
  type.search = UsualSearch::sampling;
  type.make = make_language_modeling;
  type.validate = validate_language_modeling;
  type.purpose = [](const Experiment&, int64_t vocab_size) -> std::optional<ModelPurpose> {
    return ModelPurpose{.head = HeadKind::language_modeling, .vocab_size = vocab_size, .start_token = 0};
  };
  type.needs_special_tokens = needs_special_tokens;
  type.layout = [](const Experiment& experiment) {
    return has_encoder(experiment) ? TextLayout::source_and_target : TextLayout::tokens;
  };
  return type;
}

}  // namespace zoo

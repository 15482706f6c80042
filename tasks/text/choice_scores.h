#pragma once
// Questions with choices, answered by the likelihood of each choice, as lm-evaluation-harness does it with
// its backend for transformers.

#include <string_view>
#include <vector>

#include "data/choices_config.h"
#include "generation/text_scores.h"
#include "models/model.h"
#include "tasks/evaluation.h"
#include "tasks/metric.h"
#include "text/choice_questions.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// How a model reads a context: before the choice, in one sequence, or as a source that the choice answers,
/// with an encoder or in one sequence.
enum class ContextUse { continued, answered, answered_in_sequence };
struct ChoiceReader {
  ContextUse use = ContextUse::continued;
  int64_t most = 0;  // tokens: see GenerativeModel::max_length()
};
ChoiceReader choice_reader_of(const GenerativeModel& model);

/// What a model reads of a context, and the tokens of the choice behind it, whose likelihood counts.
///
/// A decoder: both are encoded together, and cut behind as many tokens as the context alone has. White space
/// at the end of the context belongs to the choice. An empty context is bos, or else eos. What is too long
/// for the model loses tokens from its beginning. A model that answers encodes both by themselves, and reads
/// the context as any source. Throws DataError as Tokenizer::encode(), if the choice has no token, and if it
/// alone is too long.
TokensToScore choice_tokens(std::string_view context, std::string_view choice, const Tokenizer& tokenizer,
                            const ChoiceReader& reader);

/// Questions, and how they are asked.
struct ChoiceSet {
  std::vector<ChoiceQuestion> questions, shots;  // see read_shots()
  ChoicesConfig config;
};

/// The tokens of the right choice of each question. Throws DataError as choice_tokens(), with the place of
/// the question.
std::vector<TokensToScore> right_answers(const ChoiceSet& set, const Tokenizer& tokenizer,
                                         const ChoiceReader& reader);

/// Asks a model the questions, `batch_size` choices at a time. The metrics:
///
///   acc            the share of the questions whose likeliest choice is the right one
///   acc_norm       the same with log-likelihoods divided by the choices' numbers of characters
///   bits_per_byte  of the right choices: their bits over their bytes, without the delimiter
///   loss, tokens   of the right choices: nats per token
///
/// and acc_stderr, acc_norm_stderr and bits_per_byte_stderr, the standard errors over the questions. Sets
/// options.examples. The model must be generative and read texts. Throws DataError as choice_tokens(), with
/// the place of the question.
Metrics choice_metrics(Model& model, const Tokenizer& tokenizer, const ChoiceSet& set, int64_t batch_size,
                       const EvaluationOptions& options = {});

/// The metrics of choice_metrics() that a comparison or training.best_by may name.
Metric acc_of_choices();
Metric acc_norm_of_choices();

/// What a language model's evaluation says of data.choices.files besides: acc, acc_norm and their standard
/// errors, and bits_per_byte as choices_bits_per_byte. Nothing without such files.
Metrics side_metrics_of_choices(Model& model, const Tokenizer& tokenizer, const ChoiceSet& set,
                                int64_t batch_size, const EvaluationOptions& options);
/// choices_bits_per_byte.
Metric bits_of_choices();

/// Throws UsageError unless the model gives texts likelihoods: it generates, and does not read recordings.
void require_likelihoods(Model& model);

}  // namespace zoo

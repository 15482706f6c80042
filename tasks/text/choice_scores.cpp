#include "tasks/text/choice_scores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "base/text.h"
#include "generation/prompt.h"
#include "tasks/examples.h"
#include "tasks/metrics/white_space.h"

namespace zoo {
namespace {

/// The token that an empty context becomes.
int64_t empty_context(const Tokenizer& tokenizer) {
  const int64_t bos = tokenizer.special().bos;
  return bos >= 0 ? bos : token_of_empty_prompt(tokenizer);
}

/// The byte at which the white space at the end of a text begins.
size_t end_of_words(std::string_view text) {
  const auto characters = decode_utf8(text);
  const auto last = std::find_if_not(characters.rbegin(), characters.rend(), is_python_space);
  return byte_of_code_point(text, static_cast<size_t>(characters.rend() - last));
}

/// The tokens of a text that a decoder reads from its beginning.
TokenIds encode_from_beginning(const Tokenizer& tokenizer, std::string_view text) {
  auto ids = tokenizer.encode(text);
  const auto frame = tokenizer.frame();
  if (!frame) return ids;
  // A text that begins with bos needs no second one.
  const int64_t bos = tokenizer.special().bos;
  if (bos >= 0 && !ids.empty() && ids.front() == bos) return ids;
  return framed({.before = frame->before, .between = {}, .after = {}}, std::move(ids));
}

/// Leaves the last `most` tokens.
void keep_end(TokenIds& ids, int64_t most) {
  if (std::ssize(ids) > most) ids.erase(ids.begin(), ids.end() - most);
}

void require_room(const TokenIds& ids, int64_t most) {
  if (std::ssize(ids) <= most) return;
  throw DataError(
      fmt::format("a choice has {} tokens, and the model reads {}: shorten it", ids.size(), most));
}

TokensToScore tokens_of_decoder(std::string_view context, const std::string& choice,
                                const Tokenizer& tokenizer, const ChoiceReader& reader) {
  TokensToScore result;
  if (context.empty()) {
    result.ids = tokenizer.encode(choice);
    result.prompt = {empty_context(tokenizer)};
    // A choice that begins with this token needs no second one.
    if (result.ids.size() > 1 && result.ids.front() == result.prompt.back())
      result.ids.erase(result.ids.begin());
  } else {
    result.ids = encode_from_beginning(tokenizer, std::string(context) + choice);
    result.prompt = encode_from_beginning(tokenizer, context);
    const auto n = std::min(result.prompt.size(), result.ids.size());
    result.ids.erase(result.ids.begin(), result.ids.begin() + static_cast<std::ptrdiff_t>(n));
    if (result.prompt.empty()) result.prompt = {empty_context(tokenizer)};
  }
  require_room(result.ids, reader.most);
  keep_end(result.prompt, reader.most + 1 - std::ssize(result.ids));
  return result;
}

TokensToScore tokens_of_answer(std::string_view context, const std::string& choice,
                               const Tokenizer& tokenizer, const ChoiceReader& reader) {
  TokensToScore result{.prompt = {}, .ids = tokenizer.encode(choice)};
  if (context.empty()) {
    result.prompt = {empty_context(tokenizer)};
  } else {
    result.prompt = tokenizer.encode(context);
    if (const auto frame = tokenizer.frame())
      result.prompt = framed(*frame, std::move(result.prompt));
    else if (const int64_t eos = tokenizer.special().eos; eos >= 0)
      result.prompt.push_back(eos);
  }
  int64_t most = reader.most;
  require_room(result.ids, most);
  if (reader.use == ContextUse::answered_in_sequence) most -= std::ssize(result.ids);
  keep_end(result.prompt, std::max<int64_t>(most, 1));
  return result;
}

/// Calls `work`, whose DataError gets the place of the question.
template <class Work>
auto at_place_of(const ChoiceQuestion& question, const Work& work) {
  try {
    return work();
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", question.place, error.what()));
  }
}

/// The tokens of each choice of a question.
std::vector<TokensToScore> tokens_of(const ChoiceQuestion& question, const ChoiceSet& set,
                                     const Tokenizer& tokenizer, const ChoiceReader& reader) {
  return at_place_of(question, [&] {
    const auto context = context_with_shots(question, set.shots, set.config);
    std::vector<TokensToScore> all;
    for (const auto& choice : question.choices)
      all.push_back(choice_tokens(context, set.config.delimiter + choice, tokenizer, reader));
    return all;
  });
}

int64_t index_of_largest(const std::vector<double>& values) {
  return std::ranges::max_element(values) - values.begin();
}

/// What a model says to a question.
ExampleScore answer_of(const ChoiceQuestion& question, std::vector<double> log_likelihoods,
                       int64_t n_tokens) {
  std::vector<double> by_length;
  for (size_t i = 0; i < log_likelihoods.size(); ++i)
    by_length.push_back(log_likelihoods[i] / static_cast<double>(count_code_points(question.choices[i])));
  ChosenAnswer chosen{.answer = question.answer,
                      .chosen = index_of_largest(log_likelihoods),
                      .chosen_by_length = index_of_largest(by_length),
                      .log_likelihoods = std::move(log_likelihoods)};
  ExampleScore score{.input = question.context,
                     .target = question.right_choice(),
                     .prediction = question.choices[static_cast<size_t>(chosen.chosen)],
                     .loss = -chosen.log_likelihoods[static_cast<size_t>(question.answer)],
                     .targets = n_tokens,
                     .bytes = std::ssize(question.right_choice()),
                     .right = chosen.chosen == question.answer,
                     .n_answers = 1};
  score.n_right = *score.right ? 1 : 0;
  score.choice = std::move(chosen);
  return score;
}

/// A mean with weights, Σx / Σw, and its standard error over the examples: that of a mean if the weights are
/// 1, else that of the mean of x - w Σx / Σw, as of a ratio estimator.
struct RatioSums {
  double x = 0, w = 0, xx = 0, xw = 0, ww = 0;

  void add(double value, double weight) {
    x += value, w += weight, xx += value * value, xw += value * weight, ww += weight * weight;
  }
  double mean() const { return x / w; }
  double error(double n) const {
    const double ratio = mean(), rest = std::max(0.0, xx - 2 * ratio * xw + ratio * ratio * ww);
    return n > 1 ? std::sqrt(rest * n / (n - 1)) / w : 0;
  }
};

/// The sums over the questions of all processes.
struct Sums {
  RatioSums acc, acc_norm, bits, loss;
  double n = 0;

  void add(const ExampleScore& score) {
    ++n;
    acc.add(static_cast<double>(score.n_right), 1);
    acc_norm.add(score.choice->chosen_by_length == score.choice->answer ? 1 : 0, 1);
    bits.add(score.loss / std::numbers::ln2, static_cast<double>(score.bytes));
    loss.add(score.loss, static_cast<double>(score.targets));
  }
  void sum_over(const EvaluationOptions& options) {
    auto numbers = torch::zeros({21}, torch::kDouble);
    auto* const all = numbers.mutable_data_ptr<double>();
    size_t at = 0;
    const std::array parts = {&acc, &acc_norm, &bits, &loss};
    for (const auto* const part : parts)
      for (const double value : {part->x, part->w, part->xx, part->xw, part->ww}) all[at++] = value;
    all[at] = n;
    sum_over_processes(options, numbers);
    at = 0;
    for (auto* const part : parts)
      for (auto* const value : {&part->x, &part->w, &part->xx, &part->xw, &part->ww}) *value = all[at++];
    n = all[at];
  }
  Metrics metrics() const {
    return {{"acc", acc.mean()},
            {"acc_stderr", acc.error(n)},
            {"acc_norm", acc_norm.mean()},
            {"acc_norm_stderr", acc_norm.error(n)},
            {"bits_per_byte", bits.mean()},
            {"bits_per_byte_stderr", bits.error(n)},
            {"loss", loss.mean()},
            {"tokens", loss.w}};
  }
};

}  // namespace

ChoiceReader choice_reader_of(const GenerativeModel& model) {
  const auto use = model.continues_prompt()      ? ContextUse::continued
                   : model.sequence_has_prompt() ? ContextUse::answered_in_sequence
                                                 : ContextUse::answered;
  return {.use = use, .most = model.max_length()};
}

TokensToScore choice_tokens(std::string_view context, std::string_view choice, const Tokenizer& tokenizer,
                            const ChoiceReader& reader) {
  const size_t end = end_of_words(context);
  const auto moved = std::string(context.substr(end)) + std::string(choice);
  context = context.substr(0, end);
  auto tokens = reader.use == ContextUse::continued ? tokens_of_decoder(context, moved, tokenizer, reader)
                                                    : tokens_of_answer(context, moved, tokenizer, reader);
  if (tokens.ids.empty())
    throw DataError(fmt::format("the choice '{}' adds no token to its context", excerpt(choice)));
  return tokens;
}

std::vector<TokensToScore> right_answers(const ChoiceSet& set, const Tokenizer& tokenizer,
                                         const ChoiceReader& reader) {
  std::vector<TokensToScore> answers;
  for (const auto& question : set.questions) {
    answers.push_back(at_place_of(question, [&] {
      return choice_tokens(context_with_shots(question, set.shots, set.config),
                           set.config.delimiter + question.right_choice(), tokenizer, reader);
    }));
  }
  return answers;
}

Metrics choice_metrics(Model& model, const Tokenizer& tokenizer, const ChoiceSet& set, int64_t batch_size,
                       const EvaluationOptions& options) {
  require_likelihoods(model);
  const auto reader = choice_reader_of(*model.generative());
  const int64_t n_questions = std::ssize(set.questions), part = std::max<int64_t>(batch_size, 1);
  const int64_t n_parts = (n_questions + part - 1) / part;
  const int64_t n_wanted = std::min(n_parts, options.max_batches.value_or(n_parts));
  Sums sums;
  std::vector<ExampleScore> examples;
  for (int64_t i = options.rank(); i < n_wanted; i += options.n_processes()) {
    std::vector<TokensToScore> tokens;
    const int64_t begin = i * part, end = std::min(begin + part, n_questions);
    for (int64_t q = begin; q < end; ++q) {
      for (auto& one : tokens_of(set.questions[static_cast<size_t>(q)], set, tokenizer, reader))
        tokens.push_back(std::move(one));
    }
    const auto logprobs = token_logprobs(model, tokens, batch_size);
    size_t next = 0;
    for (int64_t q = begin; q < end; ++q) {
      const auto& question = set.questions[static_cast<size_t>(q)];
      std::vector<double> totals;
      int64_t n_tokens = 0;
      for (size_t c = 0; c < question.choices.size(); ++c, ++next) {
        totals.push_back(std::accumulate(logprobs[next].begin(), logprobs[next].end(), 0.0));
        if (static_cast<int64_t>(c) == question.answer) n_tokens = std::ssize(logprobs[next]);
      }
      auto score = answer_of(question, std::move(totals), n_tokens);
      sums.add(score);
      if (options.examples) examples.push_back(std::move(score));
    }
    if (options.on_progress) options.on_progress(std::min(i + options.n_processes(), n_wanted), n_wanted);
  }
  sums.sum_over(options);
  if (options.examples) *options.examples = std::move(examples);
  return sums.metrics();
}

Metric acc_of_choices() {
  return {.key = "acc", .label = "accuracy", .better = Better::higher, .percent = true};
}

Metric acc_norm_of_choices() {
  return {.key = "acc_norm", .label = "accuracy by character", .better = Better::higher, .percent = true};
}

Metrics side_metrics_of_choices(Model& model, const Tokenizer& tokenizer, const ChoiceSet& set,
                                int64_t batch_size, const EvaluationOptions& options) {
  if (set.questions.empty()) return {};
  const auto all = choice_metrics(model, tokenizer, set, batch_size,
                                  {.max_batches = options.max_batches, .processes = options.processes});
  Metrics side;
  for (const char* const name : {"acc", "acc_stderr", "acc_norm", "acc_norm_stderr"})
    side[name] = all.at(name);
  for (const char* const name : {"bits_per_byte", "bits_per_byte_stderr"})
    side[fmt::format("choices_{}", name)] = all.at(name);
  return side;
}

Metric bits_of_choices() {
  return {.key = "choices_bits_per_byte", .label = "bits per byte of the right choices"};
}

void require_likelihoods(Model& model) {
  const auto* const writer = model.generative();
  if (writer && !writer->reads_recordings()) return;
  throw UsageError(
      "choices are answered by the likelihood of texts, which this model does not have: use a decoder or an "
      "encoder-decoder of texts");
}

}  // namespace zoo

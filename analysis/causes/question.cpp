#include "analysis/causes/question.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/types.h>

#include "analysis/image_attention.h"
#include "analysis/text_layout.h"
#include "analysis/text_reading.h"
#include "base/error.h"
#include "models/inference_scope.h"
#include "tasks/problem.h"
#include "tasks/task_type.h"

namespace zoo {
namespace {

TokenIds ids_of(const torch::Tensor& row) {
  const auto flat = row.to(torch::kCPU).contiguous();
  return {flat.const_data_ptr<int64_t>(), flat.const_data_ptr<int64_t>() + flat.numel()};
}

/// Sets the right token at each place of a text whose tokens are predicted.
void set_token_targets(Question& question, const TextReading& reading, const Tokenizer& tokenizer,
                       HeadKind head) {
  const auto ids = ids_of(reading.batch.input.ids[0]);
  if (!reading.target_tokens.empty()) {
    question.places = reading.target_tokens;
    question.targets = reading.target_ids;
  } else if (head == HeadKind::masked_language_modeling) {
    question.places = reading.source_tokens;
    question.targets = ids;
    const int64_t mask = tokenizer.special().mask;
    std::ranges::replace(question.targets, mask, int64_t{-1});
    const auto hidden = std::ranges::find(ids, mask);
    if (mask >= 0 && hidden != ids.end()) {
      question.place = hidden - ids.begin();
      return;
    }
  } else {
    question.places = reading.source_tokens;
    question.targets.assign(ids.begin() + 1, ids.end());
    question.targets.push_back(reading.target_ids.empty() ? -1 : reading.target_ids.back());
  }
  question.place = std::ssize(question.targets) - 1;
}

Question ask_text(const Run& run, const QuestionRequest& request) {
  const auto& type = task_type(run.experiment());
  if (!type.layout)
    throw UsageError(
        fmt::format("the task {} reads no texts: give what it reads, or choose another run", type.name));
  const auto layout = type.layout(run.experiment());
  auto reading = read_text(run.model(), run.tokenizer(),
                           {.layout = layout, .text = *request.text, .target = request.target});
  const auto head = run.task().purpose().head;
  Question question{.batch = reading.batch, .input = *request.text, .target = reading.target};
  question.source_tokens = reading.source_tokens;
  question.target_tokens = reading.target_tokens;
  if (predicts_tokens(head)) {
    set_token_targets(question, reading, run.tokenizer(), head);
  } else if (head == HeadKind::token_classification) {
    question.places = reading.source_tokens;
    question.targets.assign(question.places.size(), -1);
    question.place = std::ssize(question.places) - 1;
  } else {
    question.places = {"the whole text"};
    question.targets = {-1};
    // A decoder classifies by its last token.
    if (layout == TextLayout::tokens_eos)
      question.batch.positions = torch::tensor({std::ssize(reading.source_tokens) - 1}, torch::kInt64);
  }
  return question;
}

Question ask_image(const Run& run, const std::string& file) {
  auto inputs = run.task().read_inputs({file});
  Question question{.batch = std::move(inputs.batch), .input = file};
  if (const auto grid = run.model().patch_grid(question.batch)) question.source_tokens = place_names(*grid);
  if (!inputs.shown.empty()) question.shown = inputs.shown.front();
  question.places = {"the whole picture"};
  question.targets = {-1};
  return question;
}

/// Whether a model with this head has a single answer at each place of its input.
bool answers_once_a_place(HeadKind head) {
  return head != HeadKind::detection && head != HeadKind::ctc && head != HeadKind::none;
}

}  // namespace

Question ask(const Run& run, const QuestionRequest& request) {
  const auto head = run.task().purpose().head;
  if (!answers_once_a_place(head))
    throw UsageError(fmt::format(
        "a model with the head {} has no single answer at each place: choose a run that predicts tokens or "
        "classes",
        name_of(head)));
  auto question = request.image ? ask_image(run, *request.image) : ask_text(run, request);
  question.batch = run.model().on_device(question.batch);
  if (predicts_tokens(head)) {
    question.label = [&tokenizer = run.tokenizer()](int64_t id) {
      return id < tokenizer.vocab_size() ? tokenizer.label(id) : fmt::format("[{}]", id);
    };
  } else {
    question.label = [&labels = run.labels()](int64_t id) {
      return id < std::ssize(labels) ? labels[static_cast<size_t>(id)] : fmt::format("output {}", id);
    };
  }
  return question;
}

int64_t output_named(const Run& run, const std::string& name, std::string_view option) {
  if (!predicts_tokens(run.task().purpose().head)) {
    const auto& labels = run.labels();
    const auto found = std::ranges::find(labels, name);
    if (found != labels.end()) return found - labels.begin();
    throw UsageError(
        fmt::format("{}: there is no class “{}”: the classes are {}", option, name, fmt::join(labels, ", ")));
  }
  const auto ids = run.tokenizer().encode(name);
  if (ids.size() == 1) return ids.front();
  throw UsageError(fmt::format(
      "{}: “{}” is {} tokens of this vocabulary: give a text that is one token; a space before a word counts",
      option, name, ids.size()));
}

void fill_targets(Question& question, const torch::Tensor& logits) {
  for (size_t i = 0; i < question.targets.size(); ++i)
    if (question.targets[i] < 0)
      question.targets[i] = logits[static_cast<int64_t>(i)].argmax().item<int64_t>();
}

Batch batch_of_question(const Run& run, const Question& question, std::optional<int64_t> answer) {
  const auto head = run.task().purpose().head;
  const bool finds_hidden = head == HeadKind::masked_language_modeling;
  if (problem_of(run.experiment()) != Problem::single_label)
    throw UsageError(
        "the model gives no single class or token, so a text has no loss: give data with labels");
  std::vector<int64_t> targets, places;
  for (int64_t place = 0; place < std::ssize(question.targets); ++place) {
    const int64_t target = question.targets[static_cast<size_t>(place)];
    if (answer ? place != question.place : (target < 0) != finds_hidden) continue;
    places.push_back(place);
    targets.push_back(answer.value_or(target));
  }
  if (targets.empty() && finds_hidden)
    throw UsageError(
        "the text hides no token, so there is nothing to find: write <mask> in it, or give "
        "data with labels");
  if (targets.empty()) {
    places = {question.place};
    targets = {-1};
  }
  auto batch = question.batch;
  if (!predicts_once(head)) batch.positions = torch::tensor(places, torch::kInt64).to(run.model().device());
  if (targets.front() < 0) {
    const InferenceScope inference(run.model());
    batch.targets = run.model().logits(run.model().features(batch)).argmax(-1);
  } else {
    batch.targets = torch::tensor(targets, torch::kInt64);
  }
  return batch.to(torch::kCPU);
}

void require_alternatives(const Run& run) {
  const auto head = run.task().purpose().head;
  if (!answers_once_a_place(head) || problem_of(run.experiment()) != Problem::single_label ||
      task_type(run.experiment()).predicts_from == PredictionInput::audio_file)
    throw UsageError(fmt::format(
        "a lens is for models that predict one token or class at each place, and this one is of the "
        "task {}",
        run.experiment().task.type));
}

void require_place(const Question& question, int64_t place, std::string_view option) {
  const auto n = std::ssize(question.places);
  if (place >= 0 && place < n) return;
  throw UsageError(
      fmt::format("{}: {} is not a place of this input: it has the places 0 to {}", option, place, n - 1));
}

}  // namespace zoo

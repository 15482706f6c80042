#include "serving/served_model.h"

#include <sys/stat.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "interop/stored_texts.h"
#include "layers/weights/weights.h"
#include "models/families/families.h"
#include "models/families/model_cost.h"
#include "models/observation_scope.h"
#include "models/stack.h"
#include "serving/service_error.h"
#include "tasks/audio/listener.h"
#include "tasks/structures/folded_chain.h"
#include "tasks/task_type.h"

namespace zoo {
namespace {

/// Not every model has a template, and not every template can be read.
std::optional<ChatTemplate> template_of(const Run& run, const std::filesystem::path& base) {
  const auto* const writer = run.model().generative();
  if (!writer || !writer->continues_prompt() || writer->reads_recordings()) return std::nullopt;
  try {
    return open_stored_chat_template(run.dir(), base);
  } catch (const Error&) {
    return std::nullopt;
  }
}

WeightChoice weights_of(const ModelSource& source) {
  return WeightChoice(source.weights, AutomaticWeights::fastest);
}

int64_t bytes_of_number(WeightFormat format) {
  switch (format) {
    case WeightFormat::fp32:
      return 4;
    case WeightFormat::bf16:
    case WeightFormat::fp16:
      return 2;
    case WeightFormat::int8:
    case WeightFormat::int4:
      return 1;
  }
  return 4;
}

int64_t time_of_change(const std::filesystem::path& path) {
  struct stat status{};
  return ::stat(path.c_str(), &status) == 0 ? static_cast<int64_t>(status.st_mtime) : 0;
}

}  // namespace

ServedModel::ServedModel(const ModelSource& source)
    : run_(Run::open(source.path, source.device, weights_of(source), source.base)) {
  run_.model().eval();
  store_cache(run_.model(), source.cache.value_or(run_.experiment().generation.cache));
  const auto* const writer = run_.model().generative();
  if (writer && !writer->reads_recordings()) generator_.emplace(run_.model(), run_.tokenizer());
  if (generator_) generator_->keeps_every_token();  // computes here, and not where a request is read
  if (!source.draft.empty()) open_draft(source);
  if (!source.lens.empty()) lens_ = load_lens(source.lens, run_.model());
  chat_template_ = template_of(run_, source.base);
  card_ = read_card(source);
}

void ServedModel::open_draft(const ModelSource& source) {
  if (!generator_)
    throw UsageError(fmt::format("{}: --draft is for a model that writes", source.path.string()));
  draft_.emplace(Run::open(source.draft, source.device, weights_of(source)));
  require_same_vocabulary(*draft_, run_);
  generator_->use_draft(draft_->model());
}

ModelCard ServedModel::read_card(const ModelSource& source) const {
  const auto& experiment = run_.experiment();
  const auto& type = task_type(experiment);
  const auto head = run_.task().purpose().head;
  ModelCard card{.id = source.id,
                 .task = type.name,
                 .family = experiment.model.architecture.type,
                 .created = time_of_change(run_.weights()),
                 .parameters = static_cast<int64_t>(parameter_count(experiment.model, run_.task().purpose())),
                 .weights = run_.weight_format(),
                 .generation = experiment.generation};
  card.bytes = card.parameters * bytes_of_number(card.weights);
  if (draft_) {
    card.bytes +=
        static_cast<int64_t>(parameter_count(draft_->experiment().model, draft_->task().purpose())) *
        bytes_of_number(draft_->weight_format());
    card.generation.prompt_lookup = 0;  // tokens are proposed in one way
  }
  const bool reads_recordings = type.predicts_from == PredictionInput::audio_file;
  const bool reads_texts = type.needs_tokenizer() && !reads_recordings;
  if (reads_texts) {
    card.max_length = generator_ ? run_.model().generative()->max_length() : experiment.model.max_positions;
  }
  if (generator_) card.can.insert(Ability::completions);
  if (chat_template_) card.can.insert(Ability::chat);
  if (generator_ && !generator_->continues_prompt()) card.can.insert(Ability::translate);
  if (reads_texts) card.can.insert(Ability::embeddings);
  if (head == HeadKind::masked_language_modeling) card.can.insert(Ability::fill);
  if (type.predicts_from == PredictionInput::text && head != HeadKind::none)
    card.can.insert(Ability::predict_text);
  if (type.predicts_from == PredictionInput::image_file && type.labels == LabelSource::vocabulary)
    card.can.insert(Ability::predict_image);
  if (reads_recordings) {
    card.max_seconds = experiment.data.audio.max_seconds;
    card.can.insert(Ability::predict_recording);
    if (type.predicts == PredictionKind::transcript) {
      card.can.insert(Ability::transcribe);
      card.max_seconds = Listener(run_.model(), run_.task(), {}).max_seconds();
    }
    return card;
  }
  if (folds(experiment)) {
    card.can.insert(Ability::fold);
    return card;
  }
  if (!why_no_maps(experiment.model)) card.can.insert(Ability::attention);
  if (head != HeadKind::detection && head != HeadKind::none && !stacks_of(run_.model()).empty())
    card.can.insert(Ability::causes);
  if (!lens_.empty()) card.can.insert(Ability::trained_lens);
  return card;
}

void ServedModel::require(Ability ability) const {
  if (card_.can.contains(ability)) return;
  std::vector<std::string_view> names;
  for (const auto able : card_.can) names.push_back(name_of(able));
  throw ServiceError(ServiceProblem::unable,
                     fmt::format("the model {} (task {}) cannot do {}: it can do {}", card_.id, card_.task,
                                 name_of(ability), fmt::join(names, ", ")));
}

}  // namespace zoo

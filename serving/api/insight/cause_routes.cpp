// /lens, /ablate, /patch and /attribute: which parts of a model, and of its input, an answer rests on. Each
// is done in parts, between which other requests have their turns.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "analysis/causes/reports_json.h"
#include "base/error.h"
#include "io/json_document.h"
#include "pages/causes/cause_views.h"
#include "serving/api/api_error.h"
#include "serving/api/insight/shown_texts.h"
#include "serving/api/json_answer.h"
#include "serving/api/pictures.h"
#include "serving/api/routes.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostTokensRead = 1 << 17;  // by all passes of a request
constexpr int64_t kMostSteps = 500;           // of an integral
constexpr double kMostPosition = 1 << 20;

/// What an answer has beside the JSON of the command line.
enum class CauseView { none, drawn };

/// The keys that several of these requests have.
struct CauseCall {
  std::optional<std::string> text = {}, target = {};
  std::string picture = {};  // bytes
  std::optional<int64_t> position = {};
  std::optional<std::string> answer = {}, against = {};
  CauseView view = CauseView::none;
};

CauseView read_view(RequestFields& fields) {
  return fields.flag("view", false) ? CauseView::drawn : CauseView::none;
}

std::optional<int64_t> read_position(RequestFields& fields) {
  return fields.integer("position", Limits::whole(0, kMostPosition));
}

/// With a text or a picture.
CauseCall read_input(RequestFields& fields, const ApiLimits& limits) {
  CauseCall call{.text = fields.text("text"), .target = fields.text("target")};
  const auto image = fields.text("image");
  if (call.text.has_value() == image.has_value()) throw ApiError(400, "give one of text and image");
  if (image && call.target) fields.fail("target", "contradicts image: a picture has no answer");
  if (image) call.picture = checked_picture(*image, kPicture, limits);
  call.answer = fields.text("answer");
  call.view = read_view(fields);
  return call;
}

/// One of the words of an enumeration.
template <class Enum>
Enum read_word(RequestFields& fields, const std::string& key, Enum usual) {
  const auto word = fields.text(key);
  if (!word) return usual;
  const auto value = enumerator_named<Enum>(*word);
  if (!value) fields.fail(key, fmt::format("must be one of {}", fmt::join(config_names(Enum{}), ", ")));
  return *value;
}

/// The question of a text; `key` is that of the text.
Question question_of(const ServedModel& model, const std::string& text, const char* key,
                     const std::optional<std::string>& target) {
  if (!model.card().max_length) throw ApiError(400, "this model reads pictures", key);
  require_shown_length(model, text, key);
  if (target) require_shown_length(model, *target, "target");
  auto question = ask(model.run(), {.text = text, .target = target});
  require_shown_tokens(question.source_tokens.size() + question.target_tokens.size());
  return question;
}

Question question_of(const ServedModel& model, const CauseCall& call) {
  if (call.text) return question_of(model, *call.text, "text", call.target);
  model.require(Ability::predict_image);
  return with_files({call.picture}, [&](const std::vector<std::string>& files) {
    auto question = ask(model.run(), {.image = files.front()});
    question.input = "the picture";  // the file has a name in memory alone
    return question;
  });
}

int64_t n_tokens_of(const Question& question) {
  return std::ssize(question.source_tokens) + std::ssize(question.target_tokens);
}

/// Throws ApiError if so many passes over a question read more tokens than a request may.
void require_few_passes(int64_t n_passes, const Question& question) {
  const int64_t n = std::max<int64_t>(1, n_tokens_of(question));
  if (n_passes > kMostTokensRead / n)
    throw ApiError(400, fmt::format("this takes {} passes over {} tokens, and at most {} are done here: "
                                    "shorten the text",
                                    n_passes, n, kMostTokensRead / n));
}

std::optional<int64_t> output_of(const ServedModel& model, const std::optional<std::string>& name,
                                 std::string_view key) {
  if (!name) return std::nullopt;
  return output_named(model.run(), *name, key);
}

/// The JSON of the command line, and what a page draws if it is wanted.
CountedAnswer cause_answer(const std::string& text, std::optional<Json> view, int64_t n_tokens) {
  auto document = parse_ordered_json(text);
  document["usage"] = usage_of_reading(n_tokens);
  if (view) document["view"] = std::move(*view);
  return {.document = std::move(document), .tokens_in = n_tokens};
}

template <class Draw>
std::optional<Json> drawn(CauseView view, const Draw& draw) {
  if (view == CauseView::none) return std::nullopt;
  return draw();
}

/// Work that a model does in parts.
template <class Work>
void answer_in_parts(const ApiContext& context, const ApiCall& call, const std::string& model, Work work) {
  const auto shared = std::make_shared<Work>(std::move(work));
  answer_with_model(context, call, model, Ability::causes, [shared](const ServedModel& served) {
    try {
      return shared->next(served);
    } catch (const UsageError& error) {
      throw ApiError(400, error.what());
    }
  });
}

// ---- lens

struct LensWork {
  CauseCall call;
  LensKind kind = LensKind::plain;
  std::optional<LensReading> reading = {};
  int64_t place = 0, n_tokens = 0;

  ModelAnswer next(const ServedModel& model) {
    if (!reading) {
      require_alternatives(model.run());
      LensOptions options;
      if (kind == LensKind::trained) {
        model.require(Ability::trained_lens);
        options.lens = model.lens();
      }
      auto question = question_of(model, call);
      place = call.position.value_or(question.place);
      require_place(question, place, "position");
      if (const auto answer = output_of(model, call.answer, "answer"))
        question.targets[static_cast<size_t>(place)] = *answer;
      n_tokens = n_tokens_of(question);
      reading.emplace(model.model(), std::move(question), options);
      return std::nullopt;
    }
    if (reading->has_more()) {
      reading->go_on();
      return std::nullopt;
    }
    auto report = std::move(*reading).report();
    report.name = model.card().id;
    const auto parts = lens_contributions(model.model(), report.question, place);
    return cause_answer(to_json(report, parts), drawn(call.view, [&] { return lens_view(report, parts); }),
                        n_tokens);
  }
};

void answer_lens(const ApiContext& context, const ApiCall& call) {
  RequestFields fields(call.request.body);
  const auto model = fields.required_text("model");
  auto asked = read_input(fields, context.options.limits);
  asked.position = read_position(fields);
  const auto kind = read_word(fields, "lens", LensKind::plain);
  fields.refuse_others();
  answer_in_parts(context, call, model, LensWork{.call = std::move(asked), .kind = kind});
}

// ---- attribute

struct AttributeWork {
  CauseCall call;
  AttributionOptions options;
  std::optional<Attributing> attributing = {};
  int64_t n_tokens = 0;

  ModelAnswer next(const ServedModel& model) {
    if (!attributing) {
      auto question = question_of(model, call);
      require_few_passes(options.by == AttributionBy::integrated_gradients ? options.steps : 1, question);
      options.place = call.position;
      options.answer = output_of(model, call.answer, "answer");
      options.against = output_of(model, call.against, "against");
      options.baseline_token = baseline_token(model.run(), options.baseline);
      n_tokens = n_tokens_of(question);
      attributing.emplace(model.model(), std::move(question), options);
      return std::nullopt;
    }
    attributing->go_on();
    if (attributing->has_more()) return std::nullopt;
    auto report = std::move(*attributing).report();
    report.name = model.card().id;
    return cause_answer(to_json(report), drawn(call.view, [&] { return attribution_view(report); }),
                        n_tokens);
  }
};

void answer_attribute(const ApiContext& context, const ApiCall& call) {
  RequestFields fields(call.request.body);
  const auto model = fields.required_text("model");
  auto asked = read_input(fields, context.options.limits);
  asked.position = read_position(fields);
  asked.against = fields.text("against");
  AttributionOptions options;
  options.by = read_word(fields, "by", options.by);
  const auto baseline = fields.find("baseline");
  options.baseline = read_word(fields, "baseline", options.baseline);
  const auto steps = fields.integer("steps", Limits::whole(1, kMostSteps));
  options.steps = steps.value_or(options.steps);
  if (options.by == AttributionBy::gradient_input && (baseline || steps))
    fields.fail(baseline ? "baseline" : "steps", "is for by: integrated_gradients");
  fields.refuse_others();
  answer_in_parts(context, call, model, AttributeWork{.call = std::move(asked), .options = options});
}

// ---- ablate

/// A request replaces activations by zeros or by their mean over its text.
enum class RequestedAblation { zero, mean };
constexpr auto config_names(RequestedAblation) { return std::to_array<std::string_view>({"zero", "mean"}); }

struct AblateWork {
  CauseCall call;
  AblationBy by;
  std::optional<Ablation> ablation = {};
  std::vector<AblatedPart> parts = {};
  AblationReport report = {};
  int64_t n_tokens = 0;

  ModelAnswer next(const ServedModel& model) {
    if (!ablation) {
      begin(model);
      return std::nullopt;
    }
    if (report.rows.size() < parts.size()) {
      const auto& part = parts[report.rows.size()];
      report.rows.push_back({.parts = {part}, .score = ablation->without({part})});
      return std::nullopt;
    }
    return cause_answer(to_json(report), drawn(call.view, [&] { return ablation_view(report); }), n_tokens);
  }

 private:
  void begin(const ServedModel& model) {
    const auto question = question_of(model, call);
    auto batch = batch_of_question(model.run(), question, output_of(model, call.answer, "answer"));
    n_tokens = n_tokens_of(question);
    ablation.emplace(model.model(), std::vector{std::move(batch)}, by);
    parts = all_parts(ablation->first_activations());
    require_few_passes(std::ssize(parts), question);
    report.name = model.card().id;
    report.data = question.input;
    report.by = by;
    report.whole = ablation->whole();
  }
};

void answer_ablate(const ApiContext& context, const ApiCall& call) {
  RequestFields fields(call.request.body);
  const auto model = fields.required_text("model");
  auto asked = read_input(fields, context.options.limits);
  const auto by = read_word(fields, "by", RequestedAblation::zero);
  fields.refuse_others();
  answer_in_parts(context, call, model,
                  AblateWork{.call = std::move(asked),
                             .by = by == RequestedAblation::zero ? AblationBy::zero : AblationBy::mean});
}

// ---- patch

struct PatchWork {
  CauseCall call;
  std::string clean, corrupt;
  std::optional<Patching> patching = {};
  int64_t n_tokens = 0;

  ModelAnswer next(const ServedModel& model) {
    if (!patching) {
      auto with = question_of(model, clean, "clean", call.target);
      auto without = question_of(model, corrupt, "corrupt", call.target);
      n_tokens = n_tokens_of(with) + n_tokens_of(without);
      const auto answer = output_of(model, call.answer, "answer"),
                 against = output_of(model, call.against, "against");
      patching.emplace(model.model(), std::move(with), std::move(without),
                       PatchRequest{.answer = answer, .against = against, .place = call.position});
      require_few_passes(patching->n_patches(), patching->clean());
      return std::nullopt;
    }
    if (patching->has_more()) {
      patching->go_on();
      return std::nullopt;
    }
    auto report = std::move(*patching).report();
    report.name = model.card().id;
    return cause_answer(to_json(report), drawn(call.view, [&] { return patch_view(report); }), n_tokens);
  }
};

void answer_patch(const ApiContext& context, const ApiCall& call) {
  RequestFields fields(call.request.body);
  const auto model = fields.required_text("model");
  PatchWork work{.call = {.target = fields.text("target"),
                          .position = read_position(fields),
                          .answer = fields.text("answer"),
                          .against = fields.text("against"),
                          .view = read_view(fields)},
                 .clean = fields.required_text("clean"),
                 .corrupt = fields.required_text("corrupt")};
  fields.refuse_others();
  answer_in_parts(context, call, model, std::move(work));
}

}  // namespace

std::vector<Route> cause_routes() {
  return {{.method = "POST", .path = "/lens", .answer = answer_lens},
          {.method = "POST", .path = "/attribute", .answer = answer_attribute},
          {.method = "POST", .path = "/ablate", .answer = answer_ablate},
          {.method = "POST", .path = "/patch", .answer = answer_patch}};
}

}  // namespace zoo

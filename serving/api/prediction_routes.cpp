// /predict: labels of texts, pictures and recordings, objects; /v1/rerank: the order of texts; /fill: masks.

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "analysis/text_layout.h"
#include "base/error.h"
#include "generation/fill_mask.h"
#include "models/inference_scope.h"
#include "serving/api/api_error.h"
#include "serving/api/json_answer.h"
#include "serving/api/pictures.h"
#include "serving/api/recordings.h"
#include "serving/api/routes.h"
#include "serving/api/texts_or_ids.h"
#include "serving/service_error.h"
#include "tasks/task_type.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostCandidates = 100;

// ---- predict

struct PredictCall {
  std::vector<std::string> texts;
  std::vector<std::pair<std::string, std::string>> pairs;
  std::vector<std::string> pictures, recordings;  // bytes
  std::optional<int64_t> top;
  double min_score = 0.5;

  Ability ability() const {
    return !pictures.empty()     ? Ability::predict_image
           : !recordings.empty() ? Ability::predict_recording
                                 : Ability::predict_text;
  }
};

std::vector<std::pair<std::string, std::string>> read_pairs(RequestFields& fields, size_t most) {
  std::vector<std::pair<std::string, std::string>> pairs;
  const auto* const value = fields.find("pairs");
  if (!value) return pairs;
  const auto is_pair = [](const Json& pair) {
    return pair.is_array() && pair.size() == 2 && pair[0].is_string() && pair[1].is_string();
  };
  if (!value->is_array() || value->size() > most || !std::ranges::all_of(*value, is_pair))
    fields.fail("pairs", fmt::format("must be a list of at most {} pairs of texts", most));
  for (const auto& pair : *value) pairs.emplace_back(pair[0].get<std::string>(), pair[1].get<std::string>());
  return pairs;
}

PredictCall read_predict_call(RequestFields& fields, const ApiLimits& limits) {
  PredictCall call;
  call.texts = fields.texts("texts", limits.most_texts).value_or(std::vector<std::string>());
  call.pairs = read_pairs(fields, limits.most_texts);
  for (const auto& picture : fields.texts("images", limits.most_images).value_or(std::vector<std::string>()))
    call.pictures.push_back(checked_picture(picture, kPictures, limits));
  for (const auto& recording :
       fields.texts("recordings", limits.most_recordings).value_or(std::vector<std::string>())) {
    call.recordings.push_back(bytes_of_file(recording, kRecording));
    check_recording(call.recordings.back(), kRecording.key, limits);
  }
  call.top = fields.integer("top", Limits::at_least(1));
  call.min_score = fields.number("min_score", Limits::between(0, 1)).value_or(call.min_score);
  if (!call.texts.empty() + !call.pairs.empty() + !call.pictures.empty() + !call.recordings.empty() != 1)
    throw ApiError(400, "give one of texts, pairs, images and recordings, with at least one entry");
  return call;
}

/// The inputs of texts and pairs as the task reads them.
TextInputs inputs_of(const PredictCall& call, const ServedModel& model) {
  const auto use = model.run().task().pairs();
  if (call.pairs.empty()) {
    if (use == PairUse::always) throw ApiError(400, "this model reads pairs of texts: send pairs", "texts");
    return {.texts = call.texts};
  }
  if (use == PairUse::none) throw ApiError(400, "this model reads single texts: send texts", "pairs");
  TextInputs inputs;
  for (const auto& [first, second] : call.pairs) {
    inputs.texts.push_back(first);
    inputs.seconds.emplace_back(second);
  }
  return inputs;
}

/// The work for a request.
struct Predicting {
  PredictCall call;
  TextInputs inputs = {};  // as the task reads them
  Json results = Json::array();
  int64_t n_tokens = 0;

  /// What the task predicts for some of the inputs or files from `first` on.
  std::vector<Prediction> predicted(const ServedModel& model, size_t first) {
    if (!call.pictures.empty()) {
      return with_files({call.pictures[first]}, [&](const std::vector<std::string>& files) {
        return model.run().task().predict(model.model(), files);
      });
    }
    if (!call.recordings.empty()) {
      return with_recording(call.recordings[first], kRecording.key, [&](const std::string& file) {
        // What is heard in several windows is many parts of work, which this route does not have.
        const double seconds = SoundFile(file).info().seconds();
        const double most = model.run().experiment().data.audio.max_seconds;
        if (seconds > most && seconds <= model.card().max_seconds.value_or(most)) {
          throw ApiError(400,
                         fmt::format("the recording is {:.1f} s long, longer than {:g} s: send it to "
                                     "/v1/audio/transcriptions",
                                     seconds, most),
                         kRecording.key);
        }
        return model.run().task().predict(model.model(), {file});
      });
    }
    const auto part = [&](const auto& list) {
      const auto begin = list.begin() + std::min(static_cast<ptrdiff_t>(first), std::ssize(list));
      return std::vector(begin, begin + std::min<ptrdiff_t>(kTextsAtOnce, list.end() - begin));
    };
    return model.run().task().predict(model.model(), part(inputs.texts), {.seconds = part(inputs.seconds)});
  }

  /// Predicts for some more inputs.
  ModelAnswer next(const ServedModel& model) {
    const size_t n_files = call.pictures.size() + call.recordings.size();
    if (n_files == 0 && inputs.texts.empty()) inputs = inputs_of(call, model);
    auto found = predicted(model, results.size());
    if (n_files == 0) {
      for (const auto& prediction : found) n_tokens += n_tokens_read(model, prediction.input);
    }
    const int64_t top = call.top.value_or(kEveryLabel);
    keep_best_objects(found, call.min_score, top);
    auto part = Json::parse(to_json(found, top))["results"];
    for (size_t i = 0; i < found.size(); ++i) {
      if (n_files > 0) part[i].erase("input");
      if (found[i].cut) part[i]["cut"] = true;
      results.push_back(std::move(part[i]));
    }
    if (results.size() < (n_files > 0 ? n_files : inputs.texts.size())) return std::nullopt;
    CountedAnswer answer{.document = {{"predictions", std::move(results)}}, .tokens_in = n_tokens};
    if (n_files == 0) answer.document["usage"] = usage_of_reading(n_tokens);
    return answer;
  }
};

void predict(const ApiContext& context, const ApiCall& call) {
  RequestFields fields(call.request.body);
  const auto model = fields.required_text("model");
  auto asked = read_predict_call(fields, context.options.limits);
  fields.refuse_others();
  const auto ability = asked.ability();
  answer_with_model(context, call, model, ability,
                    [work = Predicting{.call = std::move(asked)}](const ServedModel& served) mutable {
                      return work.next(served);
                    });
}

// ---- rerank

/// The work for a request, as Jina's and Cohere's APIs have it.
struct Reranking {
  std::string query;
  std::vector<std::string> documents;
  std::optional<int64_t> top;
  bool returns_documents = false;
  std::vector<double> scores = {};
  int64_t n_tokens = 0;

  /// Scores some more documents.
  ModelAnswer next(const ServedModel& model) {
    auto& task = model.run().task();
    if (task.pairs() == PairUse::none) fail(model);
    const auto first = documents.begin() + std::ssize(scores);
    const auto n = std::min<ptrdiff_t>(kTextsAtOnce, documents.end() - first);
    const auto found = task.predict(model.model(), std::vector(static_cast<size_t>(n), query),
                                    {.seconds = {first, first + n}});
    for (const auto& prediction : found) {
      const auto* const score = std::get_if<PredictedScore>(&prediction.answer);
      if (!score) fail(model);
      scores.push_back(score->value);
      n_tokens += n_tokens_read(model, prediction.input);
    }
    if (scores.size() < documents.size()) return std::nullopt;
    return answer(model);
  }

 private:
  [[noreturn]] static void fail(const ServedModel& model) {
    throw ServiceError(
        ServiceProblem::unable,
        fmt::format("the model {} gives no score to a pair of texts: rerank with one that does, or compare "
                    "the vectors of /v1/embeddings",
                    model.card().id));
  }

  CountedAnswer answer(const ServedModel& model) const {
    std::vector<size_t> order(scores.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto key = [&](size_t i) { return std::isnan(scores[i]) ? -INFINITY : scores[i]; };
    std::ranges::stable_sort(order, std::greater(), key);
    if (top && *top < std::ssize(order)) order.resize(static_cast<size_t>(*top));
    auto results = Json::array();
    for (const size_t i : order) {
      // Clients expect a number from 0 to 1. Its order is the order of the scores.
      Json result{{"index", i}, {"relevance_score", 1 / (1 + std::exp(-key(i)))}};
      if (returns_documents) result["document"] = {{"text", documents[i]}};
      results.push_back(std::move(result));
    }
    return {.document = {{"model", model.card().id},
                         {"results", std::move(results)},
                         {"usage", usage_of_reading(n_tokens)}},
            .tokens_in = n_tokens};
  }
};

/// Texts, or objects with a text.
std::vector<std::string> read_documents(RequestFields& fields, size_t most) {
  const auto& list = fields.required("documents");
  if (!list.is_array() || list.empty() || list.size() > most)
    fields.fail("documents", fmt::format("must be a list of 1 to {} texts", most));
  std::vector<std::string> documents;
  for (const auto& entry : list) {
    if (entry.is_string()) {
      documents.push_back(entry.get<std::string>());
    } else {
      RequestFields document(entry, "documents");
      documents.push_back(document.required_text("text"));
      document.refuse_others();
    }
  }
  return documents;
}

void rerank(const ApiContext& context, const ApiCall& call) {
  RequestFields fields(call.request.body);
  const auto model = fields.required_text("model");
  Reranking work{.query = fields.required_text("query"),
                 .documents = read_documents(fields, context.options.limits.most_texts),
                 .top = fields.integer("top_n", Limits::at_least(1)),
                 .returns_documents = fields.flag("return_documents", false)};
  fields.refuse_others();
  answer_with_model(
      context, call, model, Ability::predict_text,
      [work = std::move(work)](const ServedModel& served) mutable { return work.next(served); });
}

// ---- fill

CountedAnswer filled(const ServedModel& model, const std::string& text, int64_t top) {
  const auto& tokenizer = model.tokenizer();
  const auto found =
      fill_masks(model.model(), tokenizer, text,
                 {.candidates = top, .max_length = model.run().experiment().model.max_positions});
  std::vector<size_t> places;
  for (size_t i = 0; i < found.prompt_ids.size(); ++i) {
    if (found.prompt_ids[i] == tokenizer.special().mask) places.push_back(i);
  }
  auto best = found.prompt_ids;
  for (size_t mask = 0; mask < places.size(); ++mask) best[places[mask]] = found.masks.at(mask).front().id;
  auto masks = Json::array();
  for (size_t mask = 0; mask < places.size(); ++mask) {
    auto candidates = Json::array();
    for (const auto& candidate : found.masks[mask]) {
      auto ids = best;
      ids[places[mask]] = candidate.id;
      candidates.push_back({{"id", candidate.id},
                            {"token", candidate.shown},
                            {"probability", candidate.probability},
                            {"text", tokenizer.decode(ids)}});
    }
    masks.push_back({{"position", places[mask]}, {"candidates", std::move(candidates)}});
  }
  const auto n_tokens =
      std::ssize(found.prompt_ids) + n_special_tokens(tokenizer, TextLayout::cls_tokens_sep);
  return {.document = {{"masks", std::move(masks)}, {"usage", usage_of_reading(n_tokens)}},
          .tokens_in = n_tokens};
}

void fill(const ApiContext& context, const ApiCall& call) {
  RequestFields fields(call.request.body);
  const auto model = fields.required_text("model");
  auto text = fields.required_text("text");
  const int64_t top = fields.integer("top", Limits::whole(1, kMostCandidates)).value_or(5);
  fields.refuse_others();
  answer_with_model(
      context, call, model, Ability::fill,
      [text = std::move(text), top](const ServedModel& served) { return filled(served, text, top); });
}

}  // namespace

std::vector<Route> prediction_routes() {
  return {{.method = "POST", .path = "/predict", .answer = predict},
          {.method = "POST", .path = "/v1/rerank", .answer = rerank},
          {.method = "POST", .path = "/fill", .answer = fill}};
}

}  // namespace zoo

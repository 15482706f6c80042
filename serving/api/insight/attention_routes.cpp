// /translate: answers with their alignment; /attention: where a model looks.

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "analysis/attention_maps.h"
#include "analysis/attention_statistics.h"
#include "analysis/image_attention.h"
#include "base/error.h"
#include "io/json_document.h"
#include "serving/api/api_error.h"
#include "serving/api/insight/shown_texts.h"
#include "serving/api/json_answer.h"
#include "serving/api/pictures.h"
#include "serving/api/routes.h"
#include "tasks/task_type.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostWeights = 16'000'000;  // of all maps of an answer
constexpr int64_t kMostBeams = 32;

/// Weights of any shape as nested lists, rounded.
Json weights_json(const torch::Tensor& weights) {
  auto list = Json::array();
  if (weights.dim() > 1) {
    for (const auto& part : weights.unbind()) list.push_back(weights_json(part));
    return list;
  }
  constexpr double digits = 1e4;
  const auto values = weights.to(torch::kFloat64).contiguous();
  const double* const value = values.const_data_ptr<double>();
  for (int64_t s = 0; s < values.size(0); ++s) list.push_back(std::round(value[s] * digits) / digits);
  return list;
}

// ---- attention

/// Appends a weight, rounded to four digits. Maps have millions of them, so they are written at once.
void append_weight(double weight, std::string& to) {
  constexpr int64_t parts = 10'000;
  if (!std::isfinite(weight)) {
    to += "null";
    return;
  }
  const int64_t n = std::llround(weight * parts), size = std::abs(n);
  if (n < 0) to += '-';
  to += std::to_string(size / parts);
  if (size % parts == 0) return;
  auto digits = std::to_string(parts + size % parts).substr(1);
  digits.erase(digits.find_last_not_of('0') + 1);
  to.append(".").append(digits);
}

/// Weights of any shape as nested lists.
void append_weights(const torch::Tensor& weights, std::string& to) {
  to += '[';
  if (weights.dim() > 1) {
    for (const auto& part : weights.unbind()) {
      if (to.back() != '[') to += ',';
      append_weights(part, to);
    }
  } else {
    const auto values = weights.to(torch::kFloat64).contiguous();
    const double* const value = values.const_data_ptr<double>();
    for (int64_t s = 0; s < values.size(0); ++s) {
      if (s > 0) to += ',';
      append_weight(value[s], to);
    }
  }
  to += ']';
}

/// The maps as a JSON list.
std::string maps_text(const AttentionReport& report) {
  int64_t n_weights = 0;
  for (const auto& layer : report.layers) n_weights += layer.weights.numel();
  if (n_weights > kMostWeights)
    throw ApiError(400,
                   fmt::format("the maps have {} weights, and at most {} are sent", n_weights, kMostWeights));
  std::string text = "[";
  for (size_t i = 0; i < report.layers.size(); ++i) {
    const auto& layer = report.layers[i];
    const bool begins_map = i == 0 || report.layers[i - 1].kind != layer.kind;
    if (begins_map)
      text += fmt::format(R"({}{{"name":"{}","layers":[)", i == 0 ? "" : "]},", name_of(layer.kind));
    else
      text += ',';
    append_weights(layer.weights, text);
  }
  return text + (report.layers.empty() ? "]" : "]}]");
}

/// `document`: what else the answer has.
HttpResponse attention_response(const AttentionReport& report, Json document) {
  document["source"] = report.source_tokens;
  document["target"] = report.target_tokens;
  if (!report.target_next.empty()) document["target_next"] = report.target_next;
  const auto with_maps = [&] {
    auto text = json_text(document);
    text.pop_back();
    return HttpResponse{.body = text + ",\"maps\":" + maps_text(report) + "}\n"};
  };
  if (!report.image) return with_maps();
  const auto& image = *report.image;
  document["image"] = {{"width", image.picture.shape.width},
                       {"height", image.picture.shape.height},
                       {"rows", image.grid.rows},
                       {"columns", image.grid.columns},
                       {"special", image.grid.n_before},
                       {"part", {image.part.x, image.part.y, image.part.width, image.part.height}}};
  return with_maps();
}

void answer_attention(const ApiContext& context, const ApiCall& call) {
  RequestFields fields(call.request.body);
  const auto model = fields.required_text("model");
  const auto text = fields.text("text"), target = fields.text("target"), image = fields.text("image");
  fields.refuse_others();
  if (text.has_value() == image.has_value()) throw ApiError(400, "give one of text and image");
  if (image && target) fields.fail("target", "contradicts image: a picture has no answer");
  const auto picture = image ? checked_picture(*image, kPicture, context.options.limits) : std::string();
  answer_with_model(
      context, call, model, Ability::attention,
      [text, target, picture](const ServedModel& served) -> CountedAnswer {
        if (!text) {
          served.require(Ability::predict_image);
          return with_files({picture}, [&](const std::vector<std::string>& files) {
            return CountedAnswer{
                .response = attention_response(image_attention_report(served.run(), files.front()), {})};
          });
        }
        if (!served.card().max_length) throw ApiError(400, "this model reads pictures", "text");
        require_shown_length(served, *text, "text");
        if (target) require_shown_length(served, *target, "target");
        const auto report = attention_report(served.run(), *text, target);
        const auto n = std::ssize(report.source_tokens) + std::ssize(report.target_tokens);
        return CountedAnswer{.response = attention_response(report, {{"usage", usage_of_reading(n)}}),
                             .tokens_in = n};
      });
}

// ---- translate

struct TranslateCall {
  std::vector<std::string> texts;
  int64_t beam = usual_generation(UsualSearch::beams).beam;
  std::optional<int64_t> max_tokens;
  bool has_alignment = false;
};

/// The attention of one layer to the source, the mean of its heads: of the layer whose weights are nearest to
/// the diagonal, the first one of several. Where trained, that layer is nearest to an alignment of words; in
/// six layers it is mostly the last but one (Garg et al. 2019). Entropy would not tell it from a layer that
/// looks at the end of the source alone. Null for a model without such attention.
Json alignment_json(const ServedModel& model, const std::string& text, const std::string& answer) {
  if (answer.empty()) return nullptr;
  const auto report = attention_report(model.run(), text, answer);
  const auto errors = alignment_errors(report);
  if (errors.empty()) return nullptr;
  const auto best = std::ranges::min_element(errors) - errors.begin();
  const auto layer = std::ranges::find_if(report.layers, [best](const AttentionLayer& each) {
    return each.kind == AttentionKind::cross && each.layer == best;
  });
  return {{"source", report.source_tokens},
          {"target", report.target_next},
          {"layer", best},
          {"alignment_errors", errors},
          {"weights", weights_json(layer->weights.mean(0))}};
}

GenerationConfig options_of(const ServedModel& model, const TranslateCall& call) {
  const auto& data = model.run().experiment().data;
  GenerationConfig options = model.run().experiment().generation;
  options.beam = call.beam;
  options.num_samples = 1;
  options.prompt_lookup = 0;
  if (call.beam == 1) options.temperature = 0;
  constexpr int64_t n_before = 1;  // what the decoder reads first
  const int64_t most = std::min(call.max_tokens.value_or(most_new_tokens(options, n_before)),
                                data.target_length.value_or(data.sequence_length));
  options.max_new_tokens = most;
  options.min_new_tokens = std::min(options.min_new_tokens, most);
  return options;
}

/// The work for a request.
struct Translating {
  TranslateCall call;
  Json list = Json::array();
  int64_t tokens_in = 0, tokens_out = 0;

  /// Translates some more texts.
  ModelAnswer next(const ServedModel& model) {
    const auto first = call.texts.begin() + std::ssize(list);
    const std::vector<std::string> texts(first,
                                         first + std::min<int64_t>(kTextsAtOnce, call.texts.end() - first));
    const auto written = model.generator()->generate(texts, options_of(model, call));
    for (size_t i = 0; i < written.size(); ++i) {
      const auto& output = written[i].outputs.front();
      tokens_in += std::ssize(model.generator()->encode(texts[i]));
      tokens_out += std::ssize(output.ids);
      Json alignment = nullptr;
      if (call.has_alignment && model.card().can.contains(Ability::attention))
        alignment = alignment_json(model, texts[i], output.text);
      list.push_back({{"text", output.text}, {"score", output.score}, {"alignment", std::move(alignment)}});
    }
    if (list.size() < call.texts.size()) return std::nullopt;
    return CountedAnswer{.document = {{"translations", std::move(list)},
                                      {"usage",
                                       {{"prompt_tokens", tokens_in},
                                        {"completion_tokens", tokens_out},
                                        {"total_tokens", tokens_in + tokens_out}}}},
                         .tokens_in = tokens_in,
                         .tokens_out = tokens_out};
  }
};

void answer_translate(const ApiContext& context, const ApiCall& call) {
  const auto& limits = context.options.limits;
  RequestFields fields(call.request.body);
  const auto model = fields.required_text("model");
  TranslateCall asked;
  fields.required("texts");
  asked.texts = *fields.texts("texts", limits.most_texts);
  asked.beam = fields.integer("beam", Limits::whole(1, kMostBeams)).value_or(asked.beam);
  asked.max_tokens = fields.integer("max_tokens", Limits::whole(1, limits.most_tokens));
  asked.has_alignment = fields.flag("alignment", false);
  fields.refuse_others();
  answer_with_model(context, call, model, Ability::translate,
                    [work = Translating{.call = std::move(asked)}](const ServedModel& served) mutable {
                      return work.next(served);
                    });
}

}  // namespace

std::vector<Route> attention_routes() {
  return {{.method = "POST", .path = "/translate", .answer = answer_translate},
          {.method = "POST", .path = "/attention", .answer = answer_attention}};
}

}  // namespace zoo

// /slices: how well a model predicts parts of a text, and whether it does so better than another.

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "generation/text_scores.h"
#include "models/model.h"
#include "serving/api/api_error.h"
#include "serving/api/json_answer.h"
#include "serving/api/routes.h"
#include "serving/api/texts_or_ids.h"
#include "statistics/slice_test.h"
#include "tasks/text/stream_examples.h"
#include "tasks/text/text_slices.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;
using Slices = std::vector<SliceValues>;

constexpr size_t kMostBytes = 20'000;          // of a text
constexpr int64_t kMostTokensOfSlices = 2048;  // which are read in one pass
constexpr double kMargin = 0.01;               // up to which two models are the same, as a share of the bits

/// Bits and bytes of each part of a text, in each slice.
struct SlicedText {
  Slices slices;
  double bits = 0;
  int64_t n_tokens = 0;
};

/// Throws ApiError for a text that the model cannot read at once.
SlicedText sliced(const ServedModel& model, const std::string& text) {
  const auto* const writer = model.model().generative();
  if (!writer || !writer->continues_prompt())
    throw ApiError(400, "this model answers texts, and slices are of texts that a model continues", "model");
  const auto tokens = tokens_to_score(text, model.tokenizer(), *writer);
  const auto n_read = tokens.prompt.size() + tokens.ids.size();
  require_length(n_read, std::min(*model.card().max_length, kMostTokensOfSlices), "text");
  const auto logprobs = token_logprobs(model.model(), {tokens}).front();
  std::vector<SpreadToken> spread;
  SlicedText result{.slices = {}, .n_tokens = std::ssize(tokens.ids)};
  for (size_t i = 0; i < tokens.ids.size(); ++i) {
    const auto bytes = model.tokenizer().decode(std::span(&tokens.ids[i], 1)).size();
    const auto before = static_cast<int64_t>(tokens.prompt.size() + i);
    spread.push_back({.loss = -logprobs[i],
                      .bytes = static_cast<double>(bytes),
                      .position = slice_of_position(before, *model.card().max_length)});
    result.bits -= logprobs[i] / std::numbers::ln2;
  }
  const auto parts = examples_of_short_text(text, std::move(spread));
  result.slices.resize(kTextSlices.size());
  for (const auto& part : parts) {
    for (size_t slice = 0; slice < kTextSlices.size(); ++slice) {
      result.slices[slice].values.push_back(part.slices[slice].nats / std::numbers::ln2);
      result.slices[slice].weights.push_back(part.slices[slice].bytes);
    }
  }
  return result;
}

/// What the tests say of each slice, with p corrected for all of them; null where nothing can be tested.
std::vector<Json> compared(const Slices& slices, const Slices& baseline) {
  const auto tests = test_on_slices(slices, baseline);
  std::vector<size_t> tested;
  std::vector<MarginTest> known;
  for (size_t i = 0; i < slices.size(); ++i) {
    if (!tests[i]) continue;
    tested.push_back(i);
    known.push_back({*tests[i], kMargin * baseline[i].mean()});
  }
  const auto judgements = judged(known, Correction::holm, Better::lower);
  std::vector<Json> results(slices.size());
  for (size_t i = 0; i < tested.size(); ++i) {
    const auto& test = known[i].test;
    results[tested[i]] = {{"value", baseline[tested[i]].mean()},
                          {"difference", test.difference},
                          {"low", test.low.value_or(test.difference)},
                          {"high", test.high.value_or(test.difference)},
                          {"n", test.n},
                          {"p_corrected", judgements[i].p_corrected.value_or(1)},
                          {"p_same", judgements[i].p_same.value_or(1)},
                          {"verdict", name_of(judgements[i].verdict)}};
  }
  return results;
}

Json slices_json(const SlicedText& text, const std::optional<Slices>& baseline, double n_bytes) {
  const auto tests = baseline ? compared(text.slices, *baseline) : std::vector<Json>(text.slices.size());
  auto list = Json::array();
  for (size_t i = 0; i < text.slices.size(); ++i) {
    const double bytes = text.slices[i].weight();
    if (!(bytes > 0)) continue;
    list.push_back({{"kind", name_of(kTextSlices[i].kind)},
                    {"name", kTextSlices[i].name},
                    {"share", bytes / n_bytes},
                    {"bits_per_byte", text.slices[i].mean()},
                    {"baseline", tests[i]}});
  }
  return list;
}

Json parts_json(const Slices& slices) {
  auto bits = Json::array(), bytes = Json::array();
  for (const auto& slice : slices) bits.push_back(slice.values), bytes.push_back(slice.weights);
  return {{"bits", std::move(bits)}, {"bytes", std::move(bytes)}};
}

/// The numbers of `key` for each slice and part of an answer that comes back.
std::vector<std::vector<double>> part_numbers(RequestFields& parts, const char* key) {
  const auto& lists = parts.required(key);
  const auto is_number = [](const Json& one) {
    return one.is_number() && one.get<double>() >= 0 && one.get<double>() < 1e9;
  };
  const auto is_list = [&](const Json& list) {
    return list.is_array() && !list.empty() && list.size() == lists[0].size() &&
           std::ranges::all_of(list, is_number);
  };
  if (!lists.is_array() || lists.size() != kTextSlices.size() || !std::ranges::all_of(lists, is_list))
    parts.fail(key, "must be as in an answer of /slices");
  return lists.get<std::vector<std::vector<double>>>();
}

std::optional<Slices> read_baseline(RequestFields& fields) {
  const auto* const value = fields.find("baseline");
  if (!value) return std::nullopt;
  RequestFields parts(*value, "baseline");
  const auto bits = part_numbers(parts, "bits"), bytes = part_numbers(parts, "bytes");
  parts.refuse_others();
  if (bits[0].size() != bytes[0].size()) parts.fail("bytes", "must have as many parts as bits");
  Slices slices;
  for (size_t i = 0; i < bits.size(); ++i) slices.push_back({.values = bits[i], .weights = bytes[i]});
  return slices;
}

/// Whether the parts of both are of the same bytes, up to rounding: tokenizers divide bytes in their own
/// ways. Positions depend on the model, and so does whether the beginning of a text is predicted.
bool are_of_one_text(const Slices& a, const Slices& b) {
  const auto are_close = [](double one, double other) { return std::abs(one - other) < 1e-6 * (1 + other); };
  for (size_t i = 0; i < a.size(); ++i) {
    const auto &own = a[i].weights, &others = b[i].weights;
    if (own.size() != others.size()) return false;
    if (kTextSlices[i].kind == SliceKind::position || own.empty()) continue;
    if (!std::equal(own.begin() + 1, own.end(), others.begin() + 1, are_close)) return false;
  }
  return true;
}

void slices(const ApiContext& context, const ApiCall& call) {
  RequestFields fields(call.request.body);
  const auto id = fields.required_text("model");
  auto text = fields.required_text("text");
  if (text.empty() || text.size() > kMostBytes)
    fields.fail("text", fmt::format("must have between 1 and {} bytes", kMostBytes));
  auto baseline = read_baseline(fields);
  fields.refuse_others();
  answer_with_model(
      context, call, id, Ability::completions,
      [text = std::move(text), baseline = std::move(baseline)](const ServedModel& model) -> ModelAnswer {
        const auto result = sliced(model, text);
        if (baseline && !are_of_one_text(*baseline, result.slices))
          throw ApiError(400, "baseline is of another text: send the parts of an answer about this one",
                         "baseline");
        const auto n_bytes = static_cast<double>(text.size());
        return CountedAnswer{.document = {{"object", "slices"},
                                          {"model", model.card().id},
                                          {"bytes", text.size()},
                                          {"tokens", result.n_tokens},
                                          {"bits_per_byte", result.bits / n_bytes},
                                          {"slices", slices_json(result, baseline, n_bytes)},
                                          {"parts", parts_json(result.slices)}},
                             .tokens_in = result.n_tokens};
      });
}

}  // namespace

std::vector<Route> slice_routes() { return {{.method = "POST", .path = "/slices", .answer = slices}}; }

}  // namespace zoo

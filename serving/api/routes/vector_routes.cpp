// /v1/embeddings.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "analysis/embeddings.h"
#include "data/text/subwords/specification.h"
#include "serving/api/api_error.h"
#include "serving/api/json_answer.h"
#include "serving/api/routes/routes.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

enum class NumberFormat { list, base64 };

/// Texts, or lists of token ids.
struct TextsToEmbed {
  std::vector<std::string> texts;
  std::vector<TokenIds> ids;
};

TextsToEmbed read_input(RequestFields& fields, const ApiLimits& limits) {
  const auto& value = fields.required("input");
  const auto is_ids = [](const Json& list) {
    return list.is_array() && !list.empty() &&
           std::ranges::all_of(list, [](const Json& id) { return id.is_number_integer(); });
  };
  TextsToEmbed input;
  if (is_ids(value)) {
    input.ids.push_back(value.get<TokenIds>());
  } else if (value.is_array() && !value.empty() && std::ranges::all_of(value, is_ids)) {
    input.ids = value.get<std::vector<TokenIds>>();
  } else {
    input.texts = *fields.texts("input", limits.most_texts);
  }
  if (input.texts.empty() && input.ids.empty()) fields.fail("input", "is empty");
  if (input.ids.size() > limits.most_texts)
    fields.fail("input", fmt::format("has {} texts, and may have {}", input.ids.size(), limits.most_texts));
  return input;
}

Json vector_json(const torch::Tensor& row, NumberFormat format) {
  const auto values = row.contiguous();
  const float* const first = values.const_data_ptr<float>();
  const auto n = static_cast<size_t>(values.numel());
  if (format == NumberFormat::list) return std::vector<double>(first, first + n);
  // Little-endian, as all machines on which this runs.
  return to_base64({reinterpret_cast<const char*>(first), n * sizeof(float)});  // NOLINT(*-reinterpret-cast)
}

/// The work for a request.
struct Embedding {
  TextsToEmbed input;
  NumberFormat format;
  std::optional<int64_t> dimensions;
  bool normalize;
  Json data = Json::array();
  int64_t n_tokens = 0;

  /// Embeds some more texts.
  ModelAnswer next(const ServedModel& model) {
    for (const auto& ids : std::exchange(input.ids, {})) input.texts.push_back(model.tokenizer().decode(ids));
    const auto first = input.texts.begin() + std::ssize(data);
    const std::vector<std::string> texts(first,
                                         first + std::min<int64_t>(kTextsAtOnce, input.texts.end() - first));
    auto options = embed_options(model.run());
    options.normalize = normalize;
    const auto embedded = embed(model.model(), model.tokenizer(), texts, options);
    if (dimensions && *dimensions != embedded.vectors.size(1)) {
      throw ApiError(400, fmt::format("dimensions: this model's vectors have {}", embedded.vectors.size(1)),
                     "dimensions");
    }
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto row = embedded.vectors[static_cast<int64_t>(i)];
      data.push_back(
          {{"object", "embedding"}, {"index", data.size()}, {"embedding", vector_json(row, format)}});
      n_tokens += std::ssize(model.tokenizer().encode(texts[i]));
    }
    if (data.size() < input.texts.size()) return std::nullopt;
    return Json{{"object", "list"},
                {"data", std::move(data)},
                {"model", model.card().id},
                {"usage", {{"prompt_tokens", n_tokens}, {"total_tokens", n_tokens}}}};
  }
};

void embeddings(const ApiContext& context, const ApiCall& call) {
  RequestFields fields(call.request.body);
  const auto model = fields.required_text("model");
  auto input = read_input(fields, context.options.limits);
  const auto dimensions = fields.integer("dimensions", 1, INT64_MAX);
  const auto format_name = fields.text("encoding_format").value_or("float");
  if (format_name != "float" && format_name != "base64")
    fields.fail("encoding_format", "must be float or base64");
  const auto format = format_name == "float" ? NumberFormat::list : NumberFormat::base64;
  const bool normalize = fields.flag("normalize", true);
  fields.ignore({"user"});
  fields.refuse_others();
  answer_with_model(context, call, model, Ability::embeddings,
                    [work = Embedding{.input = std::move(input),
                                      .format = format,
                                      .dimensions = dimensions,
                                      .normalize = normalize}](const ServedModel& served) mutable {
                      return work.next(served);
                    });
}

}  // namespace

std::vector<Route> vector_routes() {
  return {{.method = "POST", .path = "/v1/embeddings", .answer = embeddings}};
}

}  // namespace zoo

// /v1/embeddings.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "analysis/embeddings.h"
#include "base/error.h"
#include "generation/prompt.h"
#include "serving/api/api_error.h"
#include "serving/api/json_answer.h"
#include "serving/api/routes.h"
#include "serving/api/texts_or_ids.h"
#include "tokenizers/subwords/specification.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

enum class NumberFormat { list, base64 };

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
  TextsOrIds input;
  NumberFormat format;
  std::optional<int64_t> dimensions;
  bool normalize;
  Json data = Json::array();
  int64_t n_tokens = 0;

  /// The tokens of some more texts. Throws TextTooLongError for a text that the model would have to shorten.
  TokensToEmbed next_tokens(const ServedModel& model, const EmbedOptions& options) const {
    constexpr auto most = static_cast<int64_t>(kTextsAtOnce);
    const auto most_texts = std::clamp<int64_t>(kTokensAtOnce / options.max_length, 1, most);
    const auto some = [&](const auto& list) {
      const auto first = list.begin() + std::ssize(data);
      return std::vector(first, first + std::min<int64_t>(most_texts, list.end() - first));
    };
    if (!input.texts.empty()) {
      auto tokens = tokens_to_embed(model.tokenizer(), some(input.texts), options);
      if (tokens.n_cut > 0) {
        int64_t n_read = 0;
        for (const auto& row : tokens.rows) n_read += std::ssize(row);
        throw RefusedTexts(
            fmt::format("input has a text of more tokens than the model reads, which are {}: shorten it",
                        options.max_length),
            n_read);
      }
      return tokens;
    }
    TokensToEmbed tokens{.rows = some(input.ids)};
    for (size_t i = 0; i < tokens.rows.size(); ++i) {
      check_prompt_ids(tokens.rows[i], model.tokenizer(), data.size() + i);
      require_length(tokens.rows[i].size(), options.max_length, "input");
    }
    return tokens;
  }

  /// Embeds some more texts.
  ModelAnswer next(const ServedModel& model) {
    auto options = embed_options(model.run());
    options.normalize = normalize;
    const auto tokens = next_tokens(model, options);
    const auto vectors = embed(model.model(), model.tokenizer(), tokens, options);
    if (dimensions && *dimensions != vectors.size(1))
      throw ApiError(400, fmt::format("dimensions: this model's vectors have {}", vectors.size(1)),
                     "dimensions");
    for (size_t i = 0; i < tokens.rows.size(); ++i) {
      data.push_back({{"object", "embedding"},
                      {"index", data.size()},
                      {"embedding", vector_json(vectors[static_cast<int64_t>(i)], format)}});
      n_tokens += std::ssize(tokens.rows[i]);
    }
    if (data.size() < input.size()) return std::nullopt;
    return CountedAnswer{.document = {{"object", "list"},
                                      {"data", std::move(data)},
                                      {"model", model.card().id},
                                      {"usage", usage_of_reading(n_tokens)}},
                         .tokens_in = n_tokens};
  }
};

void embeddings(const ApiContext& context, const ApiCall& call) {
  RequestFields fields(call.request.body);
  const auto model = fields.required_text("model");
  auto input = read_texts_or_ids(fields, "input", context.options.limits.most_texts);
  const auto dimensions = fields.integer("dimensions", Limits::at_least(1));
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

// /tokenize, /detokenize, /tokenizer_info: the tokens of texts, also in the form of vLLM's server, which
// lm-evaluation-harness asks for (tokenizer_backend=remote).

#include <functional>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "generation/prompt.h"
#include "serving/api/api_error.h"
#include "serving/api/json_answer.h"
#include "serving/api/request_fields.h"
#include "serving/api/routes.h"
#include "serving/api/texts_or_ids.h"
#include "serving/api/token_json.h"
#include "serving/service_error.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

/// The model that a request names, or the only one that is served. Throws ApiError.
std::string named_or_only_model(const ApiContext& context, RequestFields& fields) {
  if (auto model = fields.text("model")) return *model;
  const auto models = context.service.models();
  if (models.size() > 1) throw ApiError(400, "model is missing: this server has several", "model");
  return models.front().card.id;
}

/// Answers with what `work` makes of a model that reads texts, and notes the number of its tokens.
void answer_with_tokenizer(const ApiContext& context, const ApiCall& call, const std::string& model,
                           std::function<std::pair<Json, int64_t>(const ServedModel&)> work) {
  call.reply->note({.model = model});
  context.service.with_model(
      model,
      [model, work = std::move(work), reply = call.reply](const std::shared_ptr<ModelWorker>& worker) {
        const auto& served = worker->model();
        if (!served.card().max_length)
          throw ServiceError(ServiceProblem::unable,
                             fmt::format("the model {} reads no texts", served.card().id));
        const auto [document, n_tokens] = work(served);
        reply->note({.model = model, .tokens_in = n_tokens});
        send_json(*reply, document);
      },
      sender_of_errors(call.reply));
}

/// The tokens of `text` with the characters that they stand for, if the vocabulary knows them.
Json tokens_json(const Tokenizer& tokenizer, const std::string& text) {
  auto list = Json::array();
  const auto add = [&](int64_t id, const Json& begin, const Json& end) {
    list.push_back({{"id", id}, {"text", name_of_token(tokenizer, id)}, {"start", begin}, {"end", end}});
  };
  try {
    for (const auto& token : tokenizer.encode_with_places(text)) add(token.id, token.begin, token.end);
  } catch (const DataError&) {
    list = Json::array();
    for (const int64_t id : tokenizer.encode(text)) add(id, nullptr, nullptr);
  }
  return list;
}

/// The tokens that a model reads of a prompt: also those that its vocabulary puts before it.
std::pair<Json, int64_t> tokens_of_prompt(const ServedModel& served, const std::string& text) {
  const auto& tokenizer = served.tokenizer();
  auto list = Json::array();
  const auto frame = tokenizer.frame();
  if (frame && served.generator() && served.generator()->continues_prompt()) {
    for (const int64_t id : frame->before)
      list.push_back({{"id", id}, {"text", name_of_token(tokenizer, id)}, {"start", 0}, {"end", 0}});
  }
  for (auto& token : tokens_json(tokenizer, text)) list.push_back(std::move(token));
  const auto n = std::ssize(list);
  return {{{"tokens", std::move(list)}}, n};
}

/// A special token by what name_of_token() calls it, which vocabularies that were learned here read as text.
std::optional<int64_t> special_token(const Tokenizer& tokenizer, const std::string& text) {
  const auto& special = tokenizer.special();
  for (const int64_t id : {special.eos, special.bos, special.pad})
    if (id >= 0 && name_of_token(tokenizer, id) == text) return id;
  return std::nullopt;
}

enum class Frame { none, of_vocabulary };

/// The ids of a text, as vLLM's server answers them.
std::pair<Json, int64_t> ids_of_prompt(const ServedModel& served, const std::string& text, Frame around) {
  const auto& tokenizer = served.tokenizer();
  const auto special = special_token(tokenizer, text);
  auto ids = special ? TokenIds{*special} : tokenizer.encode(text);
  if (around == Frame::of_vocabulary) ids = framed(tokenizer.frame().value_or(TextFrame{}), ids);
  const auto n = std::ssize(ids);
  return {{{"count", n}, {"max_model_len", *served.card().max_length}, {"tokens", std::move(ids)}}, n};
}

void tokenize(const ApiContext& context, const ApiCall& call) {
  RequestFields fields(call.request.body);
  if (fields.find("prompt")) {
    auto text = fields.required_text("prompt");
    const auto around = fields.flag("add_special_tokens", true) ? Frame::of_vocabulary : Frame::none;
    const auto model = named_or_only_model(context, fields);
    fields.refuse_others();
    return answer_with_tokenizer(context, call, model,
                                 [text = std::move(text), around](const ServedModel& served) {
                                   return ids_of_prompt(served, text, around);
                                 });
  }
  const auto model = fields.required_text("model");
  auto text = fields.required_text("text");
  fields.refuse_others();
  answer_with_tokenizer(context, call, model, [text = std::move(text)](const ServedModel& served) {
    return tokens_of_prompt(served, text);
  });
}

void detokenize(const ApiContext& context, const ApiCall& call) {
  RequestFields fields(call.request.body);
  const auto& list = fields.required("tokens");
  TokenIds ids;
  for (const auto& one : list.is_array() ? list : Json::array({nullptr})) {
    const auto id = whole_number_in(one);
    if (!id) fields.fail("tokens", "must be a list of token ids");
    ids.push_back(*id);
  }
  const auto model = named_or_only_model(context, fields);
  fields.refuse_others();
  answer_with_tokenizer(context, call, model, [ids = std::move(ids)](const ServedModel& served) {
    const auto& tokenizer = served.tokenizer();
    for (const int64_t id : ids) {
      if (id < 0 || id >= tokenizer.vocab_size())
        throw ApiError(400, fmt::format("tokens: there is no token {}", id), "tokens");
    }
    return std::pair(Json{{"prompt", as_utf8(tokenizer.decode(ids))}}, std::ssize(ids));
  });
}

void show_tokenizer(const ApiContext& context, const ApiCall& call) {
  const auto models = context.service.models();
  if (models.size() > 1)
    throw ApiError(400, "this server has several models, and /tokenizer_info is for servers of one", "model");
  answer_with_tokenizer(context, call, models.front().card.id, [](const ServedModel& served) {
    const auto& tokenizer = served.tokenizer();
    const auto name = [&](int64_t id) { return id < 0 ? Json() : Json(name_of_token(tokenizer, id)); };
    const auto& special = tokenizer.special();
    const auto* const chat = served.chat_template();
    return std::pair(Json{{"vocab_size", tokenizer.vocab_size()},
                          {"model_max_length", *served.card().max_length},
                          {"bos_token", name(special.bos)},
                          {"eos_token", name(special.eos)},
                          {"pad_token", name(special.pad)},
                          {"unk_token", name(special.unk)},
                          {"chat_template", chat ? Json(chat->source()) : Json()}},
                     int64_t{0});
  });
}

}  // namespace

std::vector<Route> tokenizer_routes() {
  return {{.method = "POST", .path = "/tokenize", .answer = tokenize},
          {.method = "POST", .path = "/detokenize", .answer = detokenize},
          {.method = "GET", .path = "/tokenizer_info", .answer = show_tokenizer}};
}

}  // namespace zoo

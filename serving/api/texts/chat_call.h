#pragma once
// What /v1/chat/completions and /v1/responses share: the parts of a conversation, and how one is answered.

#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "serving/api/completion_parameters.h"
#include "serving/api/route.h"
#include "serving/api/tools.h"

namespace zoo {

/// How many alternatives of a token an answer may have.
inline constexpr int64_t kMostAlternatives = 20;

/// Makes what hears of the texts of a request and answers it.
using AnswerMaker = std::function<CompletionListener(AnswerPlan plan, std::shared_ptr<HttpReply> reply)>;

/// Begins a request whose model is ready, and connects it with its client.
void begin(const std::shared_ptr<ModelWorker>& worker, TextCall call, const std::shared_ptr<HttpReply>& reply,
           const AnswerMaker& answer);

/// Throws TextTooLongError for a prompt that a model would have to shorten. `key`: that of the prompt.
void check_length(const ServedModel& model, const TokenIds& prompt, const char* key);

/// The text at `key`, or the texts of its parts, which are of one of these types.
std::string read_content(RequestFields& message, const std::string& key,
                         std::initializer_list<std::string_view> types);

/// Sets the form of the output that `format` asks for: {"type": "json_schema", …}.
void read_format(RequestFields& format, ChatApi api, TextCall& call);

/// Reads tools, and how many of the likeliest tokens are wanted. The last of the fields that both share: it
/// checks that they do not contradict each other.
void read_tools_and_alternatives(RequestFields& fields, ChatApi api, TextCall& call);

/// A conversation as templates read it.
struct ChatMessages {
  nlohmann::ordered_json list;
  const char* key;  // of the request, for errors: "messages"
};

/// Answers a conversation by the model's chat template. Without options.max_new_tokens, an output may fill
/// the model.
void begin_chat(const ApiContext& context, const ApiCall& call, TextCall asked, ChatMessages messages,
                AnswerMaker answer);

}  // namespace zoo

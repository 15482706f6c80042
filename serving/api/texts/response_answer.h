#pragma once
// The answer to a request of /v1/responses: a document of items, or events while they are written.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "serving/api/completion_answer.h"
#include "serving/api/response_store.h"

namespace zoo {

/// What an answer is made from beside its texts.
struct ResponsePlan {
  nlohmann::ordered_json repeated;  // members of the document that say what was asked for
  std::string messages;             // a JSON list: the conversation that is answered; not empty
  std::string owner;
  std::shared_ptr<ResponseStore> store;  // null: it is not kept
};

/// Passes on what a worker says to an answer.
CompletionListener response_listener(AnswerPlan answer, ResponsePlan response,
                                     std::shared_ptr<HttpReply> reply);

}  // namespace zoo

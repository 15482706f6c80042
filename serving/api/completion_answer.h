#pragma once
// The answer to a request for texts: one JSON document at the end, or events while they are written.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "serving/api/tools.h"
#include "serving/completion.h"
#include "serving/http/http_server.h"
#include "serving/served_model.h"

namespace zoo {

/// What the texts belong to.
enum class AnswerKind { completion, chat };
enum class Delivery { whole, stream };

/// Everything that an answer is made from beside the texts.
struct AnswerPlan {
  AnswerKind kind = AnswerKind::completion;
  std::string name = {};  // of the model
  Delivery delivery = Delivery::whole;
  bool includes_usage = false;  // of a stream
  bool has_logprobs = false;
  int64_t seed = 0;
  size_t n_prompts = 1, n_samples = 1;
  /// The prompts as they were sent, if they were texts: these are echoed. Else the texts of their tokens.
  std::vector<std::string> prompts = {};
  std::shared_ptr<const ServedModel> model = {};
  ToolOffer tools = {};
  std::optional<CallFormat> calls = {};  // nothing: an answer is all text
};

/// Sends an answer from the pieces of its texts.
class CompletionAnswer {
 public:
  CompletionAnswer(AnswerPlan plan, std::shared_ptr<HttpReply> reply);

  void add(CompletionPiece piece);
  void end(const CompletionUsage& usage);
  void fail(const std::exception_ptr& problem);

 private:
  using Json = nlohmann::ordered_json;
  struct Choice {
    std::string text = {};
    std::vector<CompletionToken> tokens = {};
    OutputEnd end = OutputEnd::length;
    int64_t offset = 0;  // characters whose tokens were sent
    bool has_begun = false;
    std::optional<CallReader> reader = {};
    std::vector<ToolCall> calls = {};
  };

  bool is_chat() const { return plan_.kind == AnswerKind::chat; }
  bool is_stream() const { return plan_.delivery == Delivery::stream; }
  Json frame(bool is_chunk) const;
  Json logprobs(const std::vector<CompletionToken>& tokens, Choice& choice) const;
  Json whole_choice(size_t index);
  Json chunk_choice(size_t index, const CompletionPiece& piece, const std::vector<ToolCall>& calls);
  void begin_stream();
  void send_event(const Json& event);
  void send_chunk(Json choices, const Json& usage);
  void note(const CompletionUsage& usage);

  AnswerPlan plan_;
  std::shared_ptr<HttpReply> reply_;
  std::string id_;
  int64_t created_;
  std::vector<Choice> choices_;
  bool has_begun_ = false;
};

/// Passes on what a worker says to an answer.
template <class Answer>
CompletionListener listener_of(const std::shared_ptr<Answer>& answer) {
  return {.on_piece = [answer](CompletionPiece piece) { answer->add(std::move(piece)); },
          .on_end = [answer](const CompletionUsage& usage) { answer->end(usage); },
          .on_error = [answer](const std::exception_ptr& problem) { answer->fail(problem); }};
}

}  // namespace zoo

#pragma once
// Tools in conversations: what a request offers, and the calls that a model writes.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "generation/constraints/part_constraint.h"
#include "serving/api/request_fields.h"
#include "text/chat_template.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// OpenAI's two forms of conversations. Chat completions put the name of a function or a schema into an
/// object of its own ({"type": "function", "function": {"name": …}}), responses beside the type.
enum class ChatApi { completions, responses };

/// How a model writes calls.
enum class CallFormat {
  tags,    // Hermes, Qwen: <tool_call>{"name": …, "arguments": {…}}</tool_call>, any number, after a text
  object,  // Llama 3: {"name": …, "parameters": {…}}, and nothing else
  list,    // Mistral: [TOOL_CALLS][{"name": …, "arguments": {…}}, …], where the text may lack the mark
  named    // Mistral, newer: [TOOL_CALLS]name[ARGS]{…}, any number; [CALL_ID] and an id may follow the name
};

/// The format in which a template writes the calls of earlier answers; nothing if it is none of these.
std::optional<CallFormat> call_format(const ChatTemplate& chat_template);

enum class ToolChoice {
  none,  // the model does not hear of the tools
  automatic,
  required  // the answer is a call of one of `callable`
};
enum class CallCount { one, any };

/// What a request says of tools.
struct ToolOffer {
  nlohmann::ordered_json tools = nullptr;  // as templates read them; null: there are none
  ToolChoice choice = ToolChoice::none;
  CallCount most = CallCount::any;
  std::vector<std::string> callable = {};  // names
};

/// Reads `tools`, `tool_choice` and `parallel_tool_calls`. Throws ApiError.
ToolOffer read_tools(RequestFields& fields, ChatApi api);

/// The marks of a format that are special tokens of a vocabulary, which gives them no text: a CallReader
/// wants to see them.
ShownTokens shown_marks(const Tokenizer& tokenizer, CallFormat format);

/// An answer that must be a call: what stands before it, for which the model has no choice, and the JSON
/// schema or the form of what follows.
struct RequiredCall {
  std::string beginning, schema = {};
  std::optional<PartForm> form = {};
};
RequiredCall required_call(const ToolOffer& offer, CallFormat format);

/// The form of the calls in an answer that may have some: a call that has begun is one of a tool that is
/// offered, with arguments that follow its schema. A schema that is not supported allows any JSON object.
PartForm form_of_calls(const ToolOffer& offer, CallFormat format);

/// The arguments of a call as templates want them: an object, which OpenAI sends as its text.
nlohmann::ordered_json read_arguments(const std::string& text);
/// A call of an earlier answer, as templates read it. `arguments`: its text.
nlohmann::ordered_json tool_call_json(const std::string& id, const std::string& name,
                                      const std::string& arguments);

struct ToolCall {
  std::string name, arguments;  // a JSON text
};

/// Divides an answer, while it grows, into its text and its calls. What is no call of a tool that was offered
/// stays text.
class CallReader {
 public:
  struct Found {
    std::string text = {};
    std::vector<ToolCall> calls = {};
  };

  enum class Rest { follows, is_none };

  CallReader(CallFormat format, const ToolOffer& offer);
  /// The next piece of the answer.
  Found read(std::string_view piece, Rest rest);

 private:
  bool add_call(const std::string& name, const nlohmann::ordered_json& arguments, Found& found);
  bool add_calls(std::string_view text, Found& found);
  bool add_named_call(std::string_view text, Found& found);
  void add_named_calls(Rest rest, Found& found);
  void read_object(Rest rest, Found& found);
  void read_tags(Rest rest, Found& found);
  void read_marked(Rest rest, Found& found);

  CallFormat format_;
  CallCount most_;
  std::vector<std::string> callable_;
  std::string held_;  // may be a part of a call
  size_t n_calls_ = 0;
  bool is_text_ = false;    // of formats whose calls are the whole answer: it is none
  bool is_marked_ = false;  // held_ begins with the mark of calls
};

}  // namespace zoo

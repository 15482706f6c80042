#pragma once
// How a model's conversations become text and tokens: the template that comes with its tokenizer.
//
//   const auto chat = read_chat_template("SmolLM2-135M-Instruct");
//   const auto ids = chat.encode(tokenizer, {{"messages", {{{"role", "user"}, {"content", "Hi!"}}}},
//                                            {"add_generation_prompt", true}});
//
// The text is that of transformers' apply_chat_template(); tests/parity/chat_template_test.py compares them.

#include <ctime>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "templates/text_template.h"
#include "tokenizers/hub/settings.h"
#include "tokenizers/hub_tokenizer.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// How the text of a special token within a message is encoded.
enum class MarksInMessages {
  text,    // text like any other
  tokens,  // the token: a message can end a turn, or begin one in another role
};

/// An object with "messages": [{"role": …, "content": …}, …]; optional are "tools", "documents",
/// "add_generation_prompt" (the text then ends where the answer begins), "continue_final_message" (the text
/// ends within the last message), and any other variable of the template.
using Conversation = nlohmann::ordered_json;

/// The tokens of a conversation, and which of them are its answers.
struct EncodedConversation {
  TokenIds ids;
  std::vector<int64_t> answers;  // first token, end, first token, end, … in order
  int64_t answer_bytes = 0;      // of their text
};

class ChatTemplate {
 public:
  /// `sources`: templates by name; one is called "default". `tokens`: bos_token and so on. `special`: the
  /// texts of all special tokens.
  ChatTemplate(std::map<std::string, std::string> sources, nlohmann::ordered_json tokens,
               std::vector<std::string> special);

  /// Throws DataError: messages are missing, or a TemplateError.
  RenderedText render(const Conversation& conversation, const std::tm& now = {}) const;
  /// The tokens of the rendered text. Special tokens in it are those of the template alone, unless `marks`
  /// says otherwise. Throws DataError, also if the template does not keep the texts of special tokens in
  /// messages.
  TokenIds encode(const Tokenizer& tokenizer, const Conversation& conversation, const std::tm& now = {},
                  MarksInMessages marks = MarksInMessages::text) const;
  /// The same tokens, and the spans of the assistant's answers for training. A template with {% generation %}
  /// marks them, as in transformers' return_assistant_tokens_mask. Without it, an answer begins where the
  /// assistant's turn begins, and ends with this turn. Throws DataError likewise, and if the template writes
  /// a turn in another way when the conversation goes on.
  EncodedConversation encode_answers(const Tokenizer& tokenizer, const Conversation& conversation) const;

  /// The text of the default template; empty if there is none.
  const std::string& source() const { return source_; }

 private:
  /// The texts between the cuts where special tokens of messages are divided.
  std::vector<std::string> rendered_parts(const Conversation& conversation, const RenderedText& whole,
                                          const std::tm& now) const;
  std::vector<ByteSpan> answers_in(const Conversation& conversation, const RenderedText& whole) const;
  const TextTemplate& template_for(const Conversation& conversation) const;

  std::string source_;
  std::map<std::string, TextTemplate> templates_;
  nlohmann::ordered_json tokens_;
  std::vector<std::string> special_;
};

/// The templates in a tokenizer's files by name, that of chat_template.jinja or else of tokenizer_config.json
/// as "default". Throws nlohmann's exceptions for damaged ones.
std::map<std::string, std::string> chat_template_sources(const HubFiles& files,
                                                         const TokenizerSettings& settings);

/// The template in these files. `place` stands in messages. Throws DataError if there is none.
ChatTemplate make_chat_template(const HubFiles& files, const std::string& place);

/// The template of a directory of the Hub, or of a run that was imported from one: chat_template.jinja, or
/// chat_template in tokenizer_config.json. Throws DataError if there is none.
ChatTemplate read_chat_template(const std::filesystem::path& dir);

}  // namespace zoo

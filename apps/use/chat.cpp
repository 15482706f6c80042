#include "apps/use/chat.h"

#include <iostream>
#include <utility>

#include <fmt/format.h>

#include "apps/console/interrupts.h"
#include "apps/console/prompt_lines.h"
#include "apps/console/show_error.h"
#include "base/error.h"
#include "base/text.h"
#include "interop/stored_texts.h"
#include "io/json_document.h"
#include "text/local_time.h"
#include "tokenizers/tokenizer_file.h"

namespace zoo {
namespace {

GenerativeModel& writer_of(const Run& run) {
  auto* const writer = run.model().generative();
  if (!writer || !writer->continues_prompt())
    throw UsageError("--chat: this model does not continue texts, so it cannot hold a conversation");
  return *writer;
}

/// Bytes of an answer that are not UTF-8 become U+FFFD.
nlohmann::ordered_json message_of(const char* role, const std::string& content) {
  const auto valid = shown_json(nlohmann::json(content));
  return {{"role", role}, {"content", parse_ordered_json(valid)}};
}

}  // namespace

Chat::Chat(const Run& run, const GenerationConfig& generation, const ChatOptions& options)
    : generation_(generation),
      options_(options),
      template_(open_stored_chat_template(run.dir(), options.base)),
      tokenizer_(run.tokenizer()),
      max_length_(writer_of(run).max_length()),
      generator_(run.model(), run.tokenizer()) {
  if (options_.system) check_utf8(*options_.system);
  clear();
}

void Chat::clear() {
  messages_ = nlohmann::ordered_json::array();
  if (options_.system) messages_.push_back(message_of("system", *options_.system));
}

TokenIds Chat::prompt(std::string message) const {
  check_utf8(message);
  auto messages = messages_;
  messages.push_back(message_of("user", std::move(message)));
  const Conversation conversation{{"messages", std::move(messages)}, {"add_generation_prompt", true}};
  auto ids = template_.encode(tokenizer_, conversation, local_time(), options_.marks);
  if (std::ssize(ids) >= max_length_) {
    throw DataError(
        fmt::format("the conversation has {} tokens, and the model reads {}: type /clear to begin again",
                    ids.size(), max_length_));
  }
  return ids;
}

void Chat::answer(std::string message, uint64_t number, const std::function<bool()>& is_interrupted) {
  const auto ids = prompt(message);
  std::string text;
  for (const auto& piece : generator_.stream(ids, generation_, Draw{.prompt = number, .sample = 0})) {
    std::cout << piece << std::flush;
    text += piece;
    if (is_interrupted()) break;
  }
  std::cout << '\n' << std::flush;
  if (!std::cout) throw SystemError("cannot write to standard output");
  if (text.empty() && is_interrupted()) return;
  messages_.push_back(message_of("user", std::move(message)));
  messages_.push_back(message_of("assistant", std::move(text)));
}

Generation Chat::answer_at_once(std::string message) {
  auto generations = generator_.generate(std::vector<TokenIds>{prompt(message)}, generation_);
  messages_.push_back(message_of("user", std::move(message)));
  messages_.push_back(message_of("assistant", generations[0].outputs[0].text));
  return std::move(generations[0]);
}

void converse_with(Chat& chat, size_t most_bytes) {
  std::cerr << "Type a message and press Enter; Ctrl-C ends an answer, /clear begins again, /exit or Ctrl-D "
               "ends.\n";
  const Interrupts interrupts;
  LineReader reader(std::cin, most_bytes);
  for (uint64_t number = 0;;) {
    std::cerr << "> ";
    auto line = reader.next();
    if (!line || *line == "/exit") break;
    if (line->empty()) continue;
    if (*line == "/clear") {
      chat.clear();
      continue;
    }
    try {
      const Interrupts::Answer answer(interrupts);
      chat.answer(std::move(*line), number++, [&] { return answer.is_interrupted(); });
    } catch (const DataError& error) {
      show_error(error.what());
    }
  }
  std::cerr << '\n';
}

}  // namespace zoo

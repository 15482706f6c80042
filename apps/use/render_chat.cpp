#include "apps/use/render_chat.h"

#include <ctime>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "apps/console/options.h"
#include "base/error.h"
#include "base/text.h"
#include "interop/stored_texts.h"
#include "io/file_kind.h"
#include "io/files.h"
#include "io/json_document.h"
#include "text/chat_template.h"
#include "text/local_time.h"

namespace zoo {
namespace {

struct RenderArguments {
  std::filesystem::path dir, base, messages;
  std::optional<std::string> now;
  bool add_generation_prompt = false, ids = false, special_tokens = false, answers = false, json = false;
};

std::tm time_of(const RenderArguments& arguments) {
  if (!arguments.now) return local_time();
  std::tm time{};
  std::istringstream in(*arguments.now);
  in >> std::get_time(&time, "%Y-%m-%d %H:%M");
  if (!in) throw UsageError("--now: the time is written as '2025-07-31 18:30'");
  time.tm_isdst = -1;
  std::mktime(&time);  // the day of the week
  return time;
}

Conversation conversation_in(std::string_view text, const RenderArguments& arguments) {
  auto value = parse_ordered_json(text);
  Conversation conversation =
      value.is_array() ? Conversation{{"messages", std::move(value)}} : std::move(value);
  if (arguments.add_generation_prompt && conversation.is_object())
    conversation["add_generation_prompt"] = true;
  return conversation;
}

/// A file .jsonl or .ndjson has one conversation a line; another file is one conversation.
std::vector<Conversation> read_conversations(const RenderArguments& arguments) {
  const auto content = read_file(arguments.messages);
  const auto name = arguments.messages.string();
  std::vector<Conversation> conversations;
  const auto add = [&](std::string_view text, const std::string& place) {
    try {
      conversations.push_back(conversation_in(text, arguments));
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: {}", place, error.what()));
    }
  };
  if (!has_extension(arguments.messages, {".jsonl", ".ndjson"})) {
    add(content, name);
    return conversations;
  }
  std::istringstream lines(content);
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.empty()) add(line, fmt::format("{}, line {}", name, number));
  }
  return conversations;
}

/// What data.chat trains on: the token ids and the answers among them, as [begin, end].
void add_answers(const ChatTemplate& chat, const Tokenizer& tokenizer, const Conversation& conversation,
                 nlohmann::ordered_json& result) {
  const auto encoded = chat.encode_answers(tokenizer, conversation);
  auto answers = nlohmann::ordered_json::array();
  for (size_t i = 0; i < encoded.answers.size(); i += 2)
    answers.push_back({encoded.answers[i], encoded.answers[i + 1]});
  result["ids"] = encoded.ids;
  result["answers"] = std::move(answers);
}

// {"results": [{"text", "generated": [[begin, end]], "ids", "answers"} or {"error"}]}, one for each
// conversation. `generated` counts bytes, `answers` tokens.
void render_chat(const RenderArguments& arguments) {
  const auto chat = open_stored_chat_template(arguments.dir, arguments.base);
  if (arguments.answers && !arguments.json) throw UsageError("--answers: needs --json");
  const bool has_ids = arguments.ids || arguments.answers;
  const auto tokenizer = has_ids ? open_stored_tokenizer(arguments.dir, arguments.base) : nullptr;
  const auto now = time_of(arguments);
  const auto marks = arguments.special_tokens ? MarksInMessages::tokens : MarksInMessages::text;
  auto results = nlohmann::ordered_json::array();
  for (const auto& conversation : read_conversations(arguments)) {
    const size_t number = results.size();
    try {
      const auto rendered = chat.render(conversation, now);
      const auto ids = tokenizer ? chat.encode(*tokenizer, conversation, now, marks) : TokenIds();
      if (!arguments.json) {
        std::cout << (tokenizer ? fmt::format("{}\n", fmt::join(ids, ",")) : rendered.text + "\n");
        continue;
      }
      auto generated = nlohmann::ordered_json::array();
      for (const auto& [begin, end] : rendered.generated) generated.push_back({begin, end});
      results.push_back({{"text", rendered.text}, {"generated", std::move(generated)}});
      if (tokenizer) results.back()["ids"] = ids;
      if (arguments.answers) add_answers(chat, *tokenizer, conversation, results.back());
    } catch (const DataError& error) {
      if (!arguments.json) throw;
      if (results.size() > number) results.erase(number);
      results.push_back({{"error", error.what()}});
    }
  }
  if (arguments.json) std::cout << json_text(nlohmann::ordered_json{{"results", std::move(results)}}) << '\n';
}

}  // namespace

void add_render_chat(CLI::App& app) {
  const auto arguments = std::make_shared<RenderArguments>();
  auto* command = app.add_subcommand("chat", "What a model reads of a conversation, by its chat template");
  command
      ->add_option(
          "RUN|DIR", arguments->dir,
          "A directory with a tokenizer of the Hugging Face Hub, a run made from one, or a GGUF file")
      ->type_name("DIR")
      ->required();
  command
      ->add_option(
          "--messages", arguments->messages,
          "JSON: a list of messages {\"role\", \"content\"}, or an object with \"messages\" and other "
          "variables of the template, such as \"tools\"; in a file .jsonl one conversation a line")
      ->type_name("FILE")
      ->required();
  command->add_flag("--add-generation-prompt", arguments->add_generation_prompt,
                    "End where the answer begins");
  command->add_flag("--ids", arguments->ids, "The token ids in place of the text");
  command->add_flag("--special-tokens", arguments->special_tokens,
                    "With --ids: take the text of special tokens in messages for these tokens");
  command->add_flag("--answers", arguments->answers,
                    "With --json: also the tokens that training with data.chat predicts");
  command->add_option("--now", arguments->now, "The time for templates that write the date; default: now")
      ->type_name("'YYYY-MM-DD HH:MM'");
  add_base(*command, arguments->base);
  add_json(*command, arguments->json,
           "One JSON document on standard output; errors of a conversation are in it");
  command->callback([arguments] { render_chat(*arguments); });
}

}  // namespace zoo

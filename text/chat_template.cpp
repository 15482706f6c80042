#include "text/chat_template.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "data/text_files.h"
#include "io/files.h"
#include "io/json_document.h"
#include "tokenizers/hub/settings.h"

namespace zoo {
namespace {

bool is_set(const Conversation& conversation, const char* name) {
  const auto found = conversation.find(name);
  return found != conversation.end() && found->is_boolean() && found->get<bool>();
}

/// The date that strftime_now has in training, so that runs can be repeated.
std::tm date_of_training() {
  std::tm date{};
  date.tm_mday = 26;  // 26 July 2024, a Friday
  date.tm_mon = 6;
  date.tm_year = 124;
  date.tm_wday = 5;
  date.tm_yday = 207;
  return date;
}

// ---- messages as templates see them, as in transformers 5

/// Leaves out keys without a value: a template that writes `content` would write "None". Gives a message its
/// reasoning under the names that templates read: `reasoning_content` or, for gpt-oss, `thinking`.
void prepare(Conversation& messages) {
  for (auto& message : messages) {
    if (!message.is_object()) throw DataError("a message is an object with a \"role\" and a \"content\"");
    auto prepared = Conversation::object();
    for (const auto& [key, value] : message.items()) {
      if (!value.is_null()) prepared[key] = value;
    }
    for (const char* const name : {"reasoning_content", "thinking", "reasoning"}) {
      const auto found = prepared.find(name);
      if (found == prepared.end()) continue;
      Conversation named = {{"thinking", *found}};
      named.update(prepared);
      named["reasoning_content"] = *found;
      prepared = std::move(named);
      break;
    }
    message = std::move(prepared);
  }
}

// ---- continue_final_message

constexpr std::string_view final_tag = "CONTINUE_FINAL_MESSAGE_TAG";

std::string_view without_blanks(std::string_view text) {
  text = without_blanks_at_end(text);
  return text.substr(std::min(text.find_first_not_of(" \t\n\r\f\v"), text.size()));
}

/// Puts the tag behind the text of the last message. Returns that text as it was before.
std::string mark_final_message(Conversation& conversation) {
  auto& messages = conversation["messages"];
  if (messages.empty() || !messages.back().is_object() || !messages.back().contains("content"))
    throw DataError("continue_final_message: there is no message to continue");
  auto* content = &messages.back()["content"];
  if (content->is_array()) {
    const auto part = std::find_if(content->rbegin(), content->rend(), [](const auto& candidate) {
      return candidate.is_object() && candidate.contains("text");
    });
    if (part == content->rend()) throw DataError("continue_final_message: the last message has no text");
    content = &(*part)["text"];
  }
  if (!content->is_string()) throw DataError("continue_final_message: the last message is no text");
  auto text = content->get<std::string>();
  *content = text + std::string(final_tag) + " ";
  return text;
}

/// Ends the rendered text behind the last message. Where the template took away the blank behind the tag, it
/// strips its messages, so the blanks at the message's own end go, too.
void cut_at_tag(std::string& text, const std::string& final_message) {
  const size_t tag = text.rfind(final_tag);
  if (tag == text.npos || text.find(without_blanks(final_message)) == text.npos)
    throw DataError("continue_final_message: the template does not write the last message as it is");
  const bool keeps_blanks = std::string_view(text).substr(tag + final_tag.size()).starts_with(" ");
  text.resize(tag);
  if (!keeps_blanks) text.resize(without_blanks_at_end(text).size());
}

// ---- special tokens in messages

/// A character that no text has, which cuts the texts of special tokens in messages.
std::string cut_for(const Conversation& conversation) {
  const auto all = json_text(conversation);
  for (char last = '\x90'; last <= '\xAF'; ++last) {  // U+FDD0 … U+FDEF
    std::string cut = "\xEF\xB7";
    cut += last;
    if (all.find(cut) == all.npos) return cut;
  }
  throw DataError("the messages have every character that could mark special tokens in them");
}

/// Puts `cut` behind the first character of each special token in the texts. Whether there was any.
bool cut_special(nlohmann::ordered_json& value, const std::vector<std::string>& special,
                 const std::string& cut) {
  bool found = false;
  if (value.is_structured()) {
    for (auto& part : value) found = cut_special(part, special, cut) || found;
    return found;
  }
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  std::set<size_t> places;
  for (const auto& token : special) {
    const size_t first = byte_of_code_point(token, 1);  // the bytes of its first character
    for (size_t at = text.find(token); at != text.npos; at = text.find(token, at + 1)) {
      if (first == token.size())
        throw DataError(
            fmt::format("a message has the special token '{}', which is one character", excerpt(token)));
      places.insert(at + first);
    }
  }
  if (places.empty()) return false;
  std::string result;
  size_t from = 0;
  for (const size_t place : places) {
    result += text.substr(from, place - from) + cut;
    from = place;
  }
  value = result + text.substr(from);
  return true;
}

std::vector<std::string> parts_between_cuts(const std::string& text, const std::string& cut) {
  std::vector<std::string> parts;
  size_t from = 0;
  for (size_t at = text.find(cut); at != text.npos; at = text.find(cut, from)) {
    parts.push_back(text.substr(from, at - from));
    from = at + cut.size();
  }
  parts.push_back(text.substr(from));
  return parts;
}

// ---- files

nlohmann::ordered_json tokens_of(const TokenizerSettings& settings) {
  static constexpr std::pair<TokenRole, const char*> names[] = {
      {TokenRole::bos, "bos_token"},  {TokenRole::eos, "eos_token"}, {TokenRole::unk, "unk_token"},
      {TokenRole::sep, "sep_token"},  {TokenRole::pad, "pad_token"}, {TokenRole::cls, "cls_token"},
      {TokenRole::mask, "mask_token"}};
  auto tokens = nlohmann::ordered_json::object();
  for (const auto& [role, name] : names) {
    const auto text = settings.token(role);
    if (!text.empty()) tokens[name] = text;
  }
  for (const auto& [name, token] : settings.named) tokens[name] = token.content;
  for (const auto& token : settings.additional) tokens["additional_special_tokens"].push_back(token.content);
  return tokens;
}

std::vector<std::string> special_of(const HubFiles& files, const TokenizerSettings& settings) {
  std::set<std::string> special;
  for (const auto& [role, token] : settings.roles) special.insert(token.content);
  for (const auto& token : settings.further_tokens()) special.insert(token.content);
  for (const auto& [id, token] : settings.added) {
    if (token.special) special.insert(token.content);
  }
  const auto document = json_file(files, "tokenizer.json");
  if (const auto added = document.find("added_tokens"); document.is_object() && added != document.end()) {
    for (const auto& entry : *added) {
      const auto token = added_token(entry);
      if (token.special) special.insert(token.content);
    }
  }
  special.erase("");
  return {special.begin(), special.end()};
}

}  // namespace

ChatTemplate::ChatTemplate(std::map<std::string, std::string> sources, nlohmann::ordered_json tokens,
                           std::vector<std::string> special)
    : tokens_(std::move(tokens)), special_(std::move(special)) {
  if (const auto found = sources.find("default"); found != sources.end()) source_ = found->second;
  for (const auto& [name, source] : sources) {
    try {
      templates_.emplace(name, TextTemplate(source));
    } catch (const TemplateError& error) {
      throw TemplateError(fmt::format("the chat template: {}", error.what()));
    }
  }
}

const TextTemplate& ChatTemplate::template_for(const Conversation& conversation) const {
  const auto tools = conversation.find("tools");
  const bool uses_tools = tools != conversation.end() && !tools->is_null();
  auto found = uses_tools ? templates_.find("tool_use") : templates_.end();
  if (found == templates_.end()) found = templates_.find("default");
  if (found == templates_.end()) throw DataError("there is no chat template with the name 'default'");
  return found->second;
}

RenderedText ChatTemplate::render(const Conversation& conversation, const std::tm& now) const {
  if (!conversation.is_object() || !conversation.contains("messages") || !conversation["messages"].is_array())
    throw DataError("a conversation is an object with a list of \"messages\"");
  const bool continues = is_set(conversation, "continue_final_message");
  if (continues && is_set(conversation, "add_generation_prompt"))
    throw DataError("continue_final_message and add_generation_prompt contradict each other");
  nlohmann::ordered_json variables = tokens_;
  if (variables.is_null()) variables = nlohmann::ordered_json::object();
  variables.update({{"tools", nullptr}, {"documents", nullptr}, {"add_generation_prompt", false}});
  variables.update(conversation);
  variables.erase("continue_final_message");
  prepare(variables["messages"]);
  std::string final_message;
  if (continues) final_message = mark_final_message(variables);
  try {
    auto result = template_for(conversation).render(variables, now);
    if (continues) {
      cut_at_tag(result.text, final_message);
      for (auto& [begin, end] : result.generated) {
        begin = std::min(begin, result.text.size());
        end = std::min(end, result.text.size());
      }
    }
    return result;
  } catch (const TemplateError& error) {
    throw TemplateError(fmt::format("the chat template: {}", error.what()));
  }
}

std::vector<std::string> ChatTemplate::rendered_parts(const Conversation& conversation,
                                                      const RenderedText& whole, const std::tm& now) const {
  auto with_cuts = conversation;
  const auto cut = cut_for(conversation);
  bool has_special = false;
  for (const auto* name : {"messages", "tools", "documents"}) {
    if (with_cuts.contains(name)) has_special = cut_special(with_cuts[name], special_, cut) || has_special;
  }
  if (!has_special) return {whole.text};
  auto parts = parts_between_cuts(render(with_cuts, now).text, cut);
  std::string joined;
  for (const auto& part : parts) joined += part;
  if (joined != whole.text) {
    throw DataError(
        "a message has the text of a special token, and the template does more with it than write it: "
        "leave it out, or ask for special tokens in messages");
  }
  return parts;
}

TokenIds ChatTemplate::encode(const Tokenizer& tokenizer, const Conversation& conversation,
                              const std::tm& now, MarksInMessages marks) const {
  const auto whole = render(conversation, now);
  if (marks == MarksInMessages::tokens) return tokenizer.encode(whole.text);
  TokenIds ids;
  bool is_first = true;
  for (const auto& part : rendered_parts(conversation, whole, now)) {
    const auto more =
        std::exchange(is_first, false) ? tokenizer.encode(part) : tokenizer.encode_continuation(part);
    ids.insert(ids.end(), more.begin(), more.end());
  }
  return ids;
}

std::vector<ByteSpan> ChatTemplate::answers_in(const Conversation& conversation,
                                               const RenderedText& whole) const {
  if (template_for(conversation).marks_generated_text()) return whole.generated;
  std::vector<ByteSpan> answers;
  auto beginning = conversation;
  auto& answer_follows = beginning["add_generation_prompt"] = false;
  auto& messages = beginning["messages"] = Conversation::array();
  const auto text_so_far = [&](bool prompt) {
    answer_follows = prompt;
    return render(beginning, date_of_training()).text;
  };
  for (const auto& message : conversation["messages"]) {
    const bool is_answer = message.is_object() && message.value("role", "") == "assistant";
    const auto before = is_answer ? text_so_far(true) : std::string();
    messages.push_back(message);
    if (!is_answer) continue;
    const auto after = text_so_far(false);
    if (!after.starts_with(before) || !whole.text.starts_with(after)) {
      throw DataError(
          "the chat template writes a turn in another way when the conversation goes on, and does not mark "
          "answers with {% generation %}: it is not known which tokens are answers");
    }
    answers.push_back({before.size(), after.size()});
  }
  return answers;
}

EncodedConversation ChatTemplate::encode_answers(const Tokenizer& tokenizer,
                                                 const Conversation& conversation) const {
  const auto whole = render(conversation, date_of_training());
  std::vector<PlacedToken> tokens;
  size_t code_points = 0;  // of the parts so far
  for (const auto& part : rendered_parts(conversation, whole, date_of_training())) {
    auto more =
        tokens.empty() ? tokenizer.encode_with_places(part) : tokenizer.encode_continuation_with_places(part);
    for (auto [id, begin, end] : more) tokens.push_back({id, begin + code_points, end + code_points});
    code_points += count_code_points(part);
  }
  EncodedConversation result;
  for (const auto& token : tokens) result.ids.push_back(token.id);
  for (const auto& [begin, end] : answers_in(conversation, whole)) {
    const size_t first = count_code_points(std::string_view(whole.text).substr(0, begin));
    const size_t last = first + count_code_points(std::string_view(whole.text).substr(begin, end - begin));
    // As transformers: each token that shares a character with an answer belongs to it.
    const auto from = std::ranges::find_if(tokens, [&](const auto& token) { return token.end > first; });
    const auto to = std::find_if(from, tokens.end(), [&](const auto& token) { return token.begin >= last; });
    if (from == to) continue;
    result.answers.push_back(from - tokens.begin());
    result.answers.push_back(to - tokens.begin());
    result.answer_bytes += static_cast<int64_t>(end - begin);
  }
  return result;
}

std::map<std::string, std::string> chat_template_sources(const HubFiles& files,
                                                         const TokenizerSettings& settings) {
  std::map<std::string, std::string> sources;
  const auto found = settings.config.find("chat_template");
  if (found != settings.config.end() && found->is_string()) sources["default"] = found->get<std::string>();
  if (found != settings.config.end() && found->is_array()) {
    for (const auto& entry : *found)
      sources[entry.at("name").get<std::string>()] = entry.at("template").get<std::string>();
  }
  if (found != settings.config.end() && found->is_object())
    sources = found->get<std::map<std::string, std::string>>();
  if (const auto file = files.find("chat_template.jinja"); file != files.end())
    sources = {{"default", file->second}};
  return sources;
}

ChatTemplate make_chat_template(const HubFiles& files, const std::string& place) {
  try {
    const auto settings = read_settings(files);
    auto sources = chat_template_sources(files, settings);
    if (sources.empty()) {
      throw DataError(
          "there is no chat template, neither chat_template.jinja nor chat_template in "
          "tokenizer_config.json: the model was not made for conversations");
    }
    return {std::move(sources), tokens_of(settings), special_of(files, settings)};
  } catch (const nlohmann::json::exception&) {
    throw DataError(fmt::format("{}: tokenizer_config.json or tokenizer.json is damaged", place));
  } catch (const TemplateError&) {
    throw;
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", place, error.what()));
  }
}

ChatTemplate read_chat_template(const std::filesystem::path& dir) {
  const bool is_run = is_there(dir / "config.yaml");
  return make_chat_template(
      is_run ? read_hub_files(dir / "hub", Follow::nothing) : read_hub_files(dir, Follow::links),
      dir.string());
}

}  // namespace zoo

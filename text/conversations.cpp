#include "text/conversations.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "base/error.h"
#include "io/json_document.h"
#include "io/sha256.h"
#include "tokenizers/token_cache.h"

namespace zoo {
namespace {

using ConversationVisitor = std::function<void(Conversation conversation, const std::string& place)>;

/// The keys of a question and its answer.
struct QuestionKeys {
  const char *question, *more, *answer;
};
constexpr QuestionKeys kQuestions[] = {
    {"instruction", "input", "output"}, {"prompt", nullptr, "completion"}, {"prompt", nullptr, "response"}};

Conversation message(const char* role, const Conversation& content) {
  return {{"role", role}, {"content", content}};
}

/// ShareGPT's names of roles; others are as they are.
std::string role_of(const std::string& from) {
  return from == "human" ? "user" : from == "gpt" || from == "bot" || from == "model" ? "assistant" : from;
}

/// Writes the forms of other collections as "messages". Returns whether there are some then.
bool make_messages(Conversation& object) {
  if (object.contains("messages")) return true;
  auto messages = Conversation::array();
  const auto is_text = [&](const char* key) {
    return key && object.contains(key) && object[key].is_string();
  };
  const auto text = [&](const char* key) {
    return is_text(key) ? object[key].get<std::string>() : std::string();
  };
  if (const auto turns = object.find("conversations"); turns != object.end() && turns->is_array()) {
    if (!text("system").empty()) messages.push_back(message("system", text("system")));
    for (const auto& turn : *turns) {
      if (!turn.is_object() || !turn.contains("from") || !turn["from"].is_string() || !turn.contains("value"))
        return false;
      messages.push_back(message(role_of(turn["from"].get<std::string>()).c_str(), turn["value"]));
    }
  } else {
    const auto* const keys = std::ranges::find_if(
        kQuestions, [&](const auto& one) { return is_text(one.question) && is_text(one.answer); });
    if (keys == std::end(kQuestions)) return false;
    const auto more = text(keys->more);
    messages.push_back(message("user", text(keys->question) + (more.empty() ? "" : "\n\n" + more)));
    messages.push_back(message("assistant", text(keys->answer)));
  }
  object = {{"messages", std::move(messages)}};
  return true;
}

Conversation parsed(std::string_view line, const std::string& place) {
  Conversation conversation;
  try {
    conversation = parse_ordered_json(line);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", place, error.what()));
  }
  if (!conversation.is_object() || !make_messages(conversation))
    throw DataError(fmt::format("{}: this is no conversation: an object with \"messages\"", place));
  conversation.erase("add_generation_prompt");
  conversation.erase("continue_final_message");
  return conversation;
}

/// What waits to be encoded.
struct Waiting {
  Conversation conversation;
  std::string place;
  EncodedConversation encoded = {};
};

void encode_all(std::vector<Waiting>& waiting, const ChatTemplate& chat, const Tokenizer& tokenizer) {
  at::parallel_for(0, std::ssize(waiting), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      auto& [conversation, place, encoded] = waiting[static_cast<size_t>(i)];
      try {
        encoded = chat.encode_answers(tokenizer, conversation);
      } catch (const DataError& error) {
        throw DataError(fmt::format("{}: {}", place, error.what()));
      }
    }
  });
}

/// What is kept of the conversations of a split; rows correspond.
struct Stores {
  TokenStore tokens, answers;
  TokenStore bytes;  // of the answers, one number a row
};

struct CachedConversations {
  CachedStore tokens, answers, bytes;
};

/// Hash of everything that the tokens depend on: the conversations and the files of the tokenizer, its
/// template among them. Empty if they are not cached.
std::string cache_key(Corpus& corpus, Split split, const Tokenizer& tokenizer) {
  if (tokenizer.fingerprint().empty() || cache_root().empty()) return {};
  return sha256(fmt::format("conversations 2 {}\n{}", tokenizer.fingerprint(), corpus.fingerprint(split)));
}

CachedConversations cached_conversations(const std::string& key) {
  const auto part = [&](std::string_view name) {
    return CachedStore(key.empty() ? key : sha256(fmt::format("{} {}", key, name)));
  };
  return {.tokens = part("tokens"), .answers = part("answers"), .bytes = part("bytes")};
}

std::optional<Stores> open_cached(const CachedConversations& cached) {
  auto tokens = cached.tokens.open(), answers = cached.answers.open(), bytes = cached.bytes.open();
  if (!tokens || !answers || !bytes) return std::nullopt;
  return Stores{.tokens = *std::move(tokens), .answers = *std::move(answers), .bytes = *std::move(bytes)};
}

/// `n`: the conversations, with those that have no answer.
TokenizedConversations with_counts(Stores stores, int64_t n) {
  TokenizedConversations result{.tokens = std::move(stores.tokens), .answers = std::move(stores.answers)};
  result.n_without_answer = n - result.tokens.n_rows();
  for (int64_t row = 0; row < result.answers.n_rows(); ++row) {
    result.answer_bytes.push_back(stores.bytes.row(row).front());
  }
  return result;
}

}  // namespace

bool are_conversations(const std::vector<std::string>& keys) {
  const auto has = [&](const char* key) { return key && std::ranges::find(keys, key) != keys.end(); };
  return has("messages") || has("conversations") || std::ranges::any_of(kQuestions, [&](const auto& one) {
           return has(one.question) && has(one.answer);
         });
}

void visit_conversations(Corpus& corpus, Split split, const ConversationVisitor& visit) {
  corpus.visit(split, [&](const Document& line, Split) {
    const auto place = fmt::format("{}:{}", line.file.string(), line.line);
    visit(parsed(line.text, place), place);
  });
}

TokenizedConversations tokenize_conversations(Corpus& corpus, Split split, const Tokenizer& tokenizer) {
  const auto chat = make_chat_template(tokenizer.exported_files({}), "data.chat");
  const auto cached = cached_conversations(cache_key(corpus, split, tokenizer));
  const int64_t n = corpus.n_documents(split);
  if (auto found = open_cached(cached)) return with_counts(*std::move(found), n);

  constexpr size_t at_once = 256;
  constexpr int64_t any_number = std::numeric_limits<uint32_t>::max();
  TokenStoreBuilder tokens(tokenizer.vocab_size()), answers(any_number), bytes(any_number);
  std::vector<Waiting> waiting;
  const auto finish = [&] {
    encode_all(waiting, chat, tokenizer);
    for (const auto& [conversation, place, encoded] : waiting) {
      if (encoded.answers.empty()) continue;
      tokens.add(encoded.ids);
      answers.add(encoded.answers);
      bytes.add({encoded.answer_bytes});
    }
    waiting.clear();
  };
  visit_conversations(corpus, split, [&](Conversation conversation, const std::string& place) {
    waiting.push_back({.conversation = std::move(conversation), .place = place});
    if (waiting.size() == at_once) finish();
  });
  finish();
  const Stores made{.tokens = tokens.finish(), .answers = answers.finish(), .bytes = bytes.finish()};
  if (made.tokens.n_rows() == 0) {
    throw DataError(fmt::format("{}: no conversation has an answer of the assistant that the template shows",
                                corpus_name(corpus.config(), split)));
  }
  return with_counts({.tokens = cached.tokens.write(made.tokens),
                      .answers = cached.answers.write(made.answers),
                      .bytes = cached.bytes.write(made.bytes)},
                     n);
}

}  // namespace zoo

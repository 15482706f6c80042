#include "data/text/chats/conversations.h"

#include <limits>
#include <utility>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "base/error.h"
#include "data/files/file_lines.h"
#include "data/files/text_files.h"
#include "io/json_document.h"

namespace zoo {
namespace {

using ConversationVisitor = std::function<void(Conversation conversation, const std::string& place)>;

/// Calls `visit` at each line that is not blank.
void visit_lines(const DataConfig& config, Split split,
                 const std::function<void(const std::filesystem::path& path, const FileLines& at)>& visit) {
  for (const auto& file : files_to_read(config, split)) {
    const auto path = data_path(file);
    if (path.extension() != ".jsonl") {
      throw DataError(
          fmt::format("{}: conversations are read from NAME.jsonl, with an object like {{\"messages\": "
                      "[...]}} in each line",
                      path.string()));
    }
    for (FileLines lines(path); lines.next();) {
      if (!is_blank(lines.line())) visit(path, lines);
    }
  }
}

Conversation parsed(std::string_view line, const std::string& place) {
  Conversation conversation;
  try {
    conversation = parse_ordered_json(line);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", place, error.what()));
  }
  if (!conversation.is_object() || !conversation.contains("messages"))
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

}  // namespace

void visit_conversations(const DataConfig& config, Split split, const ConversationVisitor& visit) {
  size_t n = 0, n_train = 0, number = 0;
  const bool shared = is_shared(config, split);
  if (shared) {
    visit_lines(config, split, [&](const auto&, const auto&) { ++n; });
    n_train = train_part(config, n);
  }
  size_t visited = 0;
  visit_lines(config, split, [&](const std::filesystem::path& path, const FileLines& at) {
    if (shared && (number++ < n_train) != (split == Split::train)) return;
    const auto place = fmt::format("{}:{}", path.string(), at.number());
    visit(parsed(at.line(), place), place);
    ++visited;
  });
  if (visited == 0) fail_empty(config, split, "conversations");
}

TokenizedConversations tokenize_conversations(const DataConfig& config, Split split,
                                              const Tokenizer& tokenizer) {
  constexpr size_t at_once = 256;
  const auto chat = make_chat_template(tokenizer.exported_files({}), "data.chat");
  TokenStoreBuilder tokens(tokenizer.vocab_size()), answers(std::numeric_limits<uint32_t>::max());
  TokenizedConversations result;
  std::vector<Waiting> waiting;
  const auto finish = [&] {
    encode_all(waiting, chat, tokenizer);
    for (const auto& [conversation, place, encoded] : waiting) {
      if (encoded.answers.empty()) continue;
      tokens.add(encoded.ids);
      answers.add(encoded.answers);
      for (size_t i = 0; i < encoded.answers.size(); i += 2)
        result.answer_tokens += encoded.answers[i + 1] - encoded.answers[i];
      result.answer_bytes += encoded.answer_bytes;
    }
    waiting.clear();
  };
  visit_conversations(config, split, [&](Conversation conversation, const std::string& place) {
    waiting.push_back({.conversation = std::move(conversation), .place = place});
    if (waiting.size() == at_once) finish();
  });
  finish();
  result.tokens = tokens.finish();
  result.answers = answers.finish();
  if (result.tokens.n_rows() == 0) {
    throw DataError(fmt::format("{}: no conversation has an answer of the assistant that the template shows",
                                corpus_name(config, split)));
  }
  return result;
}

}  // namespace zoo

#pragma once
// Files of conversations for training: NAME.jsonl, an object a line, with
//
//   messages                        roles and contents, as OpenAI and transformers have them
//   conversations                   "from" and "value", as ShareGPT has them
//   instruction, input, output      a question and its answer, as Alpaca has them; input may be missing
//   prompt, completion or response  the same

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/splits.h"
#include "text/chat_template.h"
#include "text/corpus.h"
#include "tokenizers/token_store.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// Whether rows with these keys are conversations.
bool are_conversations(const std::vector<std::string>& keys);

/// Calls `visit` with the conversations of `split` in order, and their places for messages ("chats.jsonl:7").
/// `corpus` is one with data.chat. Throws DataError: a file that is missing or not NAME.jsonl, a line that is
/// no conversation, no conversations.
void visit_conversations(
    Corpus& corpus, Split split,
    const std::function<void(Conversation conversation, const std::string& place)>& visit);

/// Conversations as tokens; rows of the two stores correspond.
struct TokenizedConversations {
  TokenStore tokens;
  TokenStore answers;                      // EncodedConversation::answers
  std::vector<int64_t> answer_bytes = {};  // of each conversation
  int64_t n_without_answer = 0;            // conversations that were left out
};

/// The conversations of `split` by the tokenizer's own template. Conversations without an answer are left
/// out. The tokens are cached (tokenizers/token_cache.h). Throws DataError
/// as visit_conversations() and ChatTemplate::encode_answers(), and if there is no template.
TokenizedConversations tokenize_conversations(Corpus& corpus, Split split, const Tokenizer& tokenizer);

}  // namespace zoo

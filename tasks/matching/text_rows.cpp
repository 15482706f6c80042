#include "tasks/matching/text_rows.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "generation/prompt.h"
#include "text/batches/padded_rows.h"

namespace zoo {

std::vector<int64_t> text_row(const Tokenizer& tokenizer, const std::string& text, int64_t most_tokens) {
  auto frame = tokenizer.frame();
  if (!frame) {
    const int64_t end = tokenizer.special().eos;
    if (end < 0) throw DataError("the tokenizer has no <eos>: this kind of model needs it behind a text");
    frame = TextFrame{.before = {}, .between = {}, .after = {end}};
  }
  const auto ids = tokenizer.encode(part_to_read(text, most_tokens, frame->cut_at));
  const int64_t room = std::max<int64_t>(most_tokens - frame->n_tokens(), 0);
  const auto kept = frame->kept(ids, std::min<int64_t>(std::ssize(ids), room));
  return framed(*frame, {kept.begin(), kept.end()});
}

TokenBatch text_batch(const Tokenizer& tokenizer, const std::vector<std::vector<int64_t>>& rows) {
  // Without a <pad>, padding can be any token, because nothing looks at it.
  return padded(rows, std::max<int64_t>(tokenizer.special().pad, 0));
}

}  // namespace zoo

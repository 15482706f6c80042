#pragma once
// A conversation with a model.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "checkpoints/run.h"
#include "generation/generation_config.h"
#include "generation/generator.h"
#include "text/chat_template.h"

namespace zoo {

struct ChatOptions {
  std::optional<std::string> system;
  MarksInMessages marks = MarksInMessages::text;
  std::filesystem::path base = {};  // as Run::open() got it
};

/// What was said, and the model that answers.
class Chat {
 public:
  /// Throws DataError if the run has no chat template, UsageError if its model does not continue texts.
  /// Does not own its arguments.
  Chat(const Run& run, const GenerationConfig& generation, const ChatOptions& options);

  /// Answers a message of the user, to standard output as it is written, and keeps both. `is_interrupted` is
  /// asked after each piece: if it says so, the answer ends there; one without a text is not kept, nor is its
  /// message. Throws DataError, and then keeps neither.
  void answer(
      std::string message, uint64_t number,
      const std::function<bool()>& is_interrupted = [] { return false; });
  /// The same without writing.
  Generation answer_at_once(std::string message);
  /// Begins again, with the system prompt.
  void clear();

 private:
  TokenIds prompt(std::string message) const;

  const GenerationConfig& generation_;
  ChatOptions options_;
  ChatTemplate template_;
  const Tokenizer& tokenizer_;
  int64_t max_length_;
  Generator generator_;
  nlohmann::ordered_json messages_;
};

/// A conversation on a terminal, until /exit or Ctrl-D. Ctrl-C ends an answer (Interrupts).
void converse_with(Chat& chat, size_t most_bytes);

}  // namespace zoo

#pragma once
// A request for texts, and what comes back while they are written.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "generation/generator.h"
#include "generation/log_probabilities.h"

namespace zoo {

/// Whether a prompt is given back before its outputs.
enum class PromptEcho { none, text, text_and_logprobs };

/// A text, or tokens that are read as they are.
using Prompt = std::variant<std::string, TokenIds>;

struct CompletionRequest {
  std::vector<Prompt> prompts = {};
  /// options.num_samples outputs for each prompt, without beams. options.max_new_tokens may be 0: the prompts
  /// are only read.
  GenerationConfig options = {};
  FormedParts parts = {};                          // of each output
  int64_t n_likeliest = 0;                         // how many of the likeliest tokens come with each token
  TokenLogprobs logprobs = TokenLogprobs::wanted;  // otherwise those of tokens may be NaN
  PromptEcho echo = PromptEcho::none;
  int64_t priority = 0;     // of the requests that wait, those with a lower one are begun earlier
  std::string client = {};  // who asks, so that none takes all places; "": the program itself, which may
};

/// A token of a prompt or of an output.
struct CompletionToken {
  int64_t id = -1;
  /// By the model itself, before temperature and other rules; nothing for the first token that a model reads.
  std::optional<double> logprob = {};
  std::vector<TokenLogprob> likeliest = {};
};

/// The newest part of an output.
struct CompletionPiece {
  size_t prompt = 0, sample = 0;
  /// Joined, the texts of an output's pieces are its text.
  std::string text = {};
  std::vector<CompletionToken> tokens = {};  // end tokens are not among them
  std::optional<OutputEnd> end = {};         // of the last piece
  bool is_echo = false;                      // whether it is the prompt, which comes first
};

struct CompletionUsage {
  int64_t prompt_tokens = 0, output_tokens = 0;
};

/// How a client hears of its request. The functions are called by the compute thread and must return soon.
/// Either on_end or on_error is the last call, unless the request is cancelled: then nothing more is called.
struct CompletionListener {
  std::function<void(CompletionPiece)> on_piece;
  std::function<void(const CompletionUsage&)> on_end;
  std::function<void(const std::exception_ptr&)> on_error;
};

/// Lets a client give up. A request that is cancelled leaves its place to others with the next step.
class Cancellation {
 public:
  void request() { requested_ = true; }
  bool requested() const { return requested_; }

 private:
  std::atomic<bool> requested_ = false;
};

}  // namespace zoo

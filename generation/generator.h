#pragma once
// Text from a model: prompts in, continuations (decoder) or answers (encoder-decoder) out.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/text/tokenizer.h"
#include "generation/generation_config.h"
#include "generation/text_stream.h"
#include "models/model.h"

namespace zoo {

using GenerateOptions = GenerationConfig;

/// One generated text.
struct Output {
  TokenIds ids;      // generated tokens; the last one is eos if that was reached
  std::string text;  // of these tokens alone; prompt + text is the whole where the model continues prompts
  std::vector<double>
      logprobs;      // of each token by the model itself, before temperature and the like; natural log
  double score = 0;  // Σ logprobs / length^length_penalty
};

/// What came of one prompt.
struct Generation {
  TokenIds prompt_ids;  // as given, without what the generator adds
  std::vector<Output> outputs;
};

/// Generates from any model that has a generative side.
///
/// A decoder reads the tokens of the prompt as they are; an empty one is begun with eos, after which
/// documents begin in training; else bos, else a line break, else the first token. An encoder-decoder reads
/// the prompt and eos. Special tokens other than eos are never generated. An output ends with eos, after
/// max_new_tokens, or in an encoder-decoder after the model's max_length(); a decoder goes on beyond that,
/// see SequenceReader.
///
/// What comes out for a prompt depends on the options and on its index among the prompts, not on the other
/// prompts. With temperature 0 the likeliest token is taken; with beam > 1 temperature, top_k and top_p have
/// no meaning.
class Generator {
 public:
  /// Throws UsageError where the model does not generate (a classifier, a masked language model).
  Generator(std::shared_ptr<Model> model, std::shared_ptr<const Tokenizer> tokenizer);
  /// The same of what others own and keep for longer than this object and its streams.
  Generator(Model& model, const Tokenizer& tokenizer);

  /// One Generation a prompt, each with num_samples outputs, best first under beam search (where it may be
  /// fewer if there are not that many). Throws UsageError on options out of range, DataError on a token id
  /// outside the vocabulary and on a source longer than the model reads, CheckpointError where the model's
  /// logits are NaN.
  std::vector<Generation> generate(const std::vector<TokenIds>& prompts,
                                   const GenerateOptions& options = {}) const;
  /// The same from text. Throws DataError as Tokenizer::encode() does.
  std::vector<Generation> generate(const std::vector<std::string>& prompts,
                                   const GenerateOptions& options = {}) const;

  /// One output, piece by piece: `for (const auto& piece : generator.stream("ROMEO:", {.temperature =
  /// 0.8}))`. It is the output that generate() gives as number draw.sample for prompt number draw.prompt.
  /// Throws UsageError where options.beam > 1: beams have no text until the end.
  TextStream stream(const TokenIds& prompt, const GenerateOptions& options = {}, const Draw& draw = {}) const;
  TextStream stream(const std::string& prompt, const GenerateOptions& options = {},
                    const Draw& draw = {}) const;

  /// Whether what is generated goes on from the prompt (decoder) or answers it (encoder-decoder).
  bool continues_prompt() const { return model_->generative()->continues_prompt(); }

 private:
  TokenIds model_input(const TokenIds& prompt, size_t index) const;
  LogitsProcessors processors(const GenerateOptions& options) const;
  SearchLimits limits(const GenerateOptions& options, size_t input_length) const;
  size_t n_together(std::span<const TokenIds> inputs, size_t most, const GenerateOptions& options) const;
  Output output(const Hypothesis& hypothesis, const TokenIds& prompt, const GenerateOptions& options) const;

  std::shared_ptr<Model> model_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace zoo

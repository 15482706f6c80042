#pragma once
// Text from a model: prompts in, continuations (decoder) or answers (encoder-decoder) out.

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "generation/constraints/constraint_cache.h"
#include "generation/constraints/part_constraint.h"
#include "generation/constraints/text_constraint.h"
#include "generation/continuation_decoder.h"
#include "generation/generation_config.h"
#include "generation/rules/repetition.h"
#include "generation/scheduler.h"
#include "generation/text_stream.h"
#include "models/model.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

/// One generated text.
struct Output {
  /// Generated tokens. If generation came to an end, the last one is an end token, or completes a stop text.
  TokenIds ids;
  /// The decoded ids, up to a stop text. If the model continues prompts, prompt + text is the whole text.
  std::string text;
  /// Natural log-probability of each token by the model itself, before temperature and other processors.
  std::vector<double> logprobs;
  /// Σ logprobs / length^length_penalty. Beams are ranked by the scores that rules have changed, so with
  /// forced tokens or penalties a lower score may come first.
  double score = 0;
  OutputEnd end = OutputEnd::end_token;
  /// Tokens that were proposed, and those that were accepted (generation/speculation.h).
  int64_t n_proposed = 0, n_accepted = 0;
};

/// The outputs for one prompt.
struct Generation {
  TokenIds prompt_ids;  // as given, without the tokens that the generator adds
  std::vector<Output> outputs;
};

/// What a request says of parts of its outputs.
struct FormedParts {
  ShownTokens shown = {};             // as a reader of the outputs sees them
  std::optional<PartForm> form = {};  // nothing: they are free
};

/// Generates text with any generative model.
///
/// A decoder reads the prompt's tokens unchanged; those of a text include what Tokenizer::frame() puts before
/// it. An empty prompt becomes eos, because documents follow eos in training; without eos it becomes bos,
/// else a line break, else the first token. An encoder-decoder reads the prompt in the vocabulary's frame, or
/// the prompt and eos. A model that answers gives empty outputs without tokens for an empty prompt.
/// Tokenizer::never_generated() and suppress_tokens are never generated. An output ends with an end token,
/// before a stop text, or after most_new_tokens(); in an encoder-decoder also after the model's max_length().
/// A decoder continues beyond that length, see SequenceReader.
///
/// The outputs for a prompt depend on the options and on its index among the prompts, not on the other
/// prompts. With temperature 0 the likeliest token is taken. With beam > 1, temperature, top_k, top_p, min_p,
/// typical_p and the cut-offs have no effect. Penalties and no_repeat_ngram_size always have. A model that
/// reads recordings takes no prompts, see transcribe().
///
/// With options.regex or options.json_schema, the text of every output that ends with an end token or is
/// complete matches it. What a decoder writes after a prompt matches, not the prompt. Rules that would leave
/// no token that leads on, such as min_new_tokens, do not count there. One that is long enough for a stop
/// text or for max_new_tokens may end in the middle. Throws UsageError for an expression or a schema that is
/// wrong, not supported, or that the vocabulary cannot write.
class Generator {
 public:
  /// The arguments must outlive this object and its streams. Throws UsageError if the model does not generate
  /// (a classifier, a masked language model).
  Generator(Model& model, const Tokenizer& tokenizer);

  /// A smaller decoder with the same vocabulary, which proposes options.draft_tokens tokens for each step of
  /// greedy search and sampling (generation/speculation.h). Greedy outputs stay the same, drawn ones are
  /// distributed as before. It must outlive this object. Throws UsageError if the models do not fit.
  void use_draft(Model& draft);
  /// Whether proposed tokens can be taken back: prompt_lookup and a draft model need it. The first call reads
  /// a token, so a program that computes on one thread makes it there.
  bool keeps_every_token() const;

  /// Returns one Generation per prompt, each with num_samples outputs; with beam search the best first, and
  /// fewer if it finds fewer. Throws UsageError if options are out of range, DataError if a token id is
  /// outside the vocabulary or a source is too long for the model, CheckpointError if the logits are NaN.
  std::vector<Generation> generate(const std::vector<TokenIds>& prompts,
                                   const GenerationConfig& options = {}) const;
  /// What recordings say: one Generation for each of the B rows of `recordings`, whose fields a model that
  /// reads recordings takes (GenerativeModel::reads_recordings()). Each output begins behind
  /// options.start_tokens, which are the `prompt_ids`. Throws UsageError if the model reads texts, or for
  /// prompt_lookup, and as generate().
  std::vector<Generation> transcribe(const Batch& recordings, const GenerationConfig& options = {}) const;
  /// generate() for texts. Also throws DataError where Tokenizer::encode() and check_prompt_size() do.
  std::vector<Generation> generate(const std::vector<std::string>& prompts,
                                   const GenerationConfig& options = {}) const;

  /// One output, piece by piece: `for (const auto& piece : generator.stream("ROMEO:", {.temperature =
  /// 0.8}))`. generate() gives the same output as number draw.sample for prompt number draw.prompt.
  /// Throws UsageError if options.beam > 1: beam search has no text until its end.
  TextStream stream(const TokenIds& prompt, const GenerationConfig& options = {},
                    const Draw& draw = {}) const;
  TextStream stream(const std::string& prompt, const GenerationConfig& options = {},
                    const Draw& draw = {}) const;

  // For programs that drive a Scheduler of their own, such as a server: what generate() does with a prompt,
  // in parts. They may be called from several threads.

  /// The tokens of a prompt, as generate() has them for a text. Throws DataError likewise.
  TokenIds encode(const std::string& prompt) const;
  /// A request for options.num_samples outputs that continue or answer `prompt`, whose number selects its
  /// random numbers. Throws as generate() does, and UsageError if options.beam > 1.
  GenerationRequest request(const TokenIds& prompt, const GenerationConfig& options,
                            uint64_t number = 0) const;
  /// The same for outputs whose parts have forms of their own; options.regex and options.json_schema must be
  /// empty. Parts whose texts the vocabulary cannot write, or that are too many, stay free; throws UsageError
  /// if the whole output is such a part.
  GenerationRequest request(const TokenIds& prompt, const GenerationConfig& options, uint64_t number,
                            const FormedParts& parts) const;
  /// Turns the tokens of an output for `prompt` into text.
  ContinuationDecoder decoder(const TokenIds& prompt, const GenerationConfig& options,
                              const ShownTokens& shown = {}) const;
  /// An output for `prompt`.
  Output output(const Hypothesis& hypothesis, const TokenIds& prompt, const GenerationConfig& options) const;

  /// Whether the output continues the prompt (decoder). Otherwise it answers the prompt (encoder-decoder).
  bool continues_prompt() const { return model_.generative()->continues_prompt(); }

 private:
  /// A prompt that a model reads.
  struct Input {
    size_t number;                // of the prompt, among all prompts
    TokenIds ids;                 // as the model reads it
    ContinuationDecoder decoder;  // of its outputs
    BatchFields fields = {};      // of one row, if the model reads recordings
  };

  bool has_nothing_to_answer(const TokenIds& prompt) const;
  TokenIds input_ids(const TokenIds& prompt, size_t index, const GenerationConfig& options) const;
  /// The first token of an output, if it is given.
  std::optional<int64_t> first_token(const GenerationConfig& options) const;
  /// The tokens that end an output.
  TokenIds ends(const GenerationConfig& options) const;
  SaidTokens said() const;
  void check_ids(const GenerationConfig& options) const;
  std::vector<TokenIds> forbidden_sequences(const GenerationConfig& options) const;
  std::shared_ptr<RequestConstraint> constraint(const GenerationConfig& options) const;
  std::shared_ptr<TokenConstraint> part_constraint(const GenerationConfig& options,
                                                   const FormedParts& parts) const;
  TokenIds unused(const GenerationConfig& options) const;
  OutputText output_text() const {
    return continues_prompt() ? OutputText::continues_prompt : OutputText::stands_alone;
  }
  LogitsProcessors processors(const GenerationConfig& options,
                              std::shared_ptr<TokenConstraint> constraint) const;
  std::shared_ptr<const TokenRules> rules(const GenerationConfig& options,
                                          std::shared_ptr<TokenConstraint> constraint) const;
  GenerationRequest request(const Input& input, const GenerationConfig& options,
                            const std::shared_ptr<RequestConstraint>& constraint,
                            const std::shared_ptr<const TokenRules>& rules) const;
  SearchLimits limits(const GenerationConfig& options, size_t input_length,
                      const std::shared_ptr<RequestConstraint>& constraint = {}) const;
  void search(const std::vector<Input>& inputs, const GenerationConfig& options,
              std::vector<Generation>& to) const;
  std::vector<std::vector<Hypothesis>> search_by_sampling(const std::vector<Input>& inputs,
                                                          const GenerationConfig& options) const;
  std::vector<std::vector<Hypothesis>> search_with_beams(const std::vector<Input>& inputs,
                                                         const GenerationConfig& options) const;
  size_t n_together(std::span<const Input* const> inputs, size_t most, const GenerationConfig& options) const;

  Model& model_;
  const Tokenizer& tokenizer_;
  Model* draft_ = nullptr;  // null if there is none
  struct KeepsTokens {
    std::once_flag once;
    bool value = false;
  };
  std::shared_ptr<KeepsTokens> keeps_tokens_ = std::make_shared<KeepsTokens>();
  static constexpr size_t kKeptConstraints = 8;
  std::shared_ptr<ConstraintCache> constraints_ = std::make_shared<ConstraintCache>(kKeptConstraints);
};

}  // namespace zoo

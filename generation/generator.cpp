#include "generation/generator.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "generation/beam_search.h"
#include "generation/languages.h"
#include "generation/prompt.h"
#include "generation/rules/constrained_tokens.h"
#include "generation/rules/repetition.h"
#include "generation/rules/token_rule_types.h"
#include "generation/scheduler.h"
#include "models/inference_scope.h"

namespace zoo {
namespace {

std::unique_ptr<const Sampler> make_sampler(const GenerationConfig& options) {
  if (options.temperature == 0) return std::make_unique<GreedySampler>();
  return std::make_unique<RandomSampler>(static_cast<uint64_t>(options.seed));
}

bool takes_tokens_back(Model& model) {
  if (model.generative()->reads_recordings()) return false;
  const torch::NoGradGuard no_grad;
  const TokenBatch some{.ids = torch::zeros({1, 1}, torch::dtype(torch::kInt64).device(model.device()))};
  return model.generative()->begin({.input = some}).keeps_every_token();
}

/// Proposed tokens that are refused must be taken back.
[[noreturn]] void refuse_proposals(std::string_view what) {
  throw UsageError(fmt::format(
      "{}: proposed tokens need a model whose layers keep every token, and this one has windows or running "
      "states: leave it out",
      what));
}

/// The fields of several rows, one below the other.
BatchFields joined(std::span<const BatchFields* const> rows) {
  BatchFields result;
  for (const auto& [name, first] : *rows.front()) {
    std::vector<torch::Tensor> tensors;
    for (const auto* const row : rows) tensors.push_back(row->at(name));
    result.emplace(name, torch::cat(tensors));
  }
  return result;
}

/// The most tokens of an output, by the number of tokens that a model reads before it.
class LengthLimit {
 public:
  LengthLimit(const GenerationConfig& options, const GenerativeModel& model)
      : lengths_{.max_new_tokens = options.max_new_tokens, .max_length = options.max_length},
        continues_prompt_(model.continues_prompt()),
        sequence_has_prompt_(model.sequence_has_prompt()),
        max_length_(model.max_length()) {}

  /// Throws UsageError if max_length leaves no room.
  int64_t operator()(int64_t input_length) const {
    if (continues_prompt_) return most_new_tokens(lengths_, input_length);  // the reader shortens sequences
    return std::min(most_new_tokens(lengths_, 1), max_length_ - (sequence_has_prompt_ ? input_length : 0));
  }

 private:
  GenerationConfig lengths_;
  bool continues_prompt_, sequence_has_prompt_;
  int64_t max_length_;
};

/// Bytes for the states of what several prompts begin with.
constexpr int64_t kPrefixBytes = 256 << 20;

}  // namespace

Generator::Generator(Model& model, const Tokenizer& tokenizer) : model_(model), tokenizer_(tokenizer) {
  if (!model_.generative()) {
    throw UsageError("this model does not generate text: it was trained to classify or to fill masks");
  }
}

void Generator::use_draft(Model& draft) {
  if (!draft.generative() || !draft.generative()->continues_prompt() || !continues_prompt())
    throw UsageError("a draft model and the model must both be decoders that continue texts");
  if (draft.n_outputs() != model_.n_outputs()) {
    throw UsageError(fmt::format("the draft model has {} outputs and the model {}: they need one vocabulary",
                                 draft.n_outputs(), model_.n_outputs()));
  }
  if (!keeps_every_token()) refuse_proposals("the model");
  if (!takes_tokens_back(draft)) refuse_proposals("the draft model");
  draft.eval();
  draft_ = &draft;
}

bool Generator::keeps_every_token() const {
  std::call_once(keeps_tokens_->once, [&] { keeps_tokens_->value = takes_tokens_back(model_); });
  return keeps_tokens_->value;
}

TokenIds Generator::encode(const std::string& prompt) const {
  return encode_prompt(tokenizer_, prompt, *model_.generative());
}

TokenIds Generator::input_ids(const TokenIds& prompt, size_t index, const GenerationConfig& options) const {
  check_prompt_ids(prompt, tokenizer_, index);
  model_.check_tokens(prompt);
  const auto& language = options.source_language;
  if (language && continues_prompt())
    throw UsageError("source_language: this model translates nothing: leave it out");
  const auto frame = language ? frame_in_language(tokenizer_, *language) : tokenizer_.frame();
  return model_input(prompt, tokenizer_, *model_.generative(), fmt::format("prompt {}", index + 1), frame);
}

std::optional<int64_t> Generator::first_token(const GenerationConfig& options) const {
  if (!options.target_language) return options.forced_first_token;
  if (continues_prompt()) throw UsageError("target_language: this model translates nothing: leave it out");
  const int64_t start = decoder_start(tokenizer_.special());
  if (start >= 0 && is_language(tokenizer_, start)) {
    throw UsageError(fmt::format(
        "target_language: outputs of this model begin with {}, which is a part of the model: leave it out",
        tokenizer_.label(start)));
  }
  return language_token(tokenizer_, *options.target_language);
}

TokenIds Generator::ends(const GenerationConfig& options) const {
  const bool has_form = !options.regex.empty() || !options.json_schema.empty();
  return options.ignore_eos && !has_form ? TokenIds() : end_tokens(tokenizer_.special());
}

/// What transformers has before an output: the prompt that it continues, or what a decoder reads first.
SaidTokens Generator::said() const {
  if (continues_prompt()) return PresentTokens::in_prompt_or_output;
  const int64_t start = decoder_start(tokenizer_.special());
  auto first = start >= 0 ? TokenIds{start} : TokenIds();
  return {
      model_.generative()->reads_recordings() ? PresentTokens::in_prompt_or_output : PresentTokens::in_output,
      std::move(first)};
}

/// A word may begin a text, follow a blank, or continue a word: it has different tokens.
std::vector<TokenIds> Generator::forbidden_sequences(const GenerationConfig& options) const {
  std::vector<TokenIds> words;
  for (const auto& text : options.bad_words) {
    for (auto& ids :
         {tokenizer_.encode(text), tokenizer_.encode_continuation(text), tokenizer_.encode(" " + text)}) {
      if (!ids.empty() && std::ranges::find(words, ids) == words.end()) words.push_back(ids);
    }
  }
  for (const auto& [tokens, bias] : options.sequence_biases) {
    if (!bias) words.push_back(tokens);
  }
  return words;
}

/// Throws UsageError if an option names a token that the vocabulary lacks.
void Generator::check_ids(const GenerationConfig& options) const {
  TokenIds named;
  const auto add = [&](const TokenIds& ids) { named.insert(named.end(), ids.begin(), ids.end()); };
  add(options.suppress_tokens);
  add(options.suppress_first_tokens);
  add(options.start_tokens);
  for (const auto& sequence : options.sequence_biases) add(sequence.tokens);
  for (const auto& forced : {options.forced_first_token, options.forced_last_token}) {
    if (forced) named.push_back(*forced);
  }
  for (const int64_t id : named) {
    if (id < 0 || id >= tokenizer_.vocab_size()) {
      throw UsageError(fmt::format("generation: {} is not a token id: this vocabulary has 0 to {}", id,
                                   tokenizer_.vocab_size() - 1));
    }
  }
}

// In the order of transformers, except that tokens which are never generated are left out first: a token that
// is forced is possible though it is among them.
LogitsProcessors Generator::processors(const GenerationConfig& options,
                                       std::shared_ptr<TokenConstraint> constraint) const {
  check_ids(options);
  LogitsProcessors list;
  const auto said = this->said();
  const auto ends = this->ends(options);
  const auto add = [&]<class Rule>(Rule rule) { list.push_back(std::make_unique<Rule>(std::move(rule))); };
  auto suppressed = tokenizer_.never_generated();
  suppressed.insert(suppressed.end(), options.suppress_tokens.begin(), options.suppress_tokens.end());
  add(SuppressTokens(suppressed, tokenizer_.vocab_size(), model_.device()));
  std::vector<BiasedSequence> biases;
  for (const auto& [tokens, bias] : options.sequence_biases) {
    if (bias) biases.push_back({.tokens = tokens, .bias = *bias});
  }
  if (!biases.empty()) add(SequenceBiases(std::move(biases), said));
  const bool reads_texts = !model_.generative()->reads_recordings();
  if (options.encoder_repetition_penalty != 1 && reads_texts)
    add(RepetitionPenalty(1 / options.encoder_repetition_penalty, PresentTokens::in_prompt));
  if (options.repetition_penalty != 1) add(RepetitionPenalty(options.repetition_penalty, said));
  if (options.presence_penalty != 0 || options.frequency_penalty != 0)
    add(OccurrencePenalty(options.presence_penalty, options.frequency_penalty));
  if (options.no_repeat_ngram_size > 0) add(NoRepeatNgram(options.no_repeat_ngram_size, said));
  if (options.encoder_no_repeat_ngram_size > 0 && reads_texts)
    add(NoCopiedNgram(options.encoder_no_repeat_ngram_size, said));
  if (auto words = forbidden_sequences(options); !words.empty()) add(BadWords(std::move(words), said));
  if (const int64_t least = options.min_length; least > 0) {
    add(ForbiddenTokens(ends, [=](const SequenceView& row) {
      return said.n_before(row) + std::ssize(row.generated) < least;
    }));
  }
  if (const int64_t least = options.min_new_tokens; least > 0)
    add(ForbiddenTokens(ends, [=](const SequenceView& row) { return std::ssize(row.generated) < least; }));
  const auto first = first_token(options);
  const bool forces_first = first.has_value();
  const auto has_room_for_first = [=](const SequenceView& row) { return said.n_before(row) <= 1; };
  if (forces_first) {
    add(ForcedToken(
        *first, [=](const SequenceView& row) { return row.generated.empty() && has_room_for_first(row); }));
  }
  if (options.forced_last_token) {
    add(ForcedToken(*options.forced_last_token,
                    [limit = LengthLimit(options, *model_.generative())](const SequenceView& row) {
                      return std::ssize(row.generated) + 1 == limit(std::ssize(row.prompt));
                    }));
  }
  if (const auto& decay = options.exponential_decay_length_penalty; !decay.empty())
    add(LengthDecay(decay[0], decay[1], ends));
  if (!options.suppress_first_tokens.empty()) {
    add(ForbiddenTokens(options.suppress_first_tokens, [=](const SequenceView& row) {
      return std::ssize(row.generated) == (forces_first && has_room_for_first(row) ? 1 : 0);
    }));
  }
  for (const auto& rule : options.rules) {
    list.push_back(token_rule_types().at(rule).make(
        rule, {.tokenizer = tokenizer_, .ends = ends, .device = model_.device()}));
  }
  if (constraint) {
    auto constrained = std::make_unique<ConstrainedTokens>(std::move(constraint), std::move(list));
    list = LogitsProcessors();
    list.push_back(std::move(constrained));
  }
  if (options.beam == 1 && options.temperature > 0) {
    add(Temperature(options.temperature));
    if (options.top_k > 0) add(TopK(options.top_k));
    if (options.top_p < 1) add(TopP(options.top_p));
    if (options.min_p > 0) add(MinP(options.min_p));
    if (options.typical_p < 1) add(TypicalP(options.typical_p));
    if (options.epsilon_cutoff > 0) add(EpsilonCutoff(options.epsilon_cutoff));
    if (options.eta_cutoff > 0) add(EtaCutoff(options.eta_cutoff));
  }
  if (options.renormalize_logits) add(Renormalised());
  return list;
}

SearchLimits Generator::limits(const GenerationConfig& options, size_t input_length,
                               const std::shared_ptr<RequestConstraint>& constraint) const {
  SearchLimits limits{
      .max_new_tokens = LengthLimit(options, *model_.generative())(static_cast<int64_t>(input_length)),
      .ends = ends(options)};
  if (constraint && limits.ends.empty()) {
    limits.is_complete = [constraint](std::span<const int64_t> prompt, std::span<const int64_t> ids) {
      return constraint->is_complete(prompt, ids);
    };
  }
  return limits;
}

std::shared_ptr<const TokenRules> Generator::rules(const GenerationConfig& options,
                                                   std::shared_ptr<TokenConstraint> constraint) const {
  return std::make_shared<TokenRules>(
      TokenRules{.processors = processors(options, std::move(constraint)), .sampler = make_sampler(options)});
}

/// A request without outputs for now.
GenerationRequest Generator::request(const Input& input, const GenerationConfig& options,
                                     const std::shared_ptr<RequestConstraint>& constraint,
                                     const std::shared_ptr<const TokenRules>& rules) const {
  GenerationRequest request{.prompt = input.ids,
                            .rules = rules,
                            .limits = limits(options, input.ids.size(), constraint),
                            .draws = {},
                            .fields = input.fields};
  if (!options.stop.empty()) request.limits.decoders.push_back(input.decoder);
  if (draft_ && options.prompt_lookup > 0)
    throw UsageError("prompt_lookup contradicts the draft model: tokens are proposed in one way");
  if (draft_) {
    request.n_proposed = options.draft_tokens;
    request.make_proposer = [draft = draft_, rules] {
      return std::make_unique<DraftModel>(*draft->generative(), draft->device(), rules);
    };
  } else if (options.prompt_lookup > 0) {
    if (!keeps_every_token()) refuse_proposals("prompt_lookup");
    request.n_proposed = options.prompt_lookup;
    request.make_proposer = [] { return std::make_unique<PromptLookup>(); };
  }
  return request;
}

/// The samples of each prompt.
std::vector<std::vector<Hypothesis>> Generator::search_by_sampling(const std::vector<Input>& inputs,
                                                                   const GenerationConfig& options) const {
  Scheduler scheduler(
      *model_.generative(), model_.device(),
      {.most_rows = options.batch_size, .prefix_bytes = inputs.size() > 1 ? kPrefixBytes : 0});
  const auto constraint = this->constraint(options);
  const auto shared = rules(options, constraint);
  std::vector<size_t> requests;
  for (const auto& input : inputs) {
    auto asked = request(input, options, constraint, shared);
    for (int64_t s = 0; s < options.num_samples; ++s)
      asked.draws.push_back({.prompt = input.number, .sample = static_cast<uint64_t>(s)});
    requests.push_back(scheduler.submit(std::move(asked)));
  }
  while (scheduler.step()) {
    for (const size_t request : requests) scheduler.require(request);
  }
  std::vector<std::vector<Hypothesis>> result;
  for (const size_t request : requests) result.push_back(scheduler.take(request));
  return result;
}

/// How many prompts from the front of `inputs`, sorted by length, go into one batch: at most `most`. If their
/// length limits the answers, a batch has prompts of one length.
size_t Generator::n_together(std::span<const Input* const> inputs, size_t most,
                             const GenerationConfig& options) const {
  const size_t n = std::min(most, inputs.size());
  const size_t longest = inputs[n - 1]->ids.size(), shortest = inputs.front()->ids.size();
  if (limits(options, longest).max_new_tokens == limits(options, shortest).max_new_tokens) return n;
  return static_cast<size_t>(
      std::ranges::find_if(inputs.first(n),
                           [&](const Input* input) { return input->ids.size() != shortest; }) -
      inputs.begin());
}

/// The hypotheses for each prompt, best first.
std::vector<std::vector<Hypothesis>> Generator::search_with_beams(const std::vector<Input>& inputs,
                                                                  const GenerationConfig& options) const {
  // Prompts of similar length share a batch: this saves padding.
  std::vector<const Input*> sorted;
  for (const auto& input : inputs) sorted.push_back(&input);
  std::ranges::stable_sort(sorted, {}, [](const Input* input) { return input->ids.size(); });
  const auto constraint = this->constraint(options);
  const auto processors = this->processors(options, constraint);
  const auto most_together = static_cast<size_t>(
      std::max<int64_t>(1, options.batch_size / std::max(options.beam, options.num_samples)));
  std::vector<std::vector<Hypothesis>> result(inputs.size());
  for (size_t begin = 0, n = 0; begin < sorted.size(); begin += n) {
    n = n_together(std::span(sorted).subspan(begin), most_together, options);
    const auto batch = std::span(sorted).subspan(begin, n);
    auto limit = limits(options, batch.back()->ids.size(), constraint);
    std::vector<TokenIds> prompts;
    std::vector<const BatchFields*> fields;
    for (const auto* const input : batch) {
      prompts.push_back(input->ids);
      fields.push_back(&input->fields);
      if (!options.stop.empty()) limit.decoders.push_back(input->decoder);
    }
    auto found = beam_search(*model_.generative(), model_.device(), prompts, processors, limit,
                             {.beams = options.beam,
                              .length_penalty = options.length_penalty,
                              .early_stopping = options.early_stopping,
                              .patience = options.patience,
                              .groups = options.beam_groups,
                              .diversity_penalty = options.diversity_penalty},
                             joined(fields));
    for (size_t i = 0; i < n; ++i)
      result[static_cast<size_t>(batch[i] - inputs.data())] = std::move(found[i]);
  }
  return result;
}

ContinuationDecoder Generator::decoder(const TokenIds& prompt, const GenerationConfig& options,
                                       const ShownTokens& shown) const {
  return {tokenizer_, continues_prompt() ? prompt : TokenIds(), options.stop, shown};
}

Output Generator::output(const Hypothesis& hypothesis, const TokenIds& prompt,
                         const GenerationConfig& options) const {
  auto text = decoder(prompt, options);
  Output result{.ids = hypothesis.ids,
                .text = {},
                .logprobs = hypothesis.logprobs,
                .score = length_normalised(hypothesis, options.length_penalty),
                .end = hypothesis.end.value_or(OutputEnd::length),
                .n_proposed = hypothesis.n_proposed,
                .n_accepted = hypothesis.n_accepted};
  for (const int64_t id : hypothesis.ids) result.text += text.push(id);
  result.text += text.finish();
  return result;
}

bool Generator::has_nothing_to_answer(const TokenIds& prompt) const {
  return prompt.empty() && !continues_prompt() && !model_.generative()->reads_recordings();
}

std::vector<Generation> Generator::generate(const std::vector<TokenIds>& prompts,
                                            const GenerationConfig& options) const {
  check(options);
  const InferenceScope scope(model_);
  std::vector<Generation> result(prompts.size());
  std::vector<Input> inputs;
  for (size_t i = 0; i < prompts.size(); ++i) {
    result[i].prompt_ids = prompts[i];
    if (has_nothing_to_answer(prompts[i])) {
      result[i].outputs.resize(static_cast<size_t>(options.num_samples));
    } else {
      inputs.push_back(
          {.number = i, .ids = input_ids(prompts[i], i, options), .decoder = decoder(prompts[i], options)});
    }
  }
  search(inputs, options, result);
  return result;
}

/// Adds the outputs for `inputs` to the generations of their numbers.
void Generator::search(const std::vector<Input>& inputs, const GenerationConfig& options,
                       std::vector<Generation>& to) const {
  const auto found =
      options.beam > 1 ? search_with_beams(inputs, options) : search_by_sampling(inputs, options);
  for (size_t p = 0; p < inputs.size(); ++p) {
    auto& generation = to[inputs[p].number];
    const size_t n_outputs = std::min(found[p].size(), static_cast<size_t>(options.num_samples));
    for (const auto& hypothesis : std::span(found[p]).first(n_outputs))
      generation.outputs.push_back(output(hypothesis, generation.prompt_ids, options));
  }
}

std::vector<Generation> Generator::transcribe(const Batch& recordings,
                                              const GenerationConfig& options) const {
  check(options);
  const auto& model = *model_.generative();
  if (!model.reads_recordings()) throw UsageError("this model reads texts, not recordings: give it a prompt");
  if (options.prompt_lookup > 0)
    throw UsageError("prompt_lookup: a recording has no text to look tokens up in: leave it out");
  if (std::ssize(options.start_tokens) >= model.max_length()) {
    throw UsageError(
        fmt::format("start_tokens: {} tokens leave no room for an output: the model writes at most {}",
                    options.start_tokens.size(), model.max_length()));
  }
  const InferenceScope scope(model_);
  std::vector<Generation> result(static_cast<size_t>(recordings.n_rows()));
  std::vector<Input> inputs;
  const Batch fields{.fields = recordings.fields};
  for (size_t i = 0; i < result.size(); ++i) {
    result[i].prompt_ids = options.start_tokens;
    inputs.push_back({.number = i,
                      .ids = options.start_tokens,
                      .decoder = decoder({}, options),
                      .fields = take_rows(fields, static_cast<int64_t>(i), 1).fields});
  }
  search(inputs, options, result);
  return result;
}

std::vector<Generation> Generator::generate(const std::vector<std::string>& prompts,
                                            const GenerationConfig& options) const {
  std::vector<TokenIds> ids;
  for (const auto& prompt : prompts) ids.push_back(encode(prompt));
  return generate(ids, options);
}

GenerationRequest Generator::request(const TokenIds& prompt, const GenerationConfig& options,
                                     uint64_t number) const {
  return request(prompt, options, number, FormedParts());
}

GenerationRequest Generator::request(const TokenIds& prompt, const GenerationConfig& options, uint64_t number,
                                     const FormedParts& parts) const {
  check(options);
  if (options.beam > 1) throw UsageError("beam search has no text until its end: stream with beam = 1");
  const Input read{
      .number = number, .ids = input_ids(prompt, number, options), .decoder = decoder(prompt, options)};
  const auto whole = constraint(options);
  auto of_parts = part_constraint(options, parts);
  auto asked =
      request(read, options, whole,
              rules(options, of_parts ? std::move(of_parts) : std::shared_ptr<TokenConstraint>(whole)));
  for (int64_t s = 0; s < options.num_samples; ++s)
    asked.draws.push_back({.prompt = number, .sample = static_cast<uint64_t>(s)});
  if (has_nothing_to_answer(prompt)) asked.limits.max_new_tokens = 0;
  return asked;
}

TextStream Generator::stream(const TokenIds& prompt, const GenerationConfig& options,
                             const Draw& draw) const {
  auto asked = request(prompt, options, draw.prompt);
  asked.draws = {draw};
  asked.logprobs = TokenLogprobs::none;  // nobody sees them in a text
  return TextStream({.model = model_, .decoder = decoder(prompt, options), .request = std::move(asked)});
}

TextStream Generator::stream(const std::string& prompt, const GenerationConfig& options,
                             const Draw& draw) const {
  return stream(encode(prompt), options, draw);
}

}  // namespace zoo

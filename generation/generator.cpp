#include "generation/generator.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "generation/beam_search.h"
#include "generation/prompt.h"
#include "generation/repetition.h"
#include "models/inference_scope.h"

namespace zoo {
namespace {

std::unique_ptr<const Sampler> make_sampler(const GenerationConfig& options) {
  if (options.temperature == 0) return std::make_unique<GreedySampler>();
  return std::make_unique<RandomSampler>(static_cast<uint64_t>(options.seed));
}

/// The token that replaces an empty prompt.
int64_t first_token(const Tokenizer& tokenizer) {
  const auto& special = tokenizer.special();
  if (special.eos >= 0) return special.eos;
  if (special.bos >= 0) return special.bos;
  try {
    const auto line_break = tokenizer.encode("\n");
    if (!line_break.empty() && line_break.back() != special.unk) return line_break.back();
  } catch (const DataError&) {
    // Not in the vocabulary.
  }
  const auto meaningless = tokenizer.never_generated();
  for (int64_t id = 0;; ++id) {
    if (std::ranges::find(meaningless, id) == meaningless.end()) return id;
  }
}

/// What all batches share.
struct Search {
  GenerativeModel& model;
  torch::Device device;
  const LogitsProcessors& rules;
  const Sampler& sampler;
  const GenerationConfig& options;
};

/// The hypotheses for each prompt of a batch, best first.
std::vector<std::vector<Hypothesis>> search_with_beams(const Search& search,
                                                       const std::vector<TokenIds>& inputs,
                                                       const SearchLimits& limit) {
  return beam_search(search.model, search.device, inputs, search.rules, limit,
                     {.beams = search.options.beam,
                      .length_penalty = search.options.length_penalty,
                      .early_stopping = search.options.early_stopping});
}

/// The samples for each prompt of a batch; `numbers` are the prompts' numbers among all prompts.
std::vector<std::vector<Hypothesis>> search_by_sampling(const Search& search,
                                                        const std::vector<TokenIds>& inputs,
                                                        std::span<const size_t> numbers,
                                                        const SearchLimits& limit) {
  std::vector<SampleRow> rows;
  for (size_t p = 0; p < inputs.size(); ++p) {
    for (int64_t s = 0; s < search.options.num_samples; ++s)
      rows.push_back({.prompt = p, .draw = {.prompt = numbers[p], .sample = static_cast<uint64_t>(s)}});
  }
  std::vector<std::vector<Hypothesis>> hypotheses(inputs.size());
  // One prompt can have more samples than fit into a batch.
  const auto most_rows = static_cast<size_t>(search.options.batch_size);
  for (size_t first = 0; first < rows.size(); first += most_rows) {
    const auto some = std::span(rows).subspan(first, std::min(most_rows, rows.size() - first));
    SamplingSearch sampling(search.model, search.device, inputs, {some.begin(), some.end()}, search.rules,
                            search.sampler, limit);
    while (sampling.step()) {
    }
    for (size_t i = 0; i < some.size(); ++i) hypotheses[some[i].prompt].push_back(sampling.outputs()[i]);
  }
  return hypotheses;
}

}  // namespace

Generator::Generator(std::shared_ptr<Model> model, std::shared_ptr<const Tokenizer> tokenizer)
    : model_(std::move(model)), tokenizer_(std::move(tokenizer)) {
  if (!model_->generative()) {
    throw UsageError("this model does not generate text: it was trained to classify or to fill masks");
  }
}

Generator::Generator(Model& model, const Tokenizer& tokenizer)
    : Generator(std::shared_ptr<Model>(std::shared_ptr<void>(), &model),
                std::shared_ptr<const Tokenizer>(std::shared_ptr<void>(), &tokenizer)) {}

TokenIds Generator::encode(const std::string& prompt) const {
  return encode_prompt(*tokenizer_, prompt, *model_->generative());
}

TokenIds Generator::model_input(const TokenIds& prompt, size_t index) const {
  check_prompt_ids(prompt, *tokenizer_, index);
  TokenIds input = prompt;
  if (continues_prompt()) {
    if (input.empty()) input.push_back(first_token(*tokenizer_));
    return input;
  }
  if (const auto frame = tokenizer_->frame()) {
    input = framed(*frame, std::move(input));
  } else if (const int64_t eos = tokenizer_->special().eos; eos >= 0) {
    input.push_back(eos);
  }
  // A sequence that holds the prompt also needs room for at least one token of the answer.
  const bool within = model_->generative()->sequence_has_prompt();
  const int64_t limit = model_->generative()->max_length() - (within ? 1 : 0);
  if (static_cast<int64_t>(input.size()) > limit) {
    throw DataError(
        fmt::format("prompt {} has {} tokens with the end token, and the model reads at most {}: shorten it",
                    index + 1, input.size(), limit));
  }
  return input;
}

/// A word may begin a text, follow a blank, or continue a word: it has different tokens.
std::vector<TokenIds> Generator::tokens_of_bad_words(const GenerationConfig& options) const {
  std::vector<TokenIds> words;
  for (const auto& text : options.bad_words) {
    for (auto& ids :
         {tokenizer_->encode(text), tokenizer_->encode_continuation(text), tokenizer_->encode(" " + text)}) {
      if (!ids.empty() && std::ranges::find(words, ids) == words.end()) words.push_back(ids);
    }
  }
  return words;
}

LogitsProcessors Generator::processors(const GenerationConfig& options) const {
  LogitsProcessors list;
  auto named = options.suppress_tokens;
  for (const auto& forced : {options.forced_first_token, options.forced_last_token}) {
    if (forced) named.push_back(*forced);
  }
  for (const int64_t id : named) {
    if (id < 0 || id >= tokenizer_->vocab_size()) {
      throw UsageError(fmt::format("generation: {} is not a token id: this vocabulary has 0 to {}", id,
                                   tokenizer_->vocab_size() - 1));
    }
  }
  auto suppressed = tokenizer_->never_generated();
  suppressed.insert(suppressed.end(), options.suppress_tokens.begin(), options.suppress_tokens.end());
  list.push_back(std::make_unique<SuppressTokens>(suppressed, tokenizer_->vocab_size(), model_->device()));
  if (options.forced_first_token)
    list.push_back(std::make_unique<ForcedToken>(*options.forced_first_token, 0));
  if (options.forced_last_token)
    list.push_back(std::make_unique<ForcedToken>(*options.forced_last_token, options.max_new_tokens - 1));
  const auto said = continues_prompt() ? PresentTokens::in_prompt_or_output : PresentTokens::in_output;
  if (options.repetition_penalty != 1)
    list.push_back(std::make_unique<RepetitionPenalty>(options.repetition_penalty, said));
  if (options.presence_penalty != 0 || options.frequency_penalty != 0) {
    list.push_back(std::make_unique<OccurrencePenalty>(options.presence_penalty, options.frequency_penalty));
  }
  if (options.no_repeat_ngram_size > 0)
    list.push_back(std::make_unique<NoRepeatNgram>(options.no_repeat_ngram_size, said));
  if (!options.bad_words.empty())
    list.push_back(std::make_unique<BadWords>(tokens_of_bad_words(options), said));
  if (options.min_new_tokens > 0)
    list.push_back(std::make_unique<MinNewTokens>(options.min_new_tokens, end_tokens(tokenizer_->special())));
  const bool samples = options.beam == 1 && options.temperature > 0;
  if (samples) list.push_back(std::make_unique<Temperature>(options.temperature));
  if (samples && options.top_k > 0) list.push_back(std::make_unique<TopK>(options.top_k));
  if (samples && options.top_p < 1) list.push_back(std::make_unique<TopP>(options.top_p));
  if (samples && options.min_p > 0) list.push_back(std::make_unique<MinP>(options.min_p));
  if (samples && options.typical_p < 1) list.push_back(std::make_unique<TypicalP>(options.typical_p));
  return list;
}

SearchLimits Generator::limits(const GenerationConfig& options, size_t input_length) const {
  SearchLimits limits{.max_new_tokens = options.max_new_tokens, .ends = end_tokens(tokenizer_->special())};
  if (continues_prompt()) return limits;  // SequenceReader shortens sequences that become too long
  const auto& model = *model_->generative();
  const int64_t taken = model.sequence_has_prompt() ? static_cast<int64_t>(input_length) : 0;
  limits.max_new_tokens = std::min(limits.max_new_tokens, model.max_length() - taken);
  return limits;
}

/// How many prompts from the front of `inputs`, sorted by length, go into one batch: at most `most`. If their
/// length limits the answers, a batch has prompts of one length.
size_t Generator::n_together(std::span<const TokenIds> inputs, size_t most,
                             const GenerationConfig& options) const {
  const size_t n = std::min(most, inputs.size());
  const size_t longest = inputs[n - 1].size(), shortest = inputs.front().size();
  if (limits(options, longest).max_new_tokens == limits(options, shortest).max_new_tokens) return n;
  return static_cast<size_t>(
      std::ranges::find_if(inputs.first(n), [&](const auto& input) { return input.size() != shortest; }) -
      inputs.begin());
}

ContinuationDecoder Generator::decoder(const TokenIds& prompt, const GenerationConfig& options) const {
  return {*tokenizer_, continues_prompt() ? prompt : TokenIds(), options.stop};
}

Output Generator::output(const Hypothesis& hypothesis, const TokenIds& prompt,
                         const GenerationConfig& options) const {
  auto text = decoder(prompt, options);
  Output result{.ids = hypothesis.ids,
                .text = {},
                .logprobs = hypothesis.logprobs,
                .score = length_normalised(hypothesis, options.length_penalty)};
  for (const int64_t id : hypothesis.ids) result.text += text.push(id);
  result.text += text.finish();
  const auto ends = end_tokens(tokenizer_->special());
  const bool has_end = !result.ids.empty() && std::ranges::find(ends, result.ids.back()) != ends.end();
  result.end = text.stopped() ? OutputEnd::stop_text : has_end ? OutputEnd::end_token : OutputEnd::length;
  return result;
}

bool Generator::has_nothing_to_answer(const TokenIds& prompt) const {
  return prompt.empty() && !continues_prompt();
}

std::vector<Generation> Generator::generate(const std::vector<TokenIds>& prompts,
                                            const GenerationConfig& options) const {
  check(options);
  const InferenceScope scope(*model_);
  std::vector<Generation> result(prompts.size());
  std::vector<std::pair<size_t, TokenIds>> inputs;  // with the number of the prompt
  for (size_t i = 0; i < prompts.size(); ++i) {
    result[i].prompt_ids = prompts[i];
    if (has_nothing_to_answer(prompts[i])) {
      result[i].outputs.resize(static_cast<size_t>(options.num_samples));
    } else {
      inputs.emplace_back(i, model_input(prompts[i], i));
    }
  }
  // Prompts of similar length share a batch: this saves padding.
  std::ranges::stable_sort(inputs, {}, [](const auto& input) { return input.second.size(); });
  std::vector<size_t> order;
  std::vector<TokenIds> sorted;
  for (auto& [i, input] : inputs) {
    order.push_back(i);
    sorted.push_back(std::move(input));
  }

  const auto rules = processors(options);
  const auto sampler = make_sampler(options);
  const Search search{.model = *model_->generative(),
                      .device = model_->device(),
                      .rules = rules,
                      .sampler = *sampler,
                      .options = options};
  const auto most_together = static_cast<size_t>(
      std::max<int64_t>(1, options.batch_size / std::max(options.beam, options.num_samples)));
  for (size_t begin = 0, n = 0; begin < order.size(); begin += n) {
    n = n_together(std::span(sorted).subspan(begin), most_together, options);
    const auto batch = std::span(order).subspan(begin, n);
    const std::vector<TokenIds> batch_inputs(sorted.begin() + static_cast<ptrdiff_t>(begin),
                                             sorted.begin() + static_cast<ptrdiff_t>(begin + n));
    auto limit = limits(options, batch_inputs.back().size());
    for (const size_t i : batch) {
      if (!options.stop.empty()) limit.decoders.push_back(decoder(prompts[i], options));
    }
    const auto hypotheses = options.beam > 1 ? search_with_beams(search, batch_inputs, limit)
                                             : search_by_sampling(search, batch_inputs, batch, limit);
    for (size_t p = 0; p < batch.size(); ++p) {
      const size_t n_outputs = std::min(hypotheses[p].size(), static_cast<size_t>(options.num_samples));
      for (const auto& hypothesis : std::span(hypotheses[p]).first(n_outputs))
        result[batch[p]].outputs.push_back(output(hypothesis, prompts[batch[p]], options));
    }
  }
  return result;
}

std::vector<Generation> Generator::generate(const std::vector<std::string>& prompts,
                                            const GenerationConfig& options) const {
  std::vector<TokenIds> ids;
  for (const auto& prompt : prompts) ids.push_back(encode(prompt));
  return generate(ids, options);
}

TextStream Generator::stream(const TokenIds& prompt, const GenerationConfig& options,
                             const Draw& draw) const {
  check(options);
  if (options.beam > 1) throw UsageError("beam search has no text until its end: stream with beam = 1");
  auto input = model_input(prompt, draw.prompt);
  auto limit = limits(options, input.size());
  if (has_nothing_to_answer(prompt)) limit.max_new_tokens = 0;
  const auto text = decoder(prompt, options);
  if (!options.stop.empty()) limit.decoders.push_back(text);
  return TextStream({.model = model_,
                     .tokenizer = tokenizer_,
                     .prompt = std::move(input),
                     .decoder = text,
                     .processors = processors(options),
                     .sampler = make_sampler(options),
                     .limits = std::move(limit),
                     .draw = draw});
}

TextStream Generator::stream(const std::string& prompt, const GenerationConfig& options,
                             const Draw& draw) const {
  return stream(encode(prompt), options, draw);
}

}  // namespace zoo

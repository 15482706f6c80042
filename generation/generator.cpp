#include "generation/generator.h"

#include <algorithm>
#include <numeric>
#include <span>

#include <fmt/format.h>

#include "base/error.h"
#include "generation/beam_search.h"
#include "generation/special_tokens.h"
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
  const auto meaningless = tokens_without_text(special);
  for (int64_t id = 0;; ++id) {
    if (std::ranges::find(meaningless, id) == meaningless.end()) return id;
  }
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

TokenIds Generator::model_input(const TokenIds& prompt, size_t index) const {
  check_prompt_ids(prompt, *tokenizer_, index);
  TokenIds input = prompt;
  if (continues_prompt()) {
    if (input.empty()) input.push_back(first_token(*tokenizer_));
    return input;
  }
  if (const int64_t eos = tokenizer_->special().eos; eos >= 0) input.push_back(eos);
  if (input.empty())
    throw DataError(fmt::format("prompt {} is empty: there is nothing to answer", index + 1));
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

LogitsProcessors Generator::processors(const GenerationConfig& options) const {
  LogitsProcessors list;
  list.push_back(std::make_unique<SuppressTokens>(tokens_without_text(tokenizer_->special()),
                                                  tokenizer_->vocab_size(), model_->device()));
  const bool samples = options.beam == 1 && options.temperature > 0;
  if (samples) list.push_back(std::make_unique<Temperature>(options.temperature));
  if (samples && options.top_k > 0) list.push_back(std::make_unique<TopK>(options.top_k));
  if (samples && options.top_p < 1) list.push_back(std::make_unique<TopP>(options.top_p));
  return list;
}

SearchLimits Generator::limits(const GenerationConfig& options, size_t input_length) const {
  SearchLimits limits{.max_new_tokens = options.max_new_tokens, .eos = tokenizer_->special().eos};
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

Output Generator::output(const Hypothesis& hypothesis, const TokenIds& prompt,
                         const GenerationConfig& options) const {
  ContinuationDecoder decoder(*tokenizer_, continues_prompt() ? prompt : TokenIds());
  Output result{.ids = hypothesis.ids,
                .text = {},
                .logprobs = hypothesis.logprobs,
                .score = length_normalised(hypothesis, options.length_penalty)};
  for (const int64_t id : hypothesis.ids) result.text += decoder.push(id);
  result.text += decoder.finish();
  return result;
}

std::vector<Generation> Generator::generate(const std::vector<TokenIds>& prompts,
                                            const GenerationConfig& options) const {
  check(options);
  const InferenceScope scope(*model_);
  std::vector<TokenIds> inputs;
  for (const auto& prompt : prompts) inputs.push_back(model_input(prompt, inputs.size()));
  // Prompts of similar length share a batch: this saves padding.
  std::vector<size_t> order(prompts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return inputs[i].size(); });

  const auto rules = processors(options);
  const auto sampler = make_sampler(options);
  const auto device = model_->device();
  auto& model = *model_->generative();
  const auto n_outputs = static_cast<size_t>(options.num_samples);
  const auto most_together = static_cast<size_t>(
      std::max<int64_t>(1, options.batch_size / std::max(options.beam, options.num_samples)));
  std::vector<TokenIds> sorted;
  for (const size_t i : order) sorted.push_back(std::move(inputs[i]));
  std::vector<Generation> result(prompts.size());
  for (size_t begin = 0, n = 0; begin < order.size(); begin += n) {
    n = n_together(std::span(sorted).subspan(begin), most_together, options);
    const auto batch = std::span(order).subspan(begin, n);
    const std::vector<TokenIds> batch_inputs(sorted.begin() + static_cast<ptrdiff_t>(begin),
                                             sorted.begin() + static_cast<ptrdiff_t>(begin + n));
    const auto limit = limits(options, batch_inputs.back().size());
    std::vector<std::vector<Hypothesis>> hypotheses(batch.size());
    if (options.beam > 1) {
      hypotheses = beam_search(model, device, batch_inputs, rules, limit,
                               {.beams = options.beam,
                                .length_penalty = options.length_penalty,
                                .early_stopping = options.early_stopping});
    } else {
      std::vector<SampleRow> rows;
      for (size_t p = 0; p < batch.size(); ++p) {
        for (size_t s = 0; s < n_outputs; ++s)
          rows.push_back({.prompt = p, .draw = {.prompt = batch[p], .sample = s}});
      }
      // One prompt can have more samples than fit into a batch.
      const auto most_rows = static_cast<size_t>(options.batch_size);
      for (size_t first = 0; first < rows.size(); first += most_rows) {
        const std::vector<SampleRow> some(
            rows.begin() + static_cast<ptrdiff_t>(first),
            rows.begin() + static_cast<ptrdiff_t>(std::min(first + most_rows, rows.size())));
        SamplingSearch search(model, device, batch_inputs, some, rules, *sampler, limit);
        while (search.step()) {
        }
        for (size_t i = 0; i < some.size(); ++i) hypotheses[some[i].prompt].push_back(search.outputs()[i]);
      }
    }
    for (size_t p = 0; p < batch.size(); ++p) {
      const auto& prompt = prompts[batch[p]];
      auto& generation = result[batch[p]];
      generation.prompt_ids = prompt;
      hypotheses[p].resize(std::min(hypotheses[p].size(), n_outputs));
      for (const auto& hypothesis : hypotheses[p])
        generation.outputs.push_back(output(hypothesis, prompt, options));
    }
  }
  return result;
}

std::vector<Generation> Generator::generate(const std::vector<std::string>& prompts,
                                            const GenerationConfig& options) const {
  std::vector<TokenIds> ids;
  for (const auto& prompt : prompts) ids.push_back(tokenizer_->encode(prompt));
  return generate(ids, options);
}

TextStream Generator::stream(const TokenIds& prompt, const GenerationConfig& options,
                             const Draw& draw) const {
  check(options);
  if (options.beam > 1) throw UsageError("beam search has no text until its end: stream with beam = 1");
  auto input = model_input(prompt, draw.prompt);
  const auto limit = limits(options, input.size());
  return TextStream({.model = model_,
                     .tokenizer = tokenizer_,
                     .prompt = std::move(input),
                     .context = continues_prompt() ? prompt : TokenIds(),
                     .processors = processors(options),
                     .sampler = make_sampler(options),
                     .limits = limit,
                     .draw = draw});
}

TextStream Generator::stream(const std::string& prompt, const GenerationConfig& options,
                             const Draw& draw) const {
  return stream(tokenizer_->encode(prompt), options, draw);
}

}  // namespace zoo

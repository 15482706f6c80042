#include "generation/generation_config.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "base/error.h"
#include "generation/rules/token_rule_types.h"
#include "generation/speculation.h"
#include "io/config/config_reader.h"
#include "io/config/registry.h"

namespace zoo {
namespace {

constexpr auto kNowhere = Elsewhere::nowhere;
// Said when a model is opened: --weights and --cache.
constexpr Elsewhere kOfTheModel{.flag = kNowhere, .request = kNowhere, .transformers = kNowhere};

/// Throws UsageError if a number is outside its limits.
class RangeChecker final : public SilentVisitor {
 protected:
  void leaf(const FieldInfo& field, int64_t& value) override { check_range(field, value); }
  void leaf(const FieldInfo& field, double& value) override { check_range(field, value); }
  void structs(const FieldInfo&, StructList& list) override {
    for (size_t i = 0; i < list.size(); ++i) list.visit(i, *this);
  }

 private:
  template <class Number>
  static void check_range(const FieldInfo& field, Number value) {
    const auto& limits = field.limits;
    if (limits.contain(static_cast<double>(value)) && std::isfinite(static_cast<double>(value))) return;
    throw UsageError(fmt::format("{} is {}, and must be {}", field.key, value, limits_text(limits)));
  }
};

}  // namespace

void describe(ConfigVisitor& v, SequenceBias& c) {
  v.field("tokens", c.tokens, "Ids of tokens that follow each other.");
  v.field("bias", c.bias, "What is added; default: the last of these tokens is forbidden there.",
          Limits::between(-1e6, 1e6));
}

void describe(ConfigVisitor& v, GenerationConfig& c) {
  v.field("max_new_tokens", c.max_new_tokens,
          "Most tokens to generate for one output. Default: as max_length says, else 200.",
          Limits::at_least(1), {.request = kNowhere, .transformers = kNowhere});
  v.field(
      "max_length", c.max_length,
      "Most tokens of an output together with the prompt that it continues, or with the first token that "
      "the decoder of an encoder-decoder reads, as in transformers. max_new_tokens goes before it. Default "
      "none.",
      Limits::at_least(1), {.request = kNowhere, .transformers = kNowhere});
  v.field("beam", c.beam,
          "Beams of beam search; 1 = none. Default for text_to_text 4, unless the configuration asks for "
          "sampling or prompt_lookup.",
          Limits::between(1, 1024), {.request = kNowhere, .transformers = "num_beams"});
  v.field("length_penalty", c.length_penalty,
          "Outputs are ranked by log-probability / length^length_penalty; the length includes the end token.",
          Limits::between(-100, 100), {.value = "P", .request = kNowhere, .use = OptionUse::beams});
  v.field("early_stopping", c.early_stopping,
          "When beam search ends: true = once `beam` hypotheses are finished; false = once the best running "
          "beam would not be among them if it ended now; never = once no running beam can join them.",
          {}, {.value = "WHEN", .request = kNowhere, .transformers = kNowhere, .use = OptionUse::beams});
  v.field("patience", c.patience,
          "With early_stopping true, beam search ends once patience · `beam` hypotheses are finished, and "
          "gives the best ones (Kasai et al. 2022).",
          {.min = 0, .max = 100, .min_excluded = true},
          {.value = "F", .request = kNowhere, .transformers = kNowhere, .use = OptionUse::beams});
  v.field("beam_groups", c.beam_groups,
          "Groups into which the beams are divided, and which differ from each other (Vijayakumar et al. "
          "2018); 1 = off.",
          Limits::between(1, 1024), {.request = kNowhere, .transformers = kNowhere, .use = OptionUse::beams});
  v.field("diversity_penalty", c.diversity_penalty,
          "Subtracted from the log-probability of a token for each beam of an earlier group that has chosen "
          "it in this step.",
          Limits::between(0, 1000),
          {.value = "A", .request = kNowhere, .transformers = kNowhere, .use = OptionUse::beams});
  v.field("temperature", c.temperature,
          "Divides the logits before sampling; 0 = greedy. Default for all tasks but language_modeling 0, "
          "unless the configuration asks for sampling.",
          Limits::between(0, 1e6), {.value = "T", .transformers = kNowhere, .use = OptionUse::sampling});
  v.field("top_k", c.top_k, "Sample among the k likeliest tokens; 0 = all.", Limits::at_least(0),
          {.value = "K", .transformers = kNowhere, .use = OptionUse::sampling});
  v.field("top_p", c.top_p, "Sample among the likeliest tokens that make up this probability; 1 = all.",
          {.min = 0, .max = 1, .min_excluded = true}, {.value = "P", .use = OptionUse::sampling});
  v.field("min_p", c.min_p,
          "Sample among the tokens that are at least this many times as likely as the likeliest; 0 = all.",
          Limits::between(0, 1), {.value = "P", .use = OptionUse::sampling});
  v.field("typical_p", c.typical_p,
          "Sample among the tokens whose information is nearest to the expected one, which make up this "
          "probability (Meister et al. 2022); 1 = all.",
          {.min = 0, .max = 1, .min_excluded = true}, {.value = "P", .use = OptionUse::sampling});
  v.field("epsilon_cutoff", c.epsilon_cutoff,
          "Sample among the tokens of at least this probability (Hewitt et al. 2022); 0 = all.",
          Limits::between(0, 0.999999), {.value = "P", .use = OptionUse::sampling});
  v.field("eta_cutoff", c.eta_cutoff,
          "Sample among the tokens whose probability is at least this, or the square root of this times "
          "exp(-entropy) if that is less (Hewitt et al. 2022); 0 = all.",
          Limits::between(0, 0.999999), {.value = "P", .use = OptionUse::sampling});
  v.field(
      "repetition_penalty", c.repetition_penalty,
      "Divides the positive logits of tokens that were said before, and multiplies the negative ones; 1 = "
      "off. Said before are the tokens of the output, and of the prompt if the output continues it.",
      {.min = 0, .max = 1e6, .min_excluded = true}, {.value = "F"});
  v.field("encoder_repetition_penalty", c.encoder_repetition_penalty,
          "Multiplies the positive logits of the prompt's tokens, and divides the negative ones: above 1, "
          "outputs keep to the words of the prompt; 1 = off.",
          {.min = 0, .max = 1e6, .min_excluded = true}, {.value = "F"});
  v.field("presence_penalty", c.presence_penalty,
          "Subtracted from the logits of tokens that the output has already.", Limits::between(-100, 100),
          {.value = "A", .transformers = kNowhere});
  v.field("frequency_penalty", c.frequency_penalty,
          "The same, times the number of occurrences in the output.", Limits::between(-100, 100),
          {.value = "A", .transformers = kNowhere});
  v.field("no_repeat_ngram_size", c.no_repeat_ngram_size,
          "Sequences of this many tokens are not said twice; 0 = they may be.", Limits::at_least(0));
  v.field("encoder_no_repeat_ngram_size", c.encoder_no_repeat_ngram_size,
          "Sequences of this many tokens of the prompt are not said; 0 = they may be.", Limits::at_least(0));
  v.field("exponential_decay_length_penalty", c.exponential_decay_length_penalty,
          "[start, factor]: behind start tokens of an output, the logits s of end tokens rise by |s| · "
          "(factor^n - 1) at the n-th token; empty = off.",
          {}, {.value = "START,FACTOR", .transformers = kNowhere});
  v.field(
      "regex", c.regex,
      "Each output matches this regular expression as a whole (a subset of Python's, docs/generation.md); "
      "empty: any text.",
      {}, {.value = "EXPR", .transformers = kNowhere});
  v.field(
      "json_schema", c.json_schema,
      "Each output is JSON that this JSON schema, a text, describes (a subset, docs/generation.md); empty: "
      "any text.",
      {}, {.flag = kNowhere, .request = kNowhere, .transformers = kNowhere});
  v.field("stop", c.stop, "An output ends before the first of these texts.", {},
          {.value = "TEXT", .transformers = kNowhere});
  v.field("min_new_tokens", c.min_new_tokens, "No end token before an output has so many tokens.",
          Limits::at_least(0), {.request = "min_tokens", .transformers = kNowhere});
  v.field("min_length", c.min_length,
          "No end token before a sequence has so many tokens, counted as for max_length.",
          Limits::at_least(0), {.request = kNowhere, .transformers = kNowhere});
  v.field("ignore_eos", c.ignore_eos,
          "End tokens do not end an output, unless it has a form (regex, json_schema).", {},
          {.transformers = kNowhere});
  v.field("bad_words", c.bad_words,
          "Texts that are never generated: no output has the tokens of one of them, with or without a blank "
          "before it.",
          {}, {.flag = "--bad-word", .value = "TEXT", .transformers = kNowhere});
  v.field("suppress_tokens", c.suppress_tokens, "Ids of tokens that are never generated.", {},
          {.value = "IDS", .transformers = kNowhere});
  v.field("suppress_first_tokens", c.suppress_first_tokens,
          "Ids of tokens that are not the first one of an output.", {},
          {.value = "IDS", .transformers = "begin_suppress_tokens"});
  v.field(
      "sequence_biases", c.sequence_biases,
      "What is added to the logits of tokens that complete sequences, as in [{tokens: [5, 6], bias: 2.5}].",
      {}, {.flag = kNowhere, .request = kNowhere, .transformers = kNowhere});
  v.field(
      "start_tokens", c.start_tokens,
      "Models that read recordings: ids of tokens that stand before each output, such as Whisper's language "
      "and task.",
      {}, {.value = "IDS", .request = kNowhere, .transformers = kNowhere});
  v.field("source_language", c.source_language,
          "Translators between many languages: the one of the texts that are read, as a code such as "
          "deu_Latn (NLLB), de_DE (mBART) or de (M2M100); default: as the tokenizer's files say.",
          {}, {.value = "CODE", .transformers = kNowhere});
  v.field("target_language", c.target_language,
          "The same for the one that they write; default: as generation_config.json says.", {},
          {.value = "CODE", .transformers = kNowhere});
  v.field("max_initial_timestamp", c.max_initial_timestamp,
          "Models that write times, such as Whisper: the number of the latest time with which an output may "
          "begin; default: any.",
          Limits::at_least(0),
          {.flag = kNowhere, .request = kNowhere, .transformers = "max_initial_timestamp_index"});
  v.field("forced_first_token", c.forced_first_token,
          "Id of the first token of each output, as forced_bos_token_id in transformers: a decoder's prompt "
          "of several tokens leaves no place for it; default: any.",
          Limits::at_least(0), {.value = "ID", .transformers = kNowhere});
  v.field("forced_last_token", c.forced_last_token,
          "Id of the last possible token of an output that has not ended before; default: any.",
          Limits::at_least(0), {.value = "ID", .transformers = kNowhere});
  v.selections("rules", c.rules, token_rule_types(),
               "Rules that this program adds to the library's, in the order in which they are applied.",
               ListSize::any);
  v.field("renormalize_logits", c.renormalize_logits,
          "Beams are ranked by the probabilities of tokens among those that the rules leave.", {},
          {.request = kNowhere, .use = OptionUse::beams});
  v.field("num_samples", c.num_samples, "Outputs for each prompt; with beam search the n best.",
          Limits::whole(1, kMostSamples), {.request = "n", .transformers = "num_return_sequences"});
  v.field("seed", c.seed, "Seed of the sampler: the same seed gives the same text; any number of 64 bits.",
          {}, {.value = "S", .transformers = kNowhere});
  v.field(
      "weights", c.weights,
      "How a trained model's weights are stored while it generates or is evaluated: fp32; bf16 or fp16, half "
      "the memory; int8, a quarter, with a scale per row; int4, a seventh, with a scale per 32 weights.",
      {}, kOfTheModel);
  v.field(
      "cache", c.cache,
      "How a model keeps the keys and values of the tokens that it has read: fp32; bf16, half the memory; "
      "int8, a quarter, with a scale for each vector of a head.",
      {}, kOfTheModel);
  v.field(
      "prompt_lookup", c.prompt_lookup,
      "Tokens that are proposed for each step: those that followed the newest ones when they stood in the "
      "text before. The model checks all of them at once, and no output changes; 0 = off.",
      Limits::whole(0, kMostProposed), {.transformers = kNowhere});
  v.field("draft_tokens", c.draft_tokens, "Tokens that a draft model (--draft) proposes for each step.",
          Limits::whole(1, kMostProposed), {.request = kNowhere, .transformers = kNowhere});
  v.field("batch_size", c.batch_size,
          "Outputs that grow together. Up to 64 it changes no output on a CPU; more change it by rounding at "
          "most, as they do with beams and on a GPU.",
          Limits::at_least(1), {.request = kNowhere, .transformers = kNowhere});
}

void validate(const GenerationConfig& c, const Complain& complain) {
  if (std::ranges::find(c.stop, "") != c.stop.end())
    complain("stop", "has an empty text, which would end every output at once");
  if (std::ranges::find(c.bad_words, "") != c.bad_words.end()) complain("bad_words", "has an empty text");
  if (!c.regex.empty() && !c.json_schema.empty())
    complain("json_schema", "contradicts regex: an output has one form");
  if (const int64_t most = c.max_new_tokens.value_or(kUsualNewTokens);
      c.min_new_tokens > most && (c.max_new_tokens || !c.max_length))
    complain("min_new_tokens", fmt::format("{} is more than max_new_tokens {}", c.min_new_tokens, most));
  const auto& decay = c.exponential_decay_length_penalty;
  if (!decay.empty() && (decay.size() != 2 || !(decay[0] >= 0) || !(decay[1] > 0)))
    complain("exponential_decay_length_penalty", "must be [start, factor] with a factor above 0");
  if (std::ranges::any_of(c.sequence_biases, [](const auto& bias) { return bias.tokens.empty(); }))
    complain("sequence_biases", "has a sequence without tokens");
  if (c.beam > 1 && c.beam % c.beam_groups != 0)
    complain("beam_groups", fmt::format("{} groups do not divide {} beams", c.beam_groups, c.beam));
  if (c.diversity_penalty > 0 && c.beam_groups == 1)
    complain("diversity_penalty", "has no effect with one group of beams: set beam_groups");
  if (c.patience != 1 && c.early_stopping != EarlyStopping::first_finished)
    complain("patience", "has an effect with early_stopping: true only");
  if (c.beam > 1 && c.prompt_lookup > 0)
    complain("prompt_lookup", "proposes tokens for greedy search and sampling, not for beams");
  if (c.beam > 1 && c.num_samples > c.beam) {
    complain("num_samples",
             fmt::format("{} outputs are more than the {} beams of beam search", c.num_samples, c.beam));
  }
}

int64_t most_new_tokens(const GenerationConfig& c, int64_t n_before) {
  if (c.max_new_tokens || !c.max_length) return c.max_new_tokens.value_or(kUsualNewTokens);
  if (*c.max_length > n_before) return *c.max_length - n_before;
  throw UsageError(fmt::format(
      "max_length {} leaves no room for an output, because {} token{} are there before it: raise it, or set "
      "max_new_tokens",
      *c.max_length, n_before, n_before == 1 ? "" : "s"));
}

GenerationConfig usual_generation(UsualSearch search) {
  switch (search) {
    case UsualSearch::beams:
      return {.beam = 4, .temperature = 0};
    case UsualSearch::greedy:
      return {.temperature = 0};
    case UsualSearch::sampling:
      break;
  }
  return {};
}

void check(const GenerationConfig& c) {
  GenerationConfig copy = c;
  RangeChecker ranges;
  describe(ranges, copy);
  validate(c, [](std::string_view key, std::string_view problem) {
    throw UsageError(fmt::format("{}: {}", key, problem));
  });
}

}  // namespace zoo

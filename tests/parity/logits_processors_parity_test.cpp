// Rules of generation against those of transformers: each alone, and in searches by whole models.

#include <array>

#include <fmt/format.h>

#include "checkpoints/run.h"
#include "generation/beam_search.h"
#include "generation/generator.h"
#include "generation/rules/logits_processors.h"
#include "generation/rules/repetition.h"
#include "models/families/families.h"
#include "tests/parity/reference.h"
#include "tests/support/requests.h"
#include "tests/support/small_models.h"

namespace zoo::testing {
namespace {

constexpr int64_t kPromptLength = 5, kNewTokens = 14;

TokenIds to_ids(const torch::Tensor& tensor) {
  const auto ids = tensor.contiguous();
  return {ids.const_data_ptr<int64_t>(), ids.const_data_ptr<int64_t>() + ids.numel()};
}

class LogitsProcessorsParity : public ReferenceTest {
 protected:
  LogitsProcessorsParity() : ReferenceTest("reference_logits_processors.py") {}

  /// The rules of a case, as the Generator orders them. The start token is never written.
  static LogitsProcessors rules_of(const std::string& name, PresentTokens said) {
    LogitsProcessors rules;
    rules.push_back(std::make_unique<SuppressTokens>(TokenIds{kStartToken}, kVocabulary, torch::kCPU));
    const auto penalise = [&](double penalty) {
      rules.push_back(std::make_unique<RepetitionPenalty>(penalty, said));
    };
    const auto forbid = [&](int64_t n) { rules.push_back(std::make_unique<NoRepeatNgram>(n, said)); };
    if (name == "penalty") penalise(1.7);
    if (name == "reward") penalise(0.8);
    if (name == "both") penalise(1.3);
    if (name == "both") forbid(3);
    if (name == "ngram") forbid(2);
    return rules;
  }

  static std::vector<TokenIds> search(Model& model, const std::vector<TokenIds>& prompts, int64_t beams,
                                      LogitsProcessors rules) {
    const SearchLimits limits{.max_new_tokens = kNewTokens, .ends = {}};
    std::vector<TokenIds> found;
    if (beams > 1) {
      for (const auto& best :
           beam_search(*model.generative(), torch::kCPU, prompts, rules, limits, {.beams = beams}))
        found.push_back(best.front().ids);
      return found;
    }
    for (const auto& output :
         written(*model.generative(), requests(prompts, limits, greedy(std::move(rules)))))
      found.push_back(output.ids);
    return found;
  }

  /// A batch of prompts here, each alone there.
  void check_searches(const std::string& name, const ModelConfig& config) {
    SCOPED_TRACE(name);
    ReferenceCase reference(file(name));
    const auto model = initialized_model(config, purpose_of(config.architecture));
    reference.load(*model);
    model->eval();
    const auto said = model->generative()->continues_prompt() ? PresentTokens::in_prompt_or_output
                                                              : PresentTokens::in_output;
    std::vector<TokenIds> prompts;
    for (int i = 0; i < 3; ++i) prompts.push_back(to_ids(reference.input(fmt::format("prompt_{}", i))));
    const torch::NoGradGuard no_grad;
    for (const auto& rules : {"penalty", "reward", "ngram", "both"}) {
      for (const int64_t beams : {1, 3}) {
        const auto found = search(*model, prompts, beams, rules_of(rules, said));
        for (size_t i = 0; i < prompts.size(); ++i) {
          const auto what = fmt::format("prompt {}, {} beams, {}", i, beams, rules);
          EXPECT_EQ(found[i], to_ids(reference.output(what))) << what;
        }
      }
    }
  }
};

TEST_F(LogitsProcessorsParity, OfEachRuleAlone) {
  ReferenceCase reference(file("processors"));
  const auto ids = reference.input("ids"), scores = reference.input("scores");
  std::vector<TokenIds> rows;
  for (int64_t b = 0; b < ids.size(0); ++b) rows.push_back(to_ids(ids[b]));
  std::vector<SequenceView> views;
  for (const auto& row : rows)
    views.push_back({std::span(row).first(kPromptLength), std::span(row).subspan(kPromptLength)});
  size_t n_cases = 0;
  const auto check = [&](const std::string& name, const LogitsProcessor& rule) {
    const auto expected = reference.output(name), found = rule.process(scores, views);
    EXPECT_TRUE(torch::equal(found.isneginf(), expected.isneginf())) << name << found << expected;
    expect_close(found.nan_to_num(0, 0, 0), expected.nan_to_num(0, 0, 0), name);
    EXPECT_FALSE(torch::equal(found, scores) && name != "min_p 0.02") << name << " changes nothing";
    ++n_cases;
  };
  constexpr std::array<std::pair<const char*, PresentTokens>, 2> scopes = {
      {{"all", PresentTokens::in_prompt_or_output}, {"output", PresentTokens::in_output}}};
  for (const auto& [scope, said] : scopes) {
    for (const double penalty : {0.5, 1.2, 3.0})
      check(fmt::format("repetition_penalty {:g}, {}", penalty, scope), RepetitionPenalty(penalty, said));
    for (const int64_t n : {1, 2, 3})
      check(fmt::format("no_repeat_ngram_size {}, {}", n, scope), NoRepeatNgram(n, said));
  }
  for (const auto& [presence, frequency] :
       std::vector<std::pair<double, double>>{{0.5, 0}, {0, 0.3}, {1.5, -0.2}})
    check(fmt::format("presence {:g}, frequency {:g}", presence, frequency),
          OccurrencePenalty(presence, frequency));
  for (const double p : {0.02, 0.1, 0.5, 1.0}) check(fmt::format("min_p {:g}", p), MinP(p));
  for (const double p : {0.3, 0.9}) check(fmt::format("top_p {:g}", p), TopP(p));
  check("top_k 3", TopK(3));
  for (const double mass : {0.2, 0.6, 0.9}) check(fmt::format("typical_p {:g}", mass), TypicalP(mass));
  const std::vector<TokenIds> words = {
      {3}, {rows[0].back(), 4}, {rows[1][rows[1].size() - 2], rows[1].back(), 5}, {7, 7, 7, 7, 7, 7, 7}};
  check("bad_words", BadWords(words, PresentTokens::in_prompt_or_output));
  constexpr int64_t n_said = 12;
  check("min_new_tokens",
        ForbiddenTokens({2, 6}, [](const SequenceView& row) { return row.generated.size() < 8; }));
  const SaidTokens all = PresentTokens::in_prompt_or_output;
  check("min_length", ForbiddenTokens({2, 6}, [&](const SequenceView& row) {
          return all.n_before(row) + std::ssize(row.generated) < n_said + 1;
        }));
  check("forced", ForcedToken(4, [](const SequenceView&) { return true; }));
  check("length decay", LengthDecay(4, 1.7, {2, 6}));
  for (const double penalty : {0.5, 3.0}) {
    check(fmt::format("encoder_repetition_penalty {:g}", penalty),
          RepetitionPenalty(1 / penalty, PresentTokens::in_prompt));
  }
  for (const int64_t n : {1, 2}) {
    check(fmt::format("encoder_no_repeat_ngram_size {}", n), NoCopiedNgram(n, PresentTokens::in_output));
  }
  const auto biases = std::vector<BiasedSequence>{
      {words[0], 1.5}, {words[1], -2}, {words[2], 4}, {words[3], 9}, {{rows[0].back(), 3}, 0.5}};
  check("sequence_bias", SequenceBiases(biases, all));
  for (const double cutoff : {0.05, 0.3}) {
    check(fmt::format("epsilon_cutoff {:g}", cutoff), EpsilonCutoff(cutoff));
    check(fmt::format("eta_cutoff {:g}", cutoff), EtaCutoff(cutoff));
  }
  check("renormalised", Renormalised());
  EXPECT_EQ(n_cases + 1, reference.names("output/").size()) << "temperature is below";
  const auto tempered = Temperature(0.7).process(scores, views).softmax(1);
  expect_close(tempered, reference.output("temperature 0.7").softmax(1), "temperature");
}

/// Directories whose generation_config.json or config.json names rules, opened as the commands open them.
TEST_F(LogitsProcessorsParity, AsFilesNameThem) {
  for (const std::string name : {"answers", "continuations"}) {
    ReferenceCase reference(file(name));
    for (const auto& place : reference.names("output/")) {
      SCOPED_TRACE(place);
      const auto dir = file(name).parent_path() / place.substr(0, place.find('/'));
      const auto run = Run::open(dir);
      const Generator generator(run.model(), run.tokenizer());
      const auto found = generator.generate(std::vector<TokenIds>{to_ids(reference.input(place))},
                                            run.experiment().generation);
      const auto expected = reference.output(place);
      ASSERT_EQ(std::ssize(found.front().outputs), expected.size(0));
      for (int64_t i = 0; i < expected.size(0); ++i) {
        const auto row = expected[i].masked_select(expected[i] >= 0);  // -1 follows the end
        EXPECT_EQ(found.front().outputs[static_cast<size_t>(i)].ids, to_ids(row)) << "output " << i;
      }
    }
  }
}

TEST_F(LogitsProcessorsParity, InSearchesOfADecoder) { check_searches("gpt2_rules", small_gpt2()); }

TEST_F(LogitsProcessorsParity, InSearchesOfAnEncoderDecoder) { check_searches("bart_rules", small_bart()); }

}  // namespace
}  // namespace zoo::testing

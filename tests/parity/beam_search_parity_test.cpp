// Beam search against that of transformers: over tables of scores, and by whole models.

#include <fmt/format.h>

#include "generation/beam_search.h"
#include "models/families/families.h"
#include "tests/parity/reference.h"
#include "tests/support/fake_models.h"
#include "tests/support/small_models.h"

namespace zoo::testing {
namespace {

const LogitsProcessors kNoRules;

class BeamSearchParity : public ReferenceTest {
 protected:
  BeamSearchParity() : ReferenceTest("reference_beam_search.py") {}

  /// The same hypotheses in the same order.
  static void expect_same(const ReferenceCase& reference, const std::string& name,
                          const std::vector<Hypothesis>& found, double penalty) {
    SCOPED_TRACE(name);
    const auto ids = reference.output(name + "/ids"), scores = reference.output(name + "/scores");
    ASSERT_EQ(static_cast<int64_t>(found.size()), ids.size(0));
    for (int64_t i = 0; i < ids.size(0); ++i) {
      const auto& hypothesis = found[static_cast<size_t>(i)];
      const auto row = ids[i].masked_select(ids[i] >= 0);  // -1 follows the end
      EXPECT_TRUE(torch::equal(torch::tensor(hypothesis.ids), row)) << "place " << i << ": " << row;
      EXPECT_NEAR(length_normalised(hypothesis, penalty), scores[i].item<double>(), 2e-5) << "place " << i;
    }
  }

  void check_table(const std::string& name, const std::vector<int64_t>& starts, int64_t max_new_tokens) {
    SCOPED_TRACE(name);
    ReferenceCase reference(file(name));
    const auto logits = reference.input("logits");
    BigramModel model(logits);
    for (const int64_t beams : {2, 3, 4}) {
      for (const double penalty : {0.0, 1.0, 2.0, -1.0}) {
        for (const auto stopping :
             {EarlyStopping::first_finished, EarlyStopping::heuristic, EarlyStopping::never}) {
          for (const int64_t start : starts) {
            const auto found =
                beam_search(model, torch::kCPU, {{start}}, kNoRules,
                            {.max_new_tokens = max_new_tokens, .ends = {logits.size(0) - 1}},
                            {.beams = beams, .length_penalty = penalty, .early_stopping = stopping});
            expect_same(reference,
                        fmt::format("{} beams, penalty {:g}, early stopping {}, from {}", beams, penalty,
                                    name_of(stopping), start),
                        found.front(), penalty);
          }
        }
      }
    }
  }

  /// A batch of prompts here, each alone and without a cache there.
  void check_model(const std::string& name, const ModelConfig& config) {
    SCOPED_TRACE(name);
    ReferenceCase reference(file(name));
    const auto model = initialized_model(config, purpose_of(config.architecture));
    reference.load(*model);
    model->eval();
    std::vector<TokenIds> prompts;
    for (int64_t i = 0; i < 4; ++i) {
      const auto ids = reference.input(fmt::format("prompt_{}", i));
      prompts.emplace_back(ids.data_ptr<int64_t>(), ids.data_ptr<int64_t>() + ids.numel());
    }
    const torch::NoGradGuard no_grad;
    for (const double penalty : {0.0, 1.0}) {
      const auto found = beam_search(*model->generative(), torch::kCPU, prompts, kNoRules,
                                     {.max_new_tokens = 9, .ends = {reference.input("eos").item<int64_t>()}},
                                     {.beams = 4, .length_penalty = penalty});
      for (size_t i = 0; i < prompts.size(); ++i) {
        expect_same(reference, fmt::format("prompt {}, penalty {:g}", i, penalty), found[i], penalty);
      }
    }
  }
};

TEST_F(BeamSearchParity, OverTables) {
  check_table("waves", {0, 2}, 7);
  check_table("late", {0}, 8);
  check_table("noise", {0, 3, 7}, 6);
}

TEST_F(BeamSearchParity, OfADecoder) { check_model("gpt2_beams", small_gpt2()); }

TEST_F(BeamSearchParity, OfAnEncoderDecoder) { check_model("bart_beams", small_bart()); }

}  // namespace
}  // namespace zoo::testing

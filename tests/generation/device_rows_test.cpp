// How outputs grow on a GPU: rows in slots, steps that are recorded, tokens that are chosen on the device and
// read late, prompts that are read together. On a GPU, without which the tests are skipped, and on the strict
// device, which is always there (tests/support/strict_device.h), also with our kernels
// (tests/support/strict_kernels.h).

#include "generation/rows/device_rows.h"

#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/cuda.h>
#include <torch/types.h>

#include "base/error.h"
#include "generation/rules/repetition.h"
#include "generation/scheduler.h"
#include "generation/speculation.h"
#include "layers/weights/weights.h"
#include "models/inference_scope.h"
#include "tests/support/device_work.h"
#include "tests/support/errors.h"
#include "tests/support/small_models.h"
#include "tests/support/strict_device.h"
#include "tests/support/strict_kernels.h"

namespace zoo::testing {
namespace {

using Outputs = std::vector<std::vector<Hypothesis>>;

/// A request that comes at a step.
struct Arriving {
  size_t step;
  GenerationRequest request;
};

template <class... Rules>
std::shared_ptr<const TokenRules> rules(std::optional<uint64_t> seed, Rules... more) {
  auto result = std::make_shared<TokenRules>();
  (result->processors.push_back(std::make_unique<Rules>(std::move(more))), ...);
  if (seed) {
    result->sampler = std::make_unique<RandomSampler>(*seed);
  } else {
    result->sampler = std::make_unique<GreedySampler>();
  }
  return result;
}

std::string device_name(const ::testing::TestParamInfo<const char*>& info) { return info.param; }

class DecodingOnAGpu : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (is_strict()) {
      // LibTorch has one accelerator at a time.
      if (torch::cuda::is_available()) GTEST_SKIP() << "a GPU is here, which is better";
      device_ = strict_device();
      if (has_kernels()) kernels_.emplace();
    } else if (!torch::cuda::is_available()) {
      GTEST_SKIP() << "no GPU";
    }
  }
  bool has_kernels() const { return GetParam() == std::string_view("kernels"); }
  bool is_strict() const { return has_kernels() || GetParam() == std::string_view("strict"); }
  torch::Device device() const { return device_; }

  /// A model of random weights on the processor, and the same one on the device.
  struct Pair {
    std::shared_ptr<Model> here, there;
  };
  Pair models(ModelConfig config) const {
    if (has_kernels() && !config.head_dim)
      config.head_dim = 8;  // heads of 16 bytes, as our kernels read them
    auto here = random_model(config);
    return {.here = here, .there = copy_of(here, device_)};
  }

  /// The outputs of requests that come while others are under way.
  static Outputs written(Model& model, const std::vector<Arriving>& all,
                         const SchedulerOptions& options = {}) {
    const InferenceScope scope(model);
    Scheduler scheduler(*model.generative(), model.device(), options);
    std::map<size_t, size_t> numbers;
    bool is_busy = true;
    for (size_t step = 0; is_busy || numbers.size() < all.size(); ++step) {
      for (size_t i = 0; i < all.size(); ++i) {
        if (all[i].step == step) numbers[i] = scheduler.submit(all[i].request);
      }
      is_busy = scheduler.step();
      for (const auto& [i, number] : numbers) scheduler.require(number);
    }
    Outputs outputs;
    for (size_t i = 0; i < all.size(); ++i) outputs.push_back(scheduler.take(numbers.at(i)));
    return outputs;
  }
  static void expect_equal(const Outputs& found, const Outputs& wanted, double tolerance = 1e-3) {
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) {
      SCOPED_TRACE(fmt::format("request {}", i));
      ASSERT_EQ(found[i].size(), wanted[i].size());
      for (size_t s = 0; s < found[i].size(); ++s) {
        EXPECT_EQ(found[i][s].ids, wanted[i][s].ids);
        EXPECT_EQ(found[i][s].end, wanted[i][s].end);
        ASSERT_EQ(found[i][s].logprobs.size(), wanted[i][s].logprobs.size());
        for (size_t t = 0; t < found[i][s].logprobs.size(); ++t)
          EXPECT_NEAR(found[i][s].logprobs[t], wanted[i][s].logprobs[t], tolerance);
      }
    }
  }

  static GenerationRequest request(TokenIds prompt, int64_t most, std::shared_ptr<const TokenRules> rules,
                                   uint64_t number, size_t n_outputs = 1) {
    GenerationRequest result{.prompt = std::move(prompt),
                             .rules = std::move(rules),
                             .limits = {.max_new_tokens = most, .ends = {3}},
                             .draws = {}};
    for (uint64_t s = 0; s < n_outputs; ++s) result.draws.push_back({.prompt = number, .sample = s});
    return result;
  }
  /// Requests with all kinds of rules that are numbers, of several lengths, at several times. `where`: the
  /// logits are there.
  static std::vector<Arriving> many(torch::Device where) {
    const SaidTokens said(PresentTokens::in_prompt_or_output);
    return {
        {0, request({5, 9}, 22, rules({}), 0)},
        {0, request({7}, 17, rules(3, Temperature(0.8)), 1, 3)},
        {1, request({4, 8, 15, 16, 23}, 1, rules({}), 2)},
        {2, request({11, 2}, 20, rules(1, Temperature(1.4), TopK(5), TopP(0.9)), 3)},
        {3, request({6}, 12, rules(9, SuppressTokens({1, 2}, 29, where), Temperature(0.9), MinP(0.05)), 4)},
        {7, request({9, 9}, 20, rules({}, RepetitionPenalty(1.4, said)), 5)},
        {7, request({20, 21, 22}, 18, rules(4, OccurrencePenalty(0.4, 0.3)), 6)},
        {26, request({12}, 9, rules({}), 7)}};
  }

 private:
  torch::Device device_ = torch::Device("cuda:0");
  std::optional<StrictKernels> kernels_;
};
INSTANTIATE_TEST_SUITE_P(Each, DecodingOnAGpu, ::testing::Values("cuda", "strict", "kernels"), device_name);

TEST_P(DecodingOnAGpu, RequestsThatComeAndGoGetWhatTheProcessorGivesThem) {
  const auto [here, there] = models(small_gpt2());
  const auto wanted = written(*here, many(torch::kCPU));
  expect_equal(written(*there, many(device())), wanted);
  expect_equal(written(*there, many(device()), {.most_rows = 3}), wanted);
  expect_equal(written(*there, many(device()), {.prefix_bytes = 1 << 20, .shared_rows = 2}), wanted);
}

// The host sees in time what its rules need: the text so far, the likeliest tokens, proposed tokens.
TEST_P(DecodingOnAGpu, RulesThatLookAtTheTextAreForTheHost) {
  const SaidTokens said(PresentTokens::in_prompt_or_output);
  const auto [here, there] = models(small_gpt2());
  const auto requests = [&](torch::Device where, std::optional<size_t> proposals_at = {}) {
    auto all = many(where);
    all.push_back({4, request({4, 5, 4}, 16, rules({}, NoRepeatNgram(2, said)), 8)});
    all.push_back({4, request({6}, 16, rules(2, TypicalP(0.7)), 9)});
    all.push_back({11, request({30}, 16, rules({}), 10)});
    all.back().request.n_likeliest = 2;
    if (!proposals_at) return all;
    all.push_back({*proposals_at, request({4, 5, 4, 5, 4}, 12, rules({}), 11)});
    all.back().request.make_proposer = [] { return std::make_unique<PromptLookup>(); };
    return all;
  };
  const auto wanted = written(*here, requests(torch::kCPU));
  const auto found = written(*there, requests(device()));
  expect_equal(found, wanted);
  EXPECT_EQ(found.back().front().likeliest.size(), wanted.back().front().likeliest.size());
  expect_equal(written(*there, requests(device()), {.shared_rows = 2}), wanted);
  // At step 0 the prompt with proposals is read together with others.
  for (const size_t at : {12, 0})
    expect_equal(written(*there, requests(device(), at)), written(*here, requests(torch::kCPU, at)));
}

// Taken in the middle of its text, a request leaves the others as they are.
TEST_P(DecodingOnAGpu, ARequestMayBeTakenAtAnyStep) {
  const auto [here, there] = models(small_gpt2());
  const auto wanted = written(*here, many(torch::kCPU));
  for (const int at : {1, 2, 5, 9}) {
    SCOPED_TRACE(at);
    const InferenceScope scope(*there);
    Scheduler scheduler(*there->generative(), device());
    std::vector<size_t> numbers;
    for (const auto& [step, asked] : many(device())) numbers.push_back(scheduler.submit(asked));
    for (int step = 0; step < at; ++step) scheduler.step();
    for (const size_t i : {0, 3}) scheduler.take(numbers[i]);
    while (scheduler.step()) {
    }
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (i == 0 || i == 3) continue;
      const auto found = scheduler.take(numbers[i]);
      for (size_t s = 0; s < found.size(); ++s) EXPECT_EQ(found[s].ids, wanted[i][s].ids) << i;
    }
  }
}

TEST_P(DecodingOnAGpu, OutputsGoOnBeyondWhatTheModelReads) {
  const auto [here, there] = models(small_gpt2());  // reads 32 tokens
  std::vector<Arriving> requests{{0, request({5, 9}, 90, rules({}), 0)},
                                 {5, request({7}, 75, rules(1, Temperature(2)), 1)},
                                 {9, request(TokenIds(50, 8), 20, rules({}), 2)}};
  for (auto& [step, asked] : requests) asked.limits.ends = {};
  expect_equal(written(*there, requests), written(*here, requests));
}

// A beginning of prompts that were read together serves a later prompt.
TEST_P(DecodingOnAGpu, BeginningsOfPromptsThatAreReadTogetherAreKept) {
  const auto [here, there] = models(small_gpt2());
  const std::vector<Arriving> requests{{0, request({4, 8, 15, 16, 23}, 9, rules({}), 0)},
                                       {0, request({4, 8, 15, 2, 6, 7}, 9, rules({}), 1)},
                                       {3, request({4, 8, 15, 16, 9}, 9, rules({}), 2)},
                                       {6, request({4, 8, 1}, 9, rules({}), 3)}};
  const SchedulerOptions options{.prompt_piece = 2, .prefix_bytes = 1 << 20};
  expect_equal(written(*there, requests, options), written(*here, requests, options));
}

// The place of a long text that has ended stays empty, while a shorter one goes on in few columns.
TEST_P(DecodingOnAGpu, APlaceThatIsLeftReadsNothingMore) {
  auto config = small_gpt2();
  config.max_positions = 64;
  const auto [here, there] = models(config);
  std::vector<Arriving> requests{{0, request(TokenIds(26, 9), 4, rules({}), 0)}};
  for (uint64_t i = 1; i < 4; ++i)
    requests.push_back({0, request({7, static_cast<int64_t>(i)}, 50, rules({}), i)});
  for (auto& [step, asked] : requests) asked.limits.ends = {};
  expect_equal(written(*there, requests), written(*here, requests));
}

// All kinds of positions, norms and mixers; also layers that do not keep every token, and patterns whose
// steps cannot be recorded.
TEST_P(DecodingOnAGpu, EveryDecoderWritesAsOnTheProcessor) {
  for (const auto& config : varied_configs(Architecture::decoder)) {
    SCOPED_TRACE(described(config));
    const auto [here, there] = models(config);
    expect_equal(written(*there, many(device())), written(*here, many(torch::kCPU)), 2e-2);
  }
}

// What our kernels for a layer compute, one key after the other, and what they leave to the layer.
TEST_P(DecodingOnAGpu, EveryKeyOfALayerHasItsEffect) {
  auto llama = small_gpt2();
  llama.position = Position::rotary;
  llama.norm = NormKind::rms_norm;
  llama.n_kv_heads = 2;
  llama.qk_norm = true;
  const std::vector<std::pair<std::string, std::function<void(ModelConfig&)>>> changes = {
      {"as it is", [](ModelConfig&) {}},
      {"norm_unit_offset", [](ModelConfig& c) { c.norm_unit_offset = true; }},
      {"attention_gate", [](ModelConfig& c) { c.attention_gate = true; }},
      {"qkv_clip", [](ModelConfig& c) { c.qkv_clip = 0.3; }},
      {"attention_softcap", [](ModelConfig& c) { c.attention_softcap = 0.4; }},
      {"attention_sinks", [](ModelConfig& c) { c.attention_sinks = true; }},
      {"attention_scale", [](ModelConfig& c) { c.attention_scale = 2.0; }},
      {"layer_scale", [](ModelConfig& c) { c.layer_scale = 0.5; }},
      {"residual_scale", [](ModelConfig& c) { c.residual_scale = 0.3; }},
      {"parallel", [](ModelConfig& c) { c.norm_placement = NormPlacement::parallel; }},
      {"swiglu_clamped", [](ModelConfig& c) { c.activation = Activation::swiglu_clamped; }},
      {"silu", [](ModelConfig& c) { c.activation = Activation::silu; }}};
  for (const auto& [name, change] : changes) {
    SCOPED_TRACE(name);
    auto config = llama;
    change(config);
    const auto [here, there] = models(config);
    expect_equal(written(*there, many(device())), written(*here, many(torch::kCPU)));
  }
}

// Products round to 16 bits; the residual stream and the logits do not.
TEST_P(DecodingOnAGpu, In16BitsTheCacheHas16Bits) {
  const auto [here, there] = models(small_gpt2());
  const auto read = [&](Model& model) {
    const InferenceScope scope(model);
    DecodingState state;
    const auto ids = torch::tensor({{1, 2, 3}}, torch::kInt64).to(device());
    const auto logits = model.generative()->prefill({.input = {.ids = ids}}, state);
    return std::pair(state.bytes(), logits.to(torch::kCPU, torch::kFloat));
  };
  const auto [bytes, logits] = read(*there);
  for (const auto format : {WeightFormat::bf16, WeightFormat::fp16}) {
    SCOPED_TRACE(name_of(format));
    const auto stored = copy_of(here, device());
    store_weights(*stored, format);
    EXPECT_EQ(precision_in_use(*stored), format == WeightFormat::bf16 ? Precision::bf16 : Precision::fp16);
    const auto [fewer, rounded] = read(*stored);
    EXPECT_EQ(2 * fewer, bytes);
    EXPECT_LT((rounded - logits).abs().max().item<float>(), 0.03 * logits.abs().max().item<float>());
    EXPECT_FALSE(torch::equal(rounded, logits));
    for (const auto& outputs : written(*stored, many(device()))) EXPECT_FALSE(outputs.front().ids.empty());
  }
  EXPECT_EQ(precision_in_use(*there), Precision::fp32);
  const auto packed = copy_of(here);
  store_weights(*packed, WeightFormat::bf16);
  EXPECT_EQ(precision_in_use(*packed), Precision::fp32) << "a processor computes in float";
}

// Steps of the same shapes give the same bits, whatever is in the other rows.
TEST_P(DecodingOnAGpu, OtherRowsChangeNoBitOfARowInStepsOfOneShape) {
  const auto [here, there] = models(small_gpt2());
  const auto beside = [&](const std::vector<TokenIds>& others, uint64_t seed) {
    std::vector<Arriving> requests{{0, request({11, 4}, 14, rules(5, Temperature(0.9)), 0)}};
    for (const auto& other : others)
      requests.push_back({0, request(other, 14, rules(seed, Temperature(1.5)), requests.size())});
    for (auto& [step, asked] : requests) asked.limits.ends = {};
    return written(*there, requests).front().front();
  };
  const auto wanted = beside({{1, 2}, {3, 4}, {5, 6}}, 1);
  for (const uint64_t seed : {2, 3}) {
    const auto found = beside({{7, 8}, {9, 10}, {30, 12}}, seed);
    EXPECT_EQ(found.ids, wanted.ids);
    EXPECT_EQ(found.logprobs, wanted.logprobs);
  }
  // In steps of other shapes numbers agree up to rounding.
  const auto alone = beside({}, 1);
  EXPECT_EQ(alone.ids, wanted.ids);
  for (size_t t = 0; t < alone.logprobs.size(); ++t) EXPECT_NEAR(alone.logprobs[t], wanted.logprobs[t], 1e-4);
}

// Our kernels compute a row alike, however many rows, columns and blocks are beside it.
TEST_P(DecodingOnAGpu, OtherRowsChangeNoBitOfARowWithOurKernels) {
  if (!has_kernels()) GTEST_SKIP() << "for our kernels only";
  auto config = small_gpt2();
  config.max_positions = 300;  // more columns than a block of attention reads
  for (const auto format : {WeightFormat::bf16, WeightFormat::fp16}) {
    const auto there = models(config).there;
    store_weights(*there, format);
    const auto beside = [&](const std::vector<TokenIds>& others) {
      std::vector<Arriving> requests{{0, request({11, 4}, 8, rules(5, Temperature(0.9)), 0)}};
      for (const auto& other : others)
        requests.push_back({2, request(other, 14, rules(3, Temperature(1.5)), requests.size())});
      for (auto& [step, asked] : requests) asked.limits.ends = {};
      return written(*there, requests).front().front();
    };
    const auto alone = beside({});
    for (const auto& others : {std::vector<TokenIds>{{1, 2}}, std::vector<TokenIds>(7, TokenIds(280, 9))}) {
      const auto found = beside(others);
      EXPECT_EQ(found.ids, alone.ids);
      EXPECT_EQ(found.logprobs, alone.logprobs);
    }
  }
}

// Whole numbers are multiplied as they are stored; the CPU has the same numbers.
TEST_P(DecodingOnAGpu, WholeNumbersGiveWhatTheProcessorGives) {
  auto config = small_gpt2();
  config.d_model = 32;  // a scale has 32 inputs
  config.d_ff = 64;
  for (const auto format : {WeightFormat::int8, WeightFormat::int4}) {
    SCOPED_TRACE(name_of(format));
    const auto [here, there] = models(config);
    store_weights(*here, format);
    store_weights(*there, format);
    expect_equal(written(*there, many(device())), written(*here, many(torch::kCPU)), 1e-2);
  }
}

TEST_P(DecodingOnAGpu, LogitsThatAreNoNumbersEndTheirRequestOnly) {
  const auto [here, there] = models(small_gpt2());
  const InferenceScope scope(*there);
  // Row 6 of the table reads and is read as no number: so does the text that has it, and no other one.
  class NoNumber final : public LogitsProcessor {
   public:
    torch::Tensor process(const torch::Tensor& logits, std::span<const SequenceView> rows) const override {
      return rows.front().generated.size() < 3 ? logits : logits * std::numeric_limits<double>::quiet_NaN();
    }
  };
  Scheduler scheduler(*there->generative(), device());
  const auto bad = scheduler.submit(request({5, 6}, 9, rules({}, NoNumber()), 0));
  const auto good = scheduler.submit(request({5, 7}, 9, rules({}), 1));
  while (scheduler.step()) {
  }
  EXPECT_THAT(message_of<CheckpointError>([&] { scheduler.require(bad); }),
              ::testing::HasSubstr("logits are not numbers"));
  scheduler.require(good);
  EXPECT_FALSE(scheduler.outputs(good).front().ids.empty());
}

/// Counts what is asked of the device. Counts do not depend on widths.
class WorkOfDecoding : public DecodingOnAGpu {
 protected:
  void SetUp() override {
    DecodingOnAGpu::SetUp();
    if (!is_strict()) GTEST_SKIP() << "only the strict device counts";
  }
  static std::vector<GenerationRequest> requests(size_t n, const std::shared_ptr<const TokenRules>& rules) {
    std::vector<GenerationRequest> result;
    for (size_t i = 0; i < n; ++i) {
      result.push_back(request(TokenIds(1 + i % 5, static_cast<int64_t>(4 + i % 8)), 60, rules, i));
      result.back().limits.ends = {};
      result.back().logprobs = TokenLogprobs::none;
    }
    return result;
  }
  /// The work of a step after `n_before` others.
  DeviceWork step_of(Model& model, const std::vector<GenerationRequest>& all, size_t n_before) const {
    const InferenceScope scope(model);
    Scheduler scheduler(*model.generative(), device());
    for (const auto& one : all) scheduler.submit(one);
    for (size_t i = 0; i < n_before; ++i) scheduler.step();
    return work_of([&] { scheduler.step(); });
  }
};
INSTANTIATE_TEST_SUITE_P(Each, WorkOfDecoding, ::testing::Values("strict", "kernels"), device_name);

TEST_P(WorkOfDecoding, ATokenIsALaunchAndAReadingThatComesLate) {
  auto config = small_gpt2();
  config.n_layers = 12;  // as GPT-2
  config.max_positions = 1024;
  const auto model = models(config).there;
  store_weights(*model, WeightFormat::bf16);
  const auto greedy = rules({}), drawn = rules(1, Temperature(0.8), TopK(5), TopP(0.9));
  for (const auto& [name, n, chosen] :
       {std::tuple("one row, greedy", 1, greedy), std::tuple("one row, drawn", 1, drawn),
        std::tuple("32 unequal rows, greedy", 32, greedy), std::tuple("32 unequal rows, drawn", 32, drawn)}) {
    SCOPED_TRACE(name);
    const auto work = step_of(*model, requests(static_cast<size_t>(n), chosen), 12);
    std::cout << name << ": " << work.in_words() << "\n" << work.most_frequent();
    EXPECT_EQ(work.launches, 1);
    EXPECT_EQ(work.uploads, 0);
    EXPECT_EQ(work.downloads, 1);
    EXPECT_EQ(work.waits, 1);
    // With our kernels a layer takes five, or thirteen with more rows than they multiply; a step has up to 80
    // others.
    EXPECT_LE(work.kernels, !has_kernels() ? 310 : n == 1 ? 12 * 5 + 80 : 12 * 13 + 80);
  }
}

TEST_P(WorkOfDecoding, PromptsAreReadInOneCall) {
  const auto model = models(small_gpt2()).there;
  const auto one = step_of(*model, requests(1, rules({})), 0),
             all = step_of(*model, requests(16, rules({})), 0);
  std::cout << "one prompt: " << one.in_words() << "\n16 prompts: " << all.in_words() << "\n";
  EXPECT_EQ(all.by_operation.at("aten::native_layer_norm"), one.by_operation.at("aten::native_layer_norm"));
  EXPECT_EQ(all.waits, one.waits);
  EXPECT_LE(all.kernels, one.kernels + 8) << "what was read is copied to the slots of all rows at once\n"
                                          << all.most_frequent();
}

// A row that joins is copied into its slot, and those that are there stay where they are: the recorded step
// goes on.
TEST_P(WorkOfDecoding, RowsThatJoinMoveNoOthers) {
  const auto model = models(small_gpt2()).there;
  const InferenceScope scope(*model);
  Scheduler scheduler(*model->generative(), device());
  const auto all = requests(8, rules({}));
  for (size_t i = 0; i < 5; ++i) scheduler.submit(all[i]);
  for (int step = 0; step < 8; ++step) scheduler.step();
  scheduler.submit(all[5]);
  scheduler.step();
  const auto work = work_of([&] { scheduler.step(); });
  const int64_t n_layers = 2;
  EXPECT_LE(work.launches, 4 + 6 * n_layers)
      << "the step, what tells the device of the new row, and the copying of its keys and values\n"
      << work.most_frequent();
  EXPECT_EQ(work.waits, 1);
}

}  // namespace
}  // namespace zoo::testing

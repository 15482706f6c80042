// What people do with a trained model, on a GPU: the processor trains it, and both use it.

#include <functional>
#include <thread>

#include "analysis/attention_maps.h"
#include "analysis/embeddings.h"
#include "base/error.h"
#include "costs/measure.h"
#include "generation/fill_mask.h"
#include "generation/generator.h"
#include "generation/text_scores.h"
#include "models/inference_scope.h"
#include "models/stack.h"
#include "serving/service.h"
#include "tests/support/errors.h"
#include "tests/training/on_a_gpu.h"

namespace zoo::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::vector<std::string> kPrompts = {"sun moon", "star", "sea wind rain tree"};

using OpenRun = ::zoo::Run;  // Test has a function of this name

class UsesOnAGpu : public OnAGpu {
 protected:
  OpenRun trained(std::string_view task, torch::Device where, std::optional<WeightFormat> weights = {},
                  const std::vector<std::string>& overrides = {}) {
    const std::string name(task);
    if (!std::filesystem::exists(world().path(name))) train_on(torch::kCPU, task, name, exact(overrides));
    return OpenRun::open(world().path(name), where, weights);
  }
  std::string texts(const OpenRun& run, const GenerationConfig& options,
                    const std::vector<std::string>& prompts = kPrompts) const {
    std::string all;
    for (const auto& prompt : Generator(run.model(), run.tokenizer()).generate(prompts, options)) {
      for (const auto& output : prompt.outputs) all += output.text + "\n";
    }
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(Each, UsesOnAGpu, both_devices(), device_name);

TEST_P(UsesOnAGpu, TextsAreThoseOfTheProcessor) {
  const std::vector<GenerationConfig> ways = {
      {.max_new_tokens = 8, .temperature = 0},
      {.max_new_tokens = 40, .temperature = 0.8, .num_samples = 2, .seed = 3},
      {.max_new_tokens = 8, .temperature = 0.9, .top_k = 5, .top_p = 0.9, .min_p = 0.01, .seed = 1},
      {.max_new_tokens = 8, .beam = 3, .num_samples = 2},
      {.max_new_tokens = 8, .beam = 4, .beam_groups = 2, .diversity_penalty = 0.5},
      {.max_new_tokens = 12, .temperature = 0, .prompt_lookup = 3},
      {.max_new_tokens = 8, .temperature = 0, .repetition_penalty = 1.3, .no_repeat_ngram_size = 2},
      {.max_new_tokens = 8, .temperature = 0, .regex = "[a-z ]+"},
      {.max_new_tokens = 12, .temperature = 0.6, .seed = 8, .encoder_repetition_penalty = 0.5},
      {.max_new_tokens = 30, .temperature = 1.2, .num_samples = 3, .seed = 5, .stop = {"e", "un"}},
      {.max_new_tokens = 12, .temperature = 0.7, .seed = 6, .stop = {"a"}, .min_new_tokens = 5},
      {.max_new_tokens = 12,
       .temperature = 1.1,
       .seed = 7,
       .sequence_biases = {{.tokens = {9}, .bias = 2.0}},
       .presence_penalty = 0.3,
       .frequency_penalty = 0.2}};
  for (const std::string task : {"language_modeling", "text_to_text"}) {
    const auto here = trained(task, torch::kCPU), there = trained(task, device());
    for (size_t i = 0; i < ways.size(); ++i) {
      SCOPED_TRACE(fmt::format("{}, way {}", task, i));
      if (task == "text_to_text" && ways[i].prompt_lookup > 0) continue;  // decoders have it
      EXPECT_EQ(texts(there, ways[i]), texts(here, ways[i]));
    }
  }
}

TEST_P(UsesOnAGpu, ADraftModelProposes) {
  const auto run = trained("language_modeling", device()), draft = trained("language_modeling", device());
  Generator generator(run.model(), run.tokenizer());
  const GenerationConfig options{.max_new_tokens = 12, .temperature = 0};
  const auto alone = generator.generate(kPrompts, options);
  generator.use_draft(draft.model());
  const auto together = generator.generate(kPrompts, options);
  for (size_t i = 0; i < alone.size(); ++i)
    EXPECT_EQ(together[i].outputs.front().text, alone[i].outputs.front().text);
}

TEST_P(UsesOnAGpu, ScoresMetricsAndPredictionsAreThoseOfTheProcessor) {
  for (const std::string task :
       {"language_modeling", "masked_language_modeling", "text_to_text", "text_classification",
        "token_classification", "image_classification", "object_detection", "speech_recognition"}) {
    SCOPED_TRACE(task);
    const auto here = trained(task, torch::kCPU), there = trained(task, device());
    const auto wanted = here.evaluate(Split::valid), found = there.evaluate(Split::valid);
    ASSERT_EQ(found.size(), wanted.size());
    for (const auto& [key, value] : wanted) {
      SCOPED_TRACE(key);
      if (std::isnan(value)) continue;
      EXPECT_NEAR(found.at(key), value, 2e-3 * std::max(1.0, std::abs(value)));
    }
  }
}

TEST_P(UsesOnAGpu, PredictsAsTheProcessorDoes) {
  for (const std::string task : {"text_classification", "token_classification"}) {
    SCOPED_TRACE(task);
    const auto here = trained(task, torch::kCPU), there = trained(task, device());
    const auto wanted = here.task().predict(here.model(), kPrompts),
               found = there.task().predict(there.model(), kPrompts);
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].answer.index(), wanted[i].answer.index());
      if (task == "token_classification") {
        EXPECT_EQ(found[i].tokens().size(), wanted[i].tokens().size());
        continue;
      }
      ASSERT_EQ(found[i].labels().size(), wanted[i].labels().size());
      for (size_t j = 0; j < found[i].labels().size(); ++j)
        EXPECT_NEAR(found[i].labels()[j].probability, wanted[i].labels()[j].probability, 1e-3);
    }
  }
}

TEST_P(UsesOnAGpu, LogProbabilitiesVectorsAndMapsAreThoseOfTheProcessor) {
  const auto here = trained("language_modeling", torch::kCPU), there = trained("language_modeling", device());
  std::vector<TokensToScore> texts;
  for (const auto& text : kPrompts)
    texts.push_back(tokens_to_score(text, here.tokenizer(), *here.model().generative()));
  const auto wanted = token_logprobs(here.model(), texts), found = token_logprobs(there.model(), texts);
  for (size_t i = 0; i < wanted.size(); ++i) {
    for (size_t t = 0; t < wanted[i].size(); ++t) EXPECT_NEAR(found[i][t], wanted[i][t], 1e-3);
  }
  const auto vectors = [&](const OpenRun& run) {
    return embed(run.model(), run.tokenizer(), kPrompts, {}).vectors;
  };
  EXPECT_TRUE(torch::allclose(vectors(there), vectors(here), 1e-3, 1e-4));
  const auto maps = [&](const OpenRun& run) { return attention_report(run, "sun moon").layers; };
  const auto theirs = maps(there), ours = maps(here);
  ASSERT_EQ(theirs.size(), ours.size());
  for (size_t i = 0; i < ours.size(); ++i)
    EXPECT_TRUE(torch::allclose(theirs[i].weights, ours[i].weights, 1e-3, 1e-4));
  const auto masked = trained("masked_language_modeling", torch::kCPU),
             masked_there = trained("masked_language_modeling", device());
  const auto fill = [](const OpenRun& run) {
    return run.task().samples(run.model(), {"sun m<mask>on"}).front().output;
  };
  EXPECT_EQ(fill(masked_there), fill(masked));
}

// Whole numbers are the same on each device, and so are the rounded inputs.
TEST_P(UsesOnAGpu, WeightsInFewerBitsAreThoseOfTheProcessor) {
  for (const auto format : {WeightFormat::bf16, WeightFormat::fp16, WeightFormat::int8, WeightFormat::int4}) {
    SCOPED_TRACE(name_of(format));
    const auto here = trained("language_modeling", torch::kCPU, format, {"model.d_model=48"}),
               there = trained("language_modeling", device(), format);
    std::vector<TokensToScore> texts;
    for (const auto& text : kPrompts)
      texts.push_back(tokens_to_score(text, here.tokenizer(), *here.model().generative()));
    const bool is_whole = format == WeightFormat::int8 || format == WeightFormat::int4;
    const auto wanted = token_logprobs(here.model(), texts), found = token_logprobs(there.model(), texts);
    for (size_t i = 0; i < wanted.size(); ++i) {
      for (size_t t = 0; t < wanted[i].size(); ++t)
        EXPECT_NEAR(found[i][t], wanted[i][t], is_whole ? 1e-3 : 0.03);
    }
  }
}

// In 16 bits each task computes, and nearly as in fp32: no operation gets two types that a GPU refuses.
TEST_P(UsesOnAGpu, EveryTaskComputesInSixteenBits) {
  for (const std::string task :
       {"language_modeling", "masked_language_modeling", "text_to_text", "text_classification",
        "token_classification", "image_classification", "object_detection", "speech_recognition"}) {
    const auto wanted = trained(task, device()).evaluate(Split::valid);
    for (const auto format : {WeightFormat::bf16, WeightFormat::fp16}) {
      SCOPED_TRACE(fmt::format("{}, {}", task, name_of(format)));
      const auto run = trained(task, device(), format);
      EXPECT_EQ(run.weight_format(), format);
      EXPECT_NE(precision_in_use(run.model()), Precision::fp32);
      const auto found = run.evaluate(Split::valid);
      EXPECT_NEAR(found.at("loss"), wanted.at("loss"), 0.02 * std::max(1.0, std::abs(wanted.at("loss"))));
    }
  }
}

TEST_P(UsesOnAGpu, EveryKindOfLayerWritesInSixteenBits) {
  const std::vector<std::vector<std::string>> models = {
      {"model.position=sinusoidal", "model.norm_placement=post"},
      {"model.position=rotary", "model.norm=rms_norm", "model.activation=swiglu", "model.n_kv_heads=1",
       "model.qk_norm=true", "model.projection=fused", "model.gate=fused", "model.norm_placement=sandwich",
       "model.attention_softcap=50", "model.logits_softcap=30"},
      {"model.position=alibi"},
      {"model.position=rotary", "model.attention={type: window, size: 5}"},
      {"model.position=t5"},
      {"model.position=shaw"},
      {"model.position=rotary", "model.attention={type: strided, stride: 4}"},
      {"model.attention=linear", "model.norm_placement=parallel", "model.layer_scale=0.1"},
      {"model.attention=performer"},
      {"model.attention={type: delta}", "model.position=none"}};
  for (size_t i = 0; i < models.size(); ++i) {
    SCOPED_TRACE(fmt::format("{}", fmt::join(models[i], ", ")));
    const auto name = fmt::format("layers-{}", i);
    train_on(torch::kCPU, "language_modeling", name, exact(models[i]));
    const auto here = OpenRun::open(world().path(name), torch::kCPU),
               there = OpenRun::open(world().path(name), device(), WeightFormat::bf16);
    EXPECT_NEAR(there.evaluate(Split::valid).at("loss"), here.evaluate(Split::valid).at("loss"), 0.03);
    EXPECT_FALSE(texts(there, {.max_new_tokens = 8, .temperature = 0.8}).empty());
    EXPECT_FALSE(texts(there, {.max_new_tokens = 8, .beam = 2}).empty());
  }
}

TEST_P(UsesOnAGpu, ACacheInFewerBitsIsRefusedAtTheStart) {
  const auto run = trained("language_modeling", device());
  for (const auto format : {CacheFormat::bf16, CacheFormat::int8}) {
    EXPECT_THAT(message_of<UsageError>([&] { store_cache(run.model(), format); }),
                HasSubstr(fmt::format("generation.cache {} needs a CPU", name_of(format))));
  }
  store_cache(run.model(), CacheFormat::fp32);
}

TEST_P(UsesOnAGpu, PromptsWithUnknownTokensAreRefused) {
  const auto run = trained("language_modeling", device(), {}, {"model.vocab_size=64"});
  const Generator generator(run.model(), run.tokenizer());
  EXPECT_THAT(message_of<DataError>([&] { run.model().check_tokens(std::vector<int64_t>{1, 64}); }),
              HasSubstr("the model has no vector for the token 64"));
  const auto ids = torch::tensor({{1, 2}, {3, 99}}, torch::kInt64);
  EXPECT_THAT(message_of<DataError>([&] { run.model().on_device({.input = {.ids = ids}}); }),
              HasSubstr("the model has no vector for the token 99"));
  const Batch batch{.input = {.ids = ids.clamp_max(5)},
                    .targets = torch::tensor({1, 2, 3, 64}, torch::kInt64)};
  EXPECT_THAT(message_of<DataError>([&] { run.model().on_device(batch); }),
              HasSubstr("the model has no output for the target 64"));
  EXPECT_NO_THROW(run.model().check_tokens(std::vector<int64_t>{0, 63}));
  EXPECT_NO_THROW(generator.generate(kPrompts, {.max_new_tokens = 2}));
}

TEST_P(UsesOnAGpu, AServerAnswersAsAGenerator) {
  const auto run = trained("language_modeling", torch::kCPU);
  Service service(ServiceOptions{
      .models = {{.id = "writer", .path = world().path("language_modeling"), .device = device()}}});
  const GenerationConfig options{.max_new_tokens = 8, .temperature = 0};
  const auto answer =
      service.complete("writer", {.prompts = {kPrompts.begin(), kPrompts.end()}, .options = options});
  std::string all;
  for (const auto& output : answer.outputs) all += output.text + "\n";
  EXPECT_EQ(all, texts(run, options));
}

// Each request has rules of its own, some of which only the host knows, and comes while others are written.
TEST_P(UsesOnAGpu, AServerWritesInCompanyWhatItWritesAlone) {
  const auto run = trained("language_modeling", torch::kCPU);
  Service service(ServiceOptions{
      .models = {{.id = "writer", .path = world().path("language_modeling"), .device = device()}}});
  const std::vector<GenerationConfig> ways = {
      {.max_new_tokens = 40, .temperature = 0.8, .seed = 3},
      {.max_new_tokens = 9, .temperature = 0},
      {.max_new_tokens = 30, .temperature = 1.3, .top_k = 5, .num_samples = 3, .seed = 4, .stop = {"o"}},
      {.max_new_tokens = 30, .temperature = 1, .top_p = 0.8, .seed = 5, .repetition_penalty = 1.3},
      {.max_new_tokens = 20, .temperature = 1, .seed = 6, .regex = "[a-z ]+"},
      {.max_new_tokens = 25, .temperature = 0.9, .seed = 7, .prompt_lookup = 3}};
  const auto written = [&](size_t i) {
    std::vector<std::string> all;
    for (const auto& output :
         service.complete("writer", {.prompts = {kPrompts[i % kPrompts.size()]}, .options = ways[i]}).outputs)
      all.push_back(output.text);
    return all;
  };
  std::vector<std::vector<std::string>> alone, together(ways.size());
  for (size_t i = 0; i < ways.size(); ++i) alone.push_back(written(i));
  {
    std::vector<std::jthread> clients;
    for (size_t i = 0; i < ways.size(); ++i) clients.emplace_back([&, i] { together[i] = written(i); });
  }
  for (size_t i = 0; i < ways.size(); ++i) {
    EXPECT_EQ(together[i], alone[i]) << "way " << i;
    std::vector<std::string> here;
    const auto generated =
        Generator(run.model(), run.tokenizer()).generate({kPrompts[i % kPrompts.size()]}, ways[i]);
    for (const auto& output : generated.front().outputs) here.push_back(output.text);
    EXPECT_EQ(alone[i], here) << "way " << i;
  }
}

TEST_P(UsesOnAGpu, SpeedIsMeasured) {
  const auto run = trained("language_modeling", torch::kCPU);
  const auto speed = measure_speed(run.task(), device(), {.seconds = 0.01});
  EXPECT_GT(speed.train.tokens_per_second, 0);
  EXPECT_GT(speed.decode->tokens_per_second, 0);
}

TEST_P(UsesOnAGpu, AServerWithoutEnoughMemoryRefusesAndLives) {
  if (!is_strict()) GTEST_SKIP() << "only the memory of the strict device can be limited";
  trained("language_modeling", torch::kCPU);
  Service service(ServiceOptions{
      .models = {{.id = "writer", .path = world().path("language_modeling"), .device = device()}}});
  const CompletionRequest request{.prompts = {kPrompts.begin(), kPrompts.end()},
                                  .options = {.max_new_tokens = 4, .temperature = 0}};
  const auto before = service.complete("writer", request);
  limit_strict_memory(16);
  EXPECT_THROW(service.complete("writer", request), c10::OutOfMemoryError);
  limit_strict_memory({});
  const auto after = service.complete("writer", request);
  for (size_t i = 0; i < before.outputs.size(); ++i) EXPECT_EQ(after.outputs[i].text, before.outputs[i].text);
}

// A device that has failed computes nothing more, so a server on it ends and says why.
TEST_P(UsesOnAGpu, AServerEndsWithItsDevice) {
  if (!is_strict()) GTEST_SKIP() << "only the strict device can fail on purpose";
  trained("language_modeling", torch::kCPU);
  Child child([&] {
    Service service(ServiceOptions{
        .models = {{.id = "writer", .path = world().path("language_modeling"), .device = device()}}});
    const CompletionRequest request{.prompts = {kPrompts.begin(), kPrompts.end()},
                                    .options = {.max_new_tokens = 4}};
    if (service.complete("writer", request).outputs.size() != kPrompts.size()) return 7;
    fail_strict_device();
    service.complete("writer", request);
    return 8;
  });
  EXPECT_EQ(child.wait(), EXIT_FAILURE);
}

}  // namespace
}  // namespace zoo::testing

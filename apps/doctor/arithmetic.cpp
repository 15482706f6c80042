#include "apps/doctor/arithmetic.h"

#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <c10/util/Exception.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "base/stopwatch.h"
#include "generation/generator.h"
#include "models/families/families.h"
#include "models/inference_scope.h"
#include "parallel/process_group.h"
#include "tasks/experiment.h"
#include "tasks/token_cross_entropy.h"
#include "tokenizers/byte_tokenizer.h"
#include "training/learner.h"

namespace zoo {
namespace {

constexpr std::string_view kText = "the zoo has lions, owls and whales; ";
constexpr std::string_view kPrompt = "the zoo";
constexpr int64_t kRows = 8, kLength = 48, kSteps = 60, kNewTokens = 29;
constexpr double kRate = 1e-2;

Experiment tiny_experiment() {
  Experiment experiment;
  auto& model = experiment.model;
  model.architecture = Architecture::decoder;
  model.d_model = 32;
  model.n_layers = 2;
  model.n_heads = 2;
  model.d_ff = 64;
  model.max_positions = 64;
  model.position = Position::rotary;
  model.dropout = 0;
  experiment.training.precision = Precision::fp32;
  // With Adam's usual 1e-8, parameters with hardly any gradient go by its sign, which is that of rounding.
  experiment.training.optimizer.eps = 1e-4;
  return experiment;
}

/// (B, T) tokens of the line, repeated, each row from another byte on, and the tokens that follow them.
Batch lines(const Tokenizer& tokenizer) {
  std::string text;
  while (std::ssize(text) < kRows + kLength + 1) text += kText;
  const auto all = torch::tensor(tokenizer.encode(text), torch::kInt64);
  const auto windows = all.unfold(0, kLength + 1, 1).slice(0, 0, kRows);  // (B, T + 1)
  Batch batch;
  batch.input.ids = windows.slice(1, 0, kLength).contiguous();
  batch.targets = windows.slice(1, 1).flatten();
  return batch;
}

/// The likeliest continuation of the prompt, without any state between the tokens.
std::string write_without_cache(Model& model, const Tokenizer& tokenizer) {
  const InferenceScope inference(model);
  auto ids = tokenizer.encode(kPrompt);
  const auto n_prompt = ids.size();
  for (int64_t i = 0; i < kNewTokens; ++i) {
    const Batch batch{.input = {.ids = torch::tensor(ids, torch::kInt64).view({1, -1}).to(model.device())}};
    const auto logits = model.logits(model.features(batch));  // (T, V)
    ids.push_back(logits[-1].argmax().item<int64_t>());
  }
  return tokenizer.decode(std::span(ids).subspan(n_prompt));
}

void train_and_write(c10::Device device, ArithmeticFacts& facts) {
  const auto experiment = tiny_experiment();
  const ByteTokenizer tokenizer(SpecialTokenSet::none, /*lowercase=*/false);
  torch::manual_seed(1);
  const std::shared_ptr<Model> model =
      initialized_model(experiment.model, ModelPurpose{.vocab_size = tokenizer.vocab_size()});
  const ProcessGroup alone;
  Learner learner(experiment, model, std::make_shared<TokenCrossEntropy>(), alone, device);
  const BatchSequence batches{lines(tokenizer)};
  for (int64_t step = 0; step < kSteps; ++step) {
    facts.losses.push_back(learner.differentiate(batches, 1.0).read().losses.front());
    learner.step(kRate);
    learner.forget_gradients();
  }
  const auto written = Generator(*model, tokenizer)
                           .generate(std::vector<std::string>{std::string(kPrompt)},
                                     {.max_new_tokens = kNewTokens, .temperature = 0});
  facts.text = written.front().outputs.front().text;
  facts.text_without_cache = write_without_cache(*model, tokenizer);
}

std::string without_trace(std::string_view text) { return std::string(text.substr(0, text.find('\n'))); }

}  // namespace

ArithmeticFacts check_arithmetic(c10::Device device) {
  ArithmeticFacts facts{.device = device.str(), .losses = {}, .text = {}, .text_without_cache = {}};
  const Stopwatch watch;
  try {
    train_and_write(device, facts);
  } catch (const c10::Error& error) {
    facts.failure = without_trace(error.what_without_backtrace());
  } catch (const std::exception& error) {
    facts.failure = without_trace(error.what());
  }
  facts.seconds = watch.seconds();
  return facts;
}

}  // namespace zoo

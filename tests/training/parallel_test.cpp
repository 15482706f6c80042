// Processes that train together, forked by the test.

#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "base/tensor_memory.h"
#include "models/embedders/resnet.h"
#include "optimizers/shards.h"
#include "parallel/process_group.h"
#include "tasks/token_cross_entropy.h"
#include "tests/support/environment.h"
#include "tests/support/errors.h"
#include "tests/support/in_processes.h"
#include "tests/support/small_models.h"
#include "tests/support/temp_dir.h"
#include "tests/support/training.h"
#include "training/gradient_accumulator.h"
#include "training/gradient_reducer.h"

namespace zoo::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

std::shared_ptr<Model> model_of(const ModelConfig& config) {
  torch::manual_seed(5);
  const auto model = initialized_model(config, purpose_of(config.architecture));
  model->train();
  return model;
}

Batch batch_of(const FamilySelection& architecture, int64_t n_rows, uint64_t seed) {
  torch::manual_seed(seed);
  return small_batch(architecture, {.ids = tokens(n_rows, 7)});
}

TEST(ProcessGroups, AloneNothingIsExchanged) {
  const ProcessGroup alone;
  const auto tensor = torch::ones({3});
  alone.all_reduce(tensor).wait();
  alone.broadcast(tensor, 0).wait();
  EXPECT_TRUE(torch::equal(tensor, torch::ones({3})));
  EXPECT_EQ(alone.bytes_exchanged(), 0);
  EXPECT_TRUE(alone.is_first());
  EXPECT_THROW(alone.run_or_fail_together([] { throw DataError("x"); }), DataError);
}

TEST(ProcessGroups, SumsAndSends) {
  in_processes(3, [](const ProcessGroup& processes) {
    const auto rank = static_cast<double>(processes.rank());
    const auto all = torch::full({4}, rank + 1), one = torch::full({4}, rank + 1),
               sent = torch::full({2}, rank);
    processes.all_reduce(all).wait();
    EXPECT_TRUE(torch::equal(all, torch::full({4}, 6.0)));
    processes.reduce(one, 1).wait();
    if (processes.rank() == 1) {
      EXPECT_TRUE(torch::equal(one, torch::full({4}, 6.0)));
    }
    processes.broadcast(sent, 2).wait();
    EXPECT_TRUE(torch::equal(sent, torch::full({2}, 2.0)));
    const auto letter = torch::full({2}, rank);
    if (processes.rank() == 2) processes.send(letter, 0);
    if (processes.rank() == 0) processes.recv(letter, 2);
    if (processes.rank() == 0) {
      EXPECT_TRUE(torch::equal(letter, torch::full({2}, 2.0)));
    }
    EXPECT_EQ(processes.bytes_exchanged(), (4 + 4 + 2 + (processes.rank() == 1 ? 0 : 2)) * 4);
  });
}

TEST(ProcessGroups, EachSendsRowsToEach) {
  in_processes(3, [](const ProcessGroup& processes) {
    // Process r sends r + p rows to process p, but none to itself: each with both ranks in it.
    const auto rows = [&](int64_t from, int64_t to) { return from == to ? 0 : from + to; };
    for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kLong}) {
      std::vector<int64_t> sent, received;
      std::vector<torch::Tensor> out, expected;
      for (int64_t p = 0; p < 3; ++p) {
        sent.push_back(rows(processes.rank(), p));
        received.push_back(rows(p, processes.rank()));
        out.push_back(torch::full({sent.back(), 2}, 10 * processes.rank() + p, type));
        expected.push_back(torch::full({received.back(), 2}, 10 * p + processes.rank(), type));
      }
      const auto wanted = torch::cat(expected), found = torch::empty_like(wanted);
      processes.all_to_all(found, torch::cat(out), received, sent).wait();
      EXPECT_TRUE(torch::equal(found, wanted));
      // One has nothing to send, and another gets nothing.
      const auto one = torch::full({processes.rank() == 2 ? 1 : 0, 2}, 5, type),
                 got = torch::empty({processes.rank() == 0 ? 1 : 0, 2}, one.options());
      processes
          .all_to_all(got, one, {0, 0, processes.rank() == 0 ? 1 : 0}, {processes.rank() == 2 ? 1 : 0, 0, 0})
          .wait();
      EXPECT_EQ(got.sum().item<int64_t>(), processes.rank() == 0 ? 10 : 0);
    }
  });
}

TEST(ProcessGroups, AFailureOfOneIsAFailureOfAll) {
  in_processes(3, [](const ProcessGroup& processes) {
    const auto work = [&] {
      if (processes.rank() == 1) throw DataError("the file is missing");
    };
    if (processes.rank() == 1) {
      EXPECT_THROW(processes.run_or_fail_together(work), DataError);
    } else {
      EXPECT_THROW(processes.run_or_fail_together(work), PeerError);
    }
    EXPECT_NO_THROW(processes.run_or_fail_together([] {}));
  });
}

TEST(ProcessGroups, OneThatHangsIsNotWaitedForLongerThanAgreed) {
  const TempDir dir;
  in_processes(
      2,
      [&](const ProcessGroup& processes) {
        const auto tensor = torch::ones({2});
        processes.all_reduce(tensor).wait();
        if (processes.rank() == 1) {
          while (!std::filesystem::exists(dir / "done")) std::this_thread::sleep_for(10ms);
          ::_exit(0);
        }
        try {
          processes.all_reduce(tensor).wait();
          ADD_FAILURE() << "nobody was there";
        } catch (const PeerError& error) {
          EXPECT_THAT(error.what(), HasSubstr("rank 0 of 2: another process of this training"));
          EXPECT_THAT(error.what(), HasSubstr("ExistingRun::resume"));
        }
        dir.write("done", "");
      },
      5s);
}

TEST(ProcessGroups, TheEnvironmentIsChecked) {
  const auto problem = [] { return message_of<UsageError>([] { place_from_environment(); }); };
  const ScopedEnvironment size("WORLD_SIZE", "2");
  EXPECT_THAT(problem(), HasSubstr("WORLD_SIZE is set, but not RANK"));
  {
    const ScopedEnvironment rank("RANK", "2");
    EXPECT_THAT(problem(), HasSubstr("RANK=2: must be a number from 0 to 1"));
  }
  const ScopedEnvironment rank("RANK", "1"), port("MASTER_PORT", "1234"),
      store("TORCHELASTIC_USE_AGENT_STORE", "True");
  const auto place = place_from_environment();
  ASSERT_TRUE(place);
  EXPECT_EQ(place->rank, 1);
  EXPECT_EQ(place->size, 2);
  EXPECT_EQ(place->local_rank, 1);
  EXPECT_EQ(place->port, 1234);
  EXPECT_EQ(place->store, ProcessPlace::Store::of_launcher);
}

TEST(GradientReducers, SendABucketWhenItIsFullAndInOneOrder) {
  in_processes(2, [](const ProcessGroup& processes) {
    const auto rank = static_cast<double>(processes.rank());
    std::vector<torch::Tensor> parameters;
    for (const int64_t n : {3, 4, 5, 6}) parameters.push_back(torch::zeros({n}, torch::requires_grad()));
    GradientReducer reducer(processes, parameters, {.bucket_bytes = 32, .first_bucket_bytes = 24});
    ASSERT_EQ(reducer.n_buckets(), 3);  // {6}, {5, 4}, {3}
    for (int step = 0; step < 2; ++step) {
      reducer.begin();
      const auto before = processes.bytes_exchanged();
      reducer.mark_ready(1, torch::full({4}, rank));
      reducer.mark_ready(2, step == 0 ? torch::Tensor() : torch::full({5}, 1 + rank));
      EXPECT_EQ(processes.bytes_exchanged(), before) << "the bucket is full, but another one comes first";
      reducer.mark_ready(3, processes.rank() == 0 ? torch::Tensor() : torch::full({6}, 7.0));
      EXPECT_EQ(processes.bytes_exchanged(), before + (6 + 1 + 9 + 2) * 4);
      reducer.mark_ready(0, torch::full({3}, 10 * (rank + 1)));
      reducer.finish();
      EXPECT_TRUE(torch::equal(parameters[0].grad(), torch::full({3}, 30.0)));
      EXPECT_TRUE(torch::equal(parameters[1].grad(), torch::full({4}, 1.0)));
      EXPECT_TRUE(torch::equal(parameters[3].grad(), torch::full({6}, 7.0))) << "one of the two has it";
      EXPECT_EQ(parameters[2].grad().defined(), step == 1) << "none has it at first";
      if (step == 1) {
        EXPECT_TRUE(torch::equal(parameters[2].grad(), torch::full({5}, 3.0)));
      }
    }
  });
}

struct Case {
  std::string name;
  ModelConfig model;
  TokenCrossEntropyOptions loss = {};
  std::vector<int64_t> rows = {6};  // of each batch of the step
  int threads = 1;
  ActivationCheckpointing checkpointing = ActivationCheckpointing::none;
};

std::vector<Case> cases() {
  const auto decoder = small_config(Architecture::decoder),
             both = small_config(Architecture::encoder_decoder);
  auto tied = decoder, shared = both, relative = both;
  tied.tie_embeddings = true;
  shared.share_embeddings = shared.tie_embeddings = true;
  relative.position = Position::t5;
  const TokenCrossEntropyOptions pieces{.logits_bytes = 1, .fewest_targets = 4};
  return {{"Decoder", decoder},
          {"Encoder", small_config(Architecture::encoder)},
          {"EncoderDecoder", both},
          {"Tied", tied},
          {"SharedInPieces", shared, pieces},
          {"InPieces", decoder, pieces, {6, 5}},
          {"TwoThreads", tied, pieces, {12, 13}, 2},
          {"SeveralBatches", both, {.label_smoothing = 0.1}, {4, 7, 5}},
          {"FewerRowsThanProcesses", relative, {}, {6, 2}},
          {"FewerRowsAtFirst", tied, pieces, {1, 6}},
          {"Checkpointed", relative, {}, {6}, 1, ActivationCheckpointing::every_layer},
          {"CheckpointedTied", tied, pieces, {12, 12}, 2, ActivationCheckpointing::every_layer}};
}

std::shared_ptr<const Objective> cross_entropy(const TokenCrossEntropyOptions& options = {}) {
  return std::make_shared<TokenCrossEntropy>(options);
}

class GradientsOf : public ::testing::TestWithParam<Case> {};

TEST_P(GradientsOf, ThreeProcessesAreThoseOfOne) {
  const auto& c = GetParam();
  in_processes(3, [&](const ProcessGroup& processes) {
    at::set_num_threads(c.threads);
    std::vector<Batch> batches;
    for (const int64_t n : c.rows)
      batches.push_back(batch_of(c.model.architecture, n, static_cast<uint64_t>(n)));
    const auto model = model_of(c.model);
    model->checkpoint_activations(c.checkpointing);
    std::vector<torch::Tensor> expected;
    double expected_loss = 0;
    {
      GradientAccumulator alone(model, cross_entropy(c.loss));
      expected_loss = alone.differentiate(batches).sum().item<double>();
      for (auto& parameter : model->parameters()) {
        expected.push_back(parameter.grad());
        parameter.mutable_grad().reset();
      }
    }
    GradientAccumulator together(model, cross_entropy(c.loss), {}, processes,
                                 {.bucket_bytes = 4096, .first_bucket_bytes = 1024});
    for (int step = 0; step < 2; ++step) {
      const auto loss = together.differentiate(batches).sum();
      processes.all_reduce(loss).wait();
      EXPECT_NEAR(loss.item<double>(), expected_loss, 1e-5);
      const auto parameters = model->parameters();
      for (size_t i = 0; i < parameters.size(); ++i) {
        auto& found = parameters[i].mutable_grad();
        ASSERT_EQ(found.defined(), expected[i].defined()) << i;
        if (found.defined()) {
          EXPECT_TRUE(torch::allclose(found, expected[i], 1e-4, 1e-6)) << i;
        }
        found.reset();
      }
    }
  });
}

TEST(MixedRowsInProcesses, AreRefused) {
  in_processes(2, [](const ProcessGroup& processes) {
    ModelConfig config;
    config.architecture = Selection("resnet", ResnetConfig{.depth = ResnetDepth::layers_18, .width = 2});
    const auto model = initialized_model(config, {.head = HeadKind::classification,
                                                  .n_classes = 2,
                                                  .image = {.channels = 1, .height = 8, .width = 8}});
    model->train();
    EXPECT_THAT(message_of<ConfigError>([&] { GradientAccumulator(model, cross_entropy(), {}, processes); }),
                HasSubstr("cannot be split into processes: train with one process, or choose norm: group"));
  });
}

INSTANTIATE_TEST_SUITE_P(Parallel, GradientsOf, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

TEST(ParallelGradients, TravelWhileTheBackwardPassGoesOn) {
  in_processes(2, [](const ProcessGroup& processes) {
    at::set_num_threads(2);
    const auto model = model_of(small_config(Architecture::decoder));
    int64_t sent_before_the_end = -1, at_start = 0;
    // A backward pass makes the gradient of the embedding last.
    for (const auto& item : model->named_parameters()) {
      if (item.key().find("token") == std::string::npos) continue;
      item.value().register_hook(
          [&](const torch::Tensor&) { sent_before_the_end = processes.bytes_exchanged(); });
    }
    GradientAccumulator gradients(model, cross_entropy(), {.n_parts = 2}, processes,
                                  {.bucket_bytes = 4096, .first_bucket_bytes = 1024});
    at_start = processes.bytes_exchanged();
    gradients.differentiate({batch_of(Architecture::decoder, 8, 3)});
    EXPECT_GT(sent_before_the_end, at_start);
    EXPECT_LT(sent_before_the_end, processes.bytes_exchanged());
  });
}

TEST(ParallelGradients, AndDropoutOfTwoProcessesAreThoseOfTwoThreads) {
  in_processes(2, [](const ProcessGroup& processes) {
    auto config = small_config(Architecture::encoder_decoder);
    config.dropout = config.attention_dropout = 0.3;
    const auto batch = batch_of(Architecture::encoder_decoder, 8, 3);
    const auto model = model_of(config);
    std::vector<torch::Tensor> expected;
    {
      at::set_num_threads(2);
      torch::manual_seed(9);
      GradientAccumulator(model, cross_entropy(), {.n_parts = 2}).differentiate({batch});
      for (auto& parameter : model->parameters()) {
        expected.push_back(parameter.grad());
        parameter.mutable_grad().reset();
      }
    }
    torch::manual_seed(9);
    GradientAccumulator gradients(model, cross_entropy(), {.n_parts = 1}, processes);
    gradients.differentiate({batch});
    const auto parameters = model->parameters();
    for (size_t i = 0; i < parameters.size(); ++i)
      EXPECT_TRUE(torch::allclose(parameters[i].grad(), expected[i], 1e-5, 1e-7)) << i;
  });
}

// Otherwise a run with dropout could not be resumed to the last bit: only the first process's generators are
// saved.
TEST(ParallelGradients, LeaveTheSameRandomNumbersInEveryProcess) {
  in_processes(2, [](const ProcessGroup& processes) {
    const auto model = model_of(small_config(Architecture::decoder));
    GradientAccumulator gradients(model, cross_entropy(), {.n_parts = 1, .micro_batch_size = 4}, processes);
    torch::manual_seed(3);
    gradients.differentiate({batch_of(Architecture::decoder, 9, 3)});  // 5 rows: two slices; 4 rows: one
    const auto drawn = torch::rand({}, torch::kDouble), sum = drawn.clone();
    processes.all_reduce(sum).wait();
    EXPECT_EQ(sum.item<double>(), 2 * drawn.item<double>());
  });
}

TEST(ProcessGroup, APortThatIsTakenIsSaid) {
  const Port port(Port::Use::taken);
  const auto message = message_of<SystemError>(
      [&] { ProcessGroup({.rank = 0, .size = 2, .port = port.number()}, torch::kCPU, 5s); });
  EXPECT_THAT(message, HasSubstr(fmt::format("port {} is in use", port.number())));
}

TEST(Shards, KeepNoCopyOfLargeParameters) {
  in_processes(2, [](const ProcessGroup& processes) {
    std::vector<Parameter> parameters;
    for (int64_t i = 0; i < 4; ++i) {
      parameters.push_back({fmt::format("p{}", i),
                            torch::full({256, 1024}, static_cast<double>(processes.rank())),
                            ParameterRole::hidden_matrix});
    }
    const TensorMemory memory(torch::kCPU);
    const Shards shards(processes, parameters);
    shards.broadcast_parameters();
    EXPECT_LT(memory.peak(), 1 << 20);
    for (size_t i = 0; i < parameters.size(); ++i)
      EXPECT_EQ(parameters[i].tensor.mean().item<int64_t>(), shards.owners()[i]) << i;
  });
}

TEST(Shards, AreEvenAndGatheredWhole) {
  in_processes(3, [](const ProcessGroup& processes) {
    const auto model = model_of(small_config(Architecture::decoder));
    const auto parameters = parameters_of(*model);
    const Shards shards(processes, parameters);
    const OptimizerConfig config;
    Optimizer whole(config, parameters_of(*model)), own(config, shards.own());
    std::vector<int64_t> sizes(3);
    int64_t total = 0, largest = 0;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const auto n = parameters[i].tensor.numel();
      sizes[static_cast<size_t>(shards.owners()[i])] += n;
      total += n;
      largest = std::max(largest, n);
    }
    for (const auto size : sizes) EXPECT_LE(size, total / 3 + largest);

    // One step with the whole optimiser, and one with its shards.
    torch::manual_seed(4);
    for (const auto& parameter : parameters)
      parameter.tensor.mutable_grad() = torch::randn_like(parameter.tensor);
    std::vector<torch::Tensor> before, after;
    for (const auto& parameter : parameters) before.push_back(parameter.tensor.detach().clone());
    whole.step(0.1);
    const torch::NoGradGuard no_grad;
    for (size_t i = 0; i < parameters.size(); ++i) {
      after.push_back(parameters[i].tensor.detach().clone());
      torch::Tensor(parameters[i].tensor).copy_(before[i]);
    }
    own.step(0.1);
    shards.broadcast_parameters();
    for (size_t i = 0; i < parameters.size(); ++i)
      EXPECT_TRUE(torch::equal(parameters[i].tensor, after[i])) << i;

    const auto state = shards.gather_state(config, own), expected = whole.state();
    if (!processes.is_first()) {
      EXPECT_TRUE(state.empty());
      return;
    }
    ASSERT_EQ(state.size(), expected.size());
    for (const auto& [name, tensor] : expected) EXPECT_TRUE(torch::equal(state.at(name), tensor)) << name;
  });
}

}  // namespace
}  // namespace zoo::testing

// Rows of a batch that go through the model one after the other: their dropout, and memory that runs out.

#include <mutex>

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "tasks/token_cross_entropy.h"
#include "tests/support/small_models.h"
#include "training/gradient_accumulator.h"

namespace zoo::testing {
namespace {

/// Keeps the features that a model makes, and has no memory for some passes.
class Watched final : public Model {
 public:
  explicit Watched(std::shared_ptr<Model> inner) : inner_(std::move(inner)) {
    register_module("inner", inner_);
  }
  torch::Tensor features(const Batch& batch) override {
    const auto features = inner_->features(batch);
    const std::scoped_lock lock(mutex_);
    ++n_passes;
    TORCH_CHECK_WITH(OutOfMemoryError, n_passes != fails_in_pass, "no room");
    for (const auto& row : features.detach().view({batch.n_rows(), -1}).unbind(0))
      rows.push_back(row.clone());
    return features;
  }
  torch::Tensor logits(const torch::Tensor& features) override { return inner_->logits(features); }
  int64_t n_outputs() const override { return inner_->n_outputs(); }
  torch::Tensor hidden_states(const Batch& batch) override { return inner_->hidden_states(batch); }
  void attention_maps(const Batch& batch, AttentionMaps& maps) override {
    inner_->attention_maps(batch, maps);
  }

  std::vector<torch::Tensor> rows;  // the features of each row that has been read
  int64_t n_passes = 0, fails_in_pass = 0;

 private:
  std::shared_ptr<Model> inner_;
  std::mutex mutex_;
};

std::shared_ptr<Watched> watched(double dropout) {
  auto config = small_config(Architecture::decoder);
  config.dropout = dropout;
  const auto model = std::make_shared<Watched>(random_model(config));
  model->train();
  return model;
}

/// Six rows of the same text.
Batch six_times_the_same() {
  torch::manual_seed(3);
  auto batch = small_batch(Architecture::decoder, {tokens(1, 6)});
  batch.input.ids = batch.input.ids.repeat({6, 1});
  batch.targets = batch.targets.repeat(6);
  return batch;
}

torch::Tensor differentiated(const std::shared_ptr<Watched>& model, const std::vector<Batch>& batches,
                             const GradientOptions& options) {
  model->zero_grad();
  GradientAccumulator gradients(model, std::make_shared<TokenCrossEntropy>(), options);
  return gradients.differentiate(batches).sum();
}

// Rows of one text are equal without dropout. With dropout each row has its own, in whatever slice, part and
// batch it is.
TEST(Slices, EveryRowHasItsOwnDropout) {
  const auto batch = six_times_the_same();
  for (const auto& options : {GradientOptions{.n_parts = 1},
                              {.n_parts = 1, .micro_batch_size = 1},
                              {.n_parts = 1, .micro_batch_size = 2},
                              {.n_parts = 2, .micro_batch_size = 2},
                              {.n_parts = 3}}) {
    SCOPED_TRACE(::testing::Message()
                 << options.n_parts << " parts, " << options.micro_batch_size << " rows");
    const auto plain = watched(0), dropped = watched(0.5);
    torch::manual_seed(8);
    differentiated(plain, {batch, batch}, options);
    differentiated(dropped, {batch, batch}, options);
    ASSERT_EQ(plain->rows.size(), 12U);
    ASSERT_EQ(dropped->rows.size(), 12U);
    for (size_t i = 0; i < 12; ++i) {
      EXPECT_TRUE(close(plain->rows[i], plain->rows[0]));
      for (size_t j = 0; j < i; ++j) EXPECT_FALSE(close(dropped->rows[i], dropped->rows[j])) << i << " " << j;
    }
  }
}

// What was added before the memory ran out is not added again.
TEST(Slices, GradientsCountOnceWhereMemoryRunsOutLater) {
  torch::manual_seed(4);
  std::vector<Batch> batches;
  for (int i = 0; i < 2; ++i) batches.push_back(small_batch(Architecture::decoder, {tokens(6, 5)}));
  const GradientOptions options{
      .n_parts = 1, .micro_batch_size = 3, .out_of_memory = OutOfMemory::take_fewer_rows};
  const auto model = watched(0);
  const auto loss = differentiated(model, batches, {.n_parts = 1});
  std::vector<torch::Tensor> expected;
  for (const auto& parameter : model->parameters()) expected.push_back(parameter.grad().clone());
  for (const int64_t pass : {1, 2, 3, 4}) {
    SCOPED_TRACE(pass);
    model->n_passes = 0;
    model->fails_in_pass = pass;
    EXPECT_TRUE(close(differentiated(model, batches, options), loss));
    EXPECT_EQ(model->n_passes, pass + 6) << "two rows at once, from the beginning";
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(close(model->parameters()[i].grad(), expected[i])) << i;
  }
}

}  // namespace
}  // namespace zoo::testing

#include "training/learner.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <torch/utils.h>

#include "base/device.h"
#include "base/device_graph.h"
#include "base/error.h"
#include "base/named_enum.h"
#include "kernels/tensor_lists.h"
#include "layers/experts.h"
#include "models/comparing_model.h"
#include "models/name_patterns.h"
#include "optimizers/parameters.h"

namespace zoo {
namespace {

/// Whether it is known that a step does the same for the same shapes. Types that a program adds may draw
/// random numbers of their own, and structures draw noise.
bool repeats(const Experiment& experiment) {
  constexpr auto tasks = std::to_array<std::string_view>({"language_modeling", "masked_language_modeling",
                                                          "text_to_text", "text_classification",
                                                          "token_classification", "image_classification"});
  constexpr auto families =
      std::to_array<std::string_view>({"decoder", "encoder", "encoder_decoder", "vit", "resnet"});
  return std::ranges::find(tasks, experiment.task.type) != tasks.end() &&
         std::ranges::find(families, experiment.model.architecture.type) != families.end() &&
         experiment.training.objective.type == "task";
}

}  // namespace

Learner::Learner(const Experiment& experiment, std::shared_ptr<Model> model,
                 std::shared_ptr<const Objective> objective, const ProcessGroup& processes,
                 torch::Device device)
    : config_(experiment.training),
      processes_(processes),
      device_(device),
      precision_(resolve(config_.precision, device, experiment.model.d_model)),
      model_(std::move(model)) {
  if (config_.matmul == FloatProducts::tf32 && device.is_cpu())
    throw ConfigError("training.matmul: tf32 needs a GPU, but this training is on the CPU: leave it out");
  if (config_.residual == ResidualStream::bf16 && precision_ != Precision::bf16)
    throw ConfigError(fmt::format(
        "training.residual: bf16 needs training.precision: bf16, but products are in {} here: leave it out",
        name_of(precision_)));
  set_float_products(config_.matmul);
  if (config_.parallel.experts == ExpertPlacement::divided && !processes.is_alone())
    divided_ = std::make_unique<DividedExperts>(*model_, processes);
  model_->to(device);
  model_->train();
  model_->checkpoint_activations(config_.activation_checkpointing);
  model_->keep_residual_in(config_.residual);
  if (config_.batch_size.is_auto() && model_->mixes_rows()) {
    throw ConfigError(fmt::format(
        "training.batch_size: auto lets some rows of a batch through the model at a time, but {}",
        comparing_of(*model_) ? "a dual_encoder learns from all pairs of a batch: give a number"
                              : "batch norm is over all rows: give a number, or choose norm: group or "
                                "frozen_batch"));
  }
  // On the CPU the threads round the weights together with their products.
  if (const auto type = rounded_type(precision_); type && !device.is_cpu())
    rounded_ = std::make_unique<RoundedWeights>(*model_, *type);
  experts_ = experts_of(*model_);
  freeze_parameters(*model_, config_.freeze);
  auto parameters = parameters_of(*model_);
  apply_groups(config_.parameter_groups, parameters);
  if (config_.parallel.shard_optimizer && !processes.is_alone()) {
    shards_.emplace(processes, parameters);
    parameters = shards_->own();
  }
  std::vector<int64_t> owners;
  if (shards_) owners = shards_->owners();
  if (divided_) {
    for (const auto& parameter : parameters)
      owners.push_back(divided_->has(parameter.name) ? ReducerOptions::kOwn : ReducerOptions::kEvery);
  }
  gradients_ = std::make_unique<GradientAccumulator>(
      model_, std::move(objective),
      GradientOptions{
          .precision = precision_,
          .out_of_memory = config_.batch_size.is_auto() ? OutOfMemory::take_fewer_rows : OutOfMemory::fail},
      processes,
      ReducerOptions{.bucket_bytes = config_.parallel.bucket_mb << 20, .owners = std::move(owners)});
  optimizer_ = std::make_unique<Optimizer>(config_.optimizer, parameters);
  share_copies();
  prepare_graph(experiment);
  if (config_.ema_decay) average_ = std::make_unique<MovingAverage>(*model_, *config_.ema_decay);
}

void Learner::share_copies() {
  if (!rounded_ || shards_) return;
  const auto copies = rounded_->copies();
  std::set<const c10::TensorImpl*> parameters;
  for (const auto& copy : copies) parameters.insert(copy.parameter.unsafeGetTensorImpl());
  steps_renew_copies_ = parameters.size() == copies.size();  // a parameter has no second copy
  if (!steps_renew_copies_) return;
  for (const auto& [parameter, rounded] : copies) optimizer_->keep_copy(parameter, rounded);
}

void Learner::prepare_graph(const Experiment& experiment) {
  const bool wanted = config_.cuda_graphs == CudaGraphs::on;
  if (config_.cuda_graphs == CudaGraphs::off) return;
  if (wanted && divided_)
    throw ConfigError(
        "training.cuda_graphs: true cannot record how divided experts exchange tokens: leave out this key or "
        "training.parallel.experts");
  if (!wanted && (device_.is_cpu() || divided_ || !make_device_graph(device_.type()) ||
                  config_.activation_checkpointing != ActivationCheckpointing::none || !repeats(experiment)))
    return;
  graph_ = std::make_unique<StepGraph>(gradients_->parameters(), model_->buffers(), device_,
                                       wanted ? Unrecordable::refuse : Unrecordable::run_as_it_is);
}

std::optional<std::string> Learner::new_obstacle() {
  if (!graph_ || !graph_->obstacle() || std::exchange(has_told_obstacle_, true)) return std::nullopt;
  return fmt::format("training.cuda_graphs: auto: steps are not recorded ({})", *graph_->obstacle());
}

void Learner::fit_into_memory(Task& task, MicroBatchOptions limits) {
  limits.device = device_;
  limits.n_processes = processes_.size();
  const auto found = torch::zeros({processes_.size()}, torch::kLong);
  processes_.run_or_fail_together(
      [&] { found[processes_.rank()] = find_micro_batch_size(*gradients_, task, limits); });
  processes_.all_reduce(found).wait();
  gradients_->set_micro_batch_size(found.min().item<int64_t>());
}

Learner::Gradients Learner::LateGradients::read() const {
  auto numbers = numbers_.read();
  const double norm = numbers.back();
  numbers.pop_back();
  return {.losses = std::move(numbers), .norm = norm};
}

Learner::LateGradients Learner::differentiate(const BatchSequence& batches, double scale) {
  if (rounded_) rounded_->renew_if_changed();
  if (!graph_ || graph_->obstacle())
    return LateGradients(with_norm(losses(batches, scale, GradientExchange::in_last_pass), scale));
  const auto rows = checked(batches);
  if (processes_.is_alone()) {
    return LateGradients(graph_->run(rows, scale, [&](const std::vector<Batch>& recorded) {
      return with_norm(losses(recorded, scale, GradientExchange::in_last_pass), scale);
    }));
  }
  // Each process records its own passes; what they exchange follows. So it does not matter which of them
  // record.
  const auto own = graph_->run(rows, scale, [&](const std::vector<Batch>& recorded) {
    return losses(recorded, scale, GradientExchange::by_caller);
  });
  gradients_->exchange();
  return LateGradients(with_norm(own, scale));
}

/// The batches on the device; a replayed graph checks nothing.
std::vector<Batch> Learner::checked(const BatchSequence& batches) const {
  std::vector<Batch> result;
  for (size_t i = 0; i < batches.size(); ++i) result.push_back(model_->on_device(batches[i]));
  return result;
}

torch::Tensor Learner::losses(const BatchSequence& batches, double scale, GradientExchange exchange) {
  // What a recording has taken of the device's memory cannot be freed before its end.
  const bool is_recording = graph_ && graph_->is_recording();
  return gradients_->differentiate(batches, scale,
                                   is_recording ? std::optional(OutOfMemory::fail) : std::nullopt, exchange);
}

torch::Tensor Learner::with_norm(const torch::Tensor& losses, double scale) {
  const auto gradients = optimizer_->gradients();
  if (scale != 1.0)
    foreach_mul_(gradients, torch::scalar_tensor(1 / scale, torch::dtype(torch::kFloat).device(device_)));
  const auto sorted =
      divided_ ? divided_->sorted(gradients) : DividedExperts::Gradients{.own = gradients, .shared = {}};
  const auto norm = clip_grad_norm(sorted.own, config_.clip_grad_norm,
                                   shards_ || divided_ ? &processes_ : nullptr, sorted.shared);
  return torch::cat({losses, norm.view(1)});
}

void Learner::step(double lr) {
  optimizer_->step(lr);
  for (const auto& experts : experts_) {
    if (!experts->needs_counts()) continue;
    const auto counts = experts->counts();
    if (!processes_.is_alone()) processes_.all_reduce(counts).wait();
    experts->end_step(counts);
  }
  if (shards_) shards_->broadcast_parameters();
  if (average_) average_->update();
  if (!rounded_) return;
  if (steps_renew_copies_) {
    rounded_->note_renewal();
  } else {
    rounded_->renew();
  }
}

std::unique_ptr<SubstituteWeights> Learner::use_average() {
  return average_ ? std::make_unique<SubstituteWeights>(*model_, average_->weights()) : nullptr;
}

std::unique_ptr<DividedExperts::Whole> Learner::whole_model() const {
  return divided_ ? divided_->gathered() : nullptr;
}

void Learner::share_weights() {
  const auto share = [&](const TensorMap& tensors) {
    for (const auto& [name, tensor] : tensors) {
      if (!divided_ || !divided_->has(name)) processes_.broadcast(tensor, /*root=*/0).wait();
    }
  };
  share(named_tensors(*model_));
  if (average_) share(average_->state());
}

TrainedParts Learner::gather() {
  const auto all = [&](TensorMap own) { return divided_ ? divided_->gather(own) : own; };
  return {*model_, shards_ ? shards_->gather_state(config_.optimizer, *optimizer_) : all(optimizer_->state()),
          average_ ? std::optional(all(average_->state())) : std::nullopt};
}

TrainingState Learner::load(const std::filesystem::path& checkpoint, const std::string& base) {
  const auto whole = divided_ ? divided_->blank() : nullptr;
  const auto optimizer = optimizer_->state(), average = average_ ? average_->state() : TensorMap();
  const auto room = [&](const TensorMap& own) { return divided_ ? divided_->room_for(own) : own; };
  const TrainedParts parts = {*model_, room(optimizer),
                              average_ ? std::optional(room(average)) : std::nullopt, base};
  auto state = load_checkpoint(checkpoint, parts, shards_ ? Wanted::some_tensors : Wanted::all_tensors);
  if (divided_) {
    divided_->take_rows(parts.optimizer, optimizer);
    if (average_) divided_->take_rows(*parts.average, average);
  }
  return state;
}

}  // namespace zoo

#include "tasks/training_config.h"

#include <fmt/format.h>

#include "tasks/metric_types.h"
#include "tasks/objective.h"
#include "tasks/training_observer.h"

namespace zoo {
namespace {

/// The limits of a number of rows in one step.
Limits row_limits() { return Limits::between(1, 1 << 20); }

}  // namespace

void describe(ConfigVisitor& v, LoraConfig& c) {
  v.field("rank", c.rank, "Rank of the adapters.", Limits::between(1, 65536));
  v.field("alpha", c.alpha, "The output of an adapter is multiplied by alpha / rank.", Limits::positive());
  v.field("dropout", c.dropout, "Dropout of the inputs of the adapters.", {.min = 0, .max = 0.99});
  v.field(
      "targets", c.targets,
      "Patterns of the linear maps that get adapters; * stands for any characters, also for dots. Maps that "
      "are stacked in one matrix have the names of separate ones (q, k, v; gate, up).");
  v.field("trained", c.trained,
          "Patterns of other parameters that are trained, too. Default: the head of a classifier (head.*); "
          "nothing for models that predict tokens.");
}

void describe(ConfigVisitor& v, ParallelConfig& c) {
  v.field("experts", c.experts,
          "divided: each process has its share of the experts of model.experts, and tokens travel to the "
          "processes that have theirs (Lepikhin et al. 2020): less memory, the same steps.");
  v.field("shard_optimizer", c.shard_optimizer,
          "Each process keeps the optimizer's state for its part of the parameters only (ZeRO, stage 1): "
          "less memory, the same steps.");
  v.field("bucket_mb", c.bucket_mb, "Gradients are summed over the processes in buckets of this many MiB.",
          Limits::between(1, 1024));
  v.field(
      "timeout_seconds", c.timeout_seconds,
      "How long a process waits for another before it ends with an error; must be longer than an evaluation "
      "or the writing of a checkpoint.",
      Limits::between(1, 86400));
}

void describe(ConfigVisitor& v, TrainingConfig& c) {
  v.field("seed", c.seed, "Seed for initial weights, data order and dropout.", Limits::at_least(0));
  v.field("steps", c.steps, "Optimiser steps.", Limits::at_least(1));
  v.field(
      "epochs", c.epochs,
      "Instead of steps: passes through the training data. The config.yaml of a run has the steps. Default "
      "none.",
      Limits::between(1, 1e6));
  v.field(
      "batch_size", c.batch_size,
      "Sequences in a batch. auto: as many of the effective_batch_size sequences as memory allows go through "
      "the model at once; this changes only the rounding.",
      row_limits());
  v.field("effective_batch_size", c.effective_batch_size,
          "With batch_size: auto: sequences in one optimiser step.", row_limits());
  v.field("batch_tokens", c.batch_tokens,
          "Instead of batch_size: the most tokens in a batch, with padding, counted on its longer side.",
          Limits::between(1, 1 << 30));
  v.field("gradient_accumulation", c.gradient_accumulation,
          "Batches in one optimiser step: the effect of one large batch with the memory of a small one.",
          row_limits());
  v.field("optimizer", c.optimizer, "How gradients become steps.");
  v.field("schedule", c.schedule, "The learning rate over time.");
  v.field("freeze", c.freeze,
          "Patterns of the names of parameters that keep their values: * stands for any characters, also for "
          "dots, as in [\"token_embedding.*\", \"encoder.layers.0.*\"].");
  v.field(
      "parameter_groups", c.parameter_groups,
      "Parameters with a learning rate or weight decay of their own, by patterns of their names. The first "
      "pattern that matches a parameter counts.");
  v.field(
      "lora", c.lora,
      "LoRA (Hu et al. 2021): the weights stay as they are, and linear maps get adapters of low rank, which "
      "are trained.");
  v.field("precision", c.precision,
          "Number format of the matrix products: fp32, bf16, or fp16 with dynamic loss scaling; weights are "
          "always fp32. auto: bf16 where it is faster, else fp32.");
  v.field("residual", c.residual,
          "Number format of the residual stream where precision is bf16: bf16 halves the memory and the "
          "traffic of norms and sums, and rounds each sum to 8 bits.");
  v.field(
      "matmul", c.matmul,
      "On a GPU: tf32 computes products and convolutions of fp32 numbers with 10 of their 23 bits, which is "
      "several times as fast.");
  v.field(
      "activation_checkpointing", c.activation_checkpointing,
      "every_layer: keep only the input of each layer, and compute the layer again in the backward pass: far "
      "less memory, a third more computation, the same losses.");
  v.field(
      "cuda_graphs", c.cuda_graphs,
      "On a GPU: record forward and backward pass as one graph, and replay it for steps of the same "
      "shapes, so that no kernel waits for its launch. auto: where the step of the model can be recorded.");
  v.field("clip_grad_norm", c.clip_grad_norm,
          "Largest norm of the gradient over all parameters; longer ones are scaled down; 0 = no limit.",
          Limits::between(0, 1e30));
  v.selection("objective", c.objective, objective_types(), "The loss that training minimises.");
  v.field("label_smoothing", c.label_smoothing,
          "Fraction of the target's probability that is spread over all classes.", {.min = 0, .max = 0.99});
  v.field("max_seconds", c.max_seconds,
          "Stop after this much time, evaluation included, as after the last step.", Limits::positive());
  v.field("log_every", c.log_every, "Steps from one row of training metrics to the next.",
          Limits::at_least(1));
  v.field("evaluate_every", c.evaluate_every, "Steps from one evaluation on the validation data to the next.",
          Limits::at_least(1));
  v.field("evaluate_at_start", c.evaluate_at_start,
          "Evaluate before the first step, too, so that curves begin at step 0; these weights are not kept.");
  v.field("evaluate_batches", c.evaluate_batches, "Evaluate on at most this many batches; default all.",
          Limits::at_least(1));
  v.field("patience", c.patience,
          "Stop early: after this many evaluations in a row that are not better than the best one, by "
          "best_by. Default none: all steps are taken.",
          Limits::at_least(1));
  v.field(
      "best_by", c.best_by,
      "The metric on the validation data that decides which weights are kept: loss, accuracy "
      "(text_classification, token_classification, masked_language_modeling), bleu (text_to_text; each "
      "evaluation then also "
      "translates the validation data with the options of generation), or a metric of another task. `last` "
      "keeps the weights of the last evaluation.");
  v.selections("metrics", c.metrics, metric_types(),
               "Metrics of the single examples of an evaluation, besides those of the task. One process.",
               ListSize::any);
  v.selections("observers", c.observers, training_observer_types(),
               "Numbers about the training for metrics.jsonl, besides the usual ones.", ListSize::any);
  v.field("checkpoint_every", c.checkpoint_every, "Steps from one checkpoint to the next.",
          Limits::at_least(1));
  v.field("keep_checkpoints", c.keep_checkpoints, "How many of the newest checkpoints are kept.",
          Limits::at_least(1));
  v.field(
      "ema_decay", c.ema_decay,
      "Decay of an exponential moving average of the weights, which is evaluated and kept instead of the "
      "weights themselves. In the first steps the decay is at most (1 + steps) / (10 + steps). Default none.",
      {.min = 0, .max = 0.999999, .min_excluded = true});
  v.field(
      "average_last", c.average_last,
      "At the end of training, evaluate the mean of the weights of this many last checkpoints, and keep it "
      "if it is better. Default none.",
      Limits::at_least(2));
  v.field("threads", c.threads,
          "CPU threads of a process; 0 = one per core, divided among the processes of a machine.",
          Limits::between(0, 1024));
  v.field("parallel", c.parallel,
          "How several processes train one model together (zoo train --nproc, torchrun).");
}

namespace {

void validate_batches(const TrainingConfig& c, const Complain& complain) {
  if (!c.batch_size.is_auto()) {
    if (c.effective_batch_size) {
      complain("effective_batch_size",
               fmt::format("is for batch_size: auto; with batch_size: {} leave it out, and set "
                           "gradient_accumulation",
                           *c.batch_size.value));
    }
    return;
  }
  if (!c.effective_batch_size) {
    complain("effective_batch_size",
             "is missing: with batch_size: auto, set it to the number of sequences in one step");
  }
  if (c.gradient_accumulation != 1) {
    complain(
        "gradient_accumulation",
        fmt::format("{} contradicts batch_size: auto, which sets it: leave it out", c.gradient_accumulation));
  }
  if (c.batch_tokens) {
    complain("batch_tokens", "replaces batch_size, which therefore cannot be auto: leave one of them out");
  }
}

/// Whether they stand for anything is known when there is a model.
void validate_names(const TrainingConfig& c, const Complain& complain) {
  const auto check = [&](std::string_view key, const std::string& pattern) {
    if (pattern.empty()) complain(key, "has an empty pattern, which no name matches");
  };
  for (const auto& pattern : c.freeze) check("freeze", pattern);
  for (const auto& group : c.parameter_groups) check("parameter_groups", group.pattern);
  if (!c.lora) return;
  if (!c.freeze.empty())
    complain("freeze",
             "has no meaning beside lora, which freezes all parameters except lora.trained: leave it out");
  if (c.lora->targets.empty()) complain("lora.targets", "names no linear map");
  for (const auto& pattern : c.lora->targets) check("lora.targets", pattern);
  if (c.lora->trained)
    for (const auto& pattern : *c.lora->trained) check("lora.trained", pattern);
}

}  // namespace

// What depends on the number of steps is checked again when epochs have become steps.
void validate(const TrainingConfig& c, const Complain& complain) {
  validate_batches(c, complain);
  if (c.cuda_graphs == CudaGraphs::on && c.activation_checkpointing != ActivationCheckpointing::none)
    complain("cuda_graphs", "cannot record activation_checkpointing: leave one of them out");
  validate(c.optimizer, complain_under("optimizer", complain));
  validate_names(c, complain);
  validate(c.schedule, c.epochs ? std::nullopt : std::optional(c.steps),
           complain_under("schedule", complain));
  const int64_t checkpoints = (c.steps + c.checkpoint_every - 1) / c.checkpoint_every;
  if (c.keeps_last() && c.patience)
    complain("best_by",
             "is `last`, so no evaluation is the best one, which patience needs: remove one of them");
  if (c.keeps_last() && c.average_last)
    complain("best_by", "is `last`, so nothing says whether average_last is better: remove one of them");
  if (c.average_last && !c.epochs && *c.average_last > checkpoints) {
    complain("average_last",
             fmt::format("{} is more than the {} checkpoints of {} steps with checkpoint_every {}",
                         *c.average_last, checkpoints, c.steps, c.checkpoint_every));
  }
}

}  // namespace zoo

#pragma once
// The types that this program adds to the library.

#include <zoo/generation/rules/token_rule_types.h>
#include <zoo/layers/weights/construction.h>
#include <zoo/models/config/layer_types.h>
#include <zoo/models/families/families.h>
#include <zoo/models/mixers/mixers.h>
#include <zoo/optimizers/optimizer_types.h>
#include <zoo/optimizers/schedules.h>
#include <zoo/tasks/examples.h>
#include <zoo/tasks/metric_types.h>
#include <zoo/tasks/objective.h>
#include <zoo/tasks/task_type.h>
#include <zoo/tasks/training_observer.h>

/// Finds a bump on a noisy grid: two numbers, learned with Huber's loss. Batches have fields "grid" (B, H, W,
/// F) and "place" (B, 2), and no tokens.
zoo::TaskType find_bump();
/// Cross-entropy times (1 - p)^gamma (Lin et al. 2017), in place of a task's own objective.
zoo::ObjectiveType focal_loss();
/// An exponential mean of the past in place of attention. It remembers one vector of each row.
zoo::MixerType running_mean();
/// An encoder of grids of vectors, whose 2-D positions every layer adds to its queries and keys.
zoo::ModelFamily grid_encoder();
/// A tanh with a learned slope in place of a norm.
zoo::NormType dynamic_tanh();
/// The square of relu.
zoo::ActivationType squared_relu();
/// Scores that fall with the logarithm of the distance.
zoo::PositionType log_distance();
/// Steps by the sign of the momentum.
zoo::OptimizerType momentum_sign();
/// Half the learning rate after every so many steps.
zoo::ScheduleType staircase();
/// The perplexity of the example in the middle.
zoo::MetricType median_perplexity_type();
/// The largest weight, at each logged step, evaluation and checkpoint.
zoo::TrainingObserverType largest_weight();
/// No token follows itself.
zoo::TokenRuleType no_doubles();

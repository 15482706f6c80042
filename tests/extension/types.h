#pragma once
// The types that this program adds to the library.

#include <zoo/models/families/families.h>
#include <zoo/models/mixers/mixers.h>
#include <zoo/tasks/objective.h>
#include <zoo/tasks/task_type.h>

/// Finds a bump on a noisy grid: two numbers, learned with Huber's loss. Batches have fields "grid" (B, H, W,
/// F) and "place" (B, 2), and no tokens.
zoo::TaskType find_bump();
/// Cross-entropy times (1 - p)^gamma (Lin et al. 2017), in place of a task's own objective.
zoo::ObjectiveType focal_loss();
/// An exponential mean of the past in place of attention. It remembers one vector of each row.
zoo::MixerType running_mean();
/// An encoder of grids of vectors, whose 2-D positions every layer adds to its queries and keys.
zoo::ModelFamily grid_encoder();

#pragma once
// The library in one header: configurations, training, trained models, writing with them, and what a program
// can add. A program that uses a part of it compiles faster with the headers of that part.

#include "checkpoints/run.h"
#include "experiments/load_experiment.h"
#include "generation/generator.h"
#include "layers/attention/attention.h"
#include "layers/transformer_layer.h"
#include "models/families/families.h"
#include "models/mixers/mixers.h"
#include "tasks/objective.h"
#include "tasks/task.h"
#include "tasks/task_type.h"
#include "training/trainer.h"

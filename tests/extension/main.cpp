// zoo with types of its own.
#include <zoo/apps/command_line.h>

#include "types.h"

// NOLINTNEXTLINE(bugprone-exception-escape): only a name that is taken throws
int main(int argc, char** argv) {
  zoo::task_types().add(find_bump());
  zoo::objective_types().add(focal_loss());
  zoo::mixer_types().add(running_mean());
  zoo::model_families().add(grid_encoder());
  zoo::norm_types().add(dynamic_tanh());
  zoo::activation_types().add(squared_relu());
  zoo::position_types().add(log_distance());
  zoo::optimizer_types().add(momentum_sign());
  zoo::schedule_types().add(staircase());
  zoo::metric_types().add(median_perplexity_type());
  zoo::training_observer_types().add(largest_weight());
  zoo::token_rule_types().add(no_doubles());
  return zoo::command_line(argc, argv);
}

// zoo with four types of its own.
#include <zoo/apps/command_line.h>

#include "types.h"

// NOLINTNEXTLINE(bugprone-exception-escape): only a name that is taken throws
int main(int argc, char** argv) {
  zoo::task_types().add(find_bump());
  zoo::objective_types().add(focal_loss());
  zoo::mixer_types().add(running_mean());
  zoo::model_families().add(grid_encoder());
  return zoo::command_line(argc, argv);
}

#include "apps/arguments/run_arguments.h"

#include "base/device.h"

namespace zoo {

Run open_run(const RunArguments& arguments) {
  auto run = Run::open(arguments.dir, parse_device(arguments.device));
  store_weights(run.model(), arguments.weights.value_or(run.experiment().generation.weights));
  return run;
}

}  // namespace zoo

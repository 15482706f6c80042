#include "layers/modules/shapes_only.h"

#include <utility>

namespace zoo {
namespace {

thread_local bool shapes_only = false;

}  // namespace

ShapesOnly::ShapesOnly() : former_(std::exchange(shapes_only, true)) {}

ShapesOnly::~ShapesOnly() { shapes_only = former_; }

torch::TensorOptions parameter_options() { return torch::device(shapes_only ? torch::kMeta : torch::kCPU); }

}  // namespace zoo

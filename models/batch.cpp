#include "models/batch.h"

namespace zoo {
namespace {

torch::Tensor moved(const torch::Tensor& tensor, torch::Device device) {
  return tensor.defined() ? tensor.to(device, /*non_blocking=*/true) : tensor;
}

}  // namespace

TokenBatch TokenBatch::to(torch::Device device) const {
  return {.ids = moved(ids, device), .lengths = moved(lengths, device)};
}

Batch Batch::to(torch::Device device) const {
  return {.input = input.to(device),
          .segments = moved(segments, device),
          .decoder = decoder.to(device),
          .targets = moved(targets, device),
          .positions = moved(positions, device),
          .tokens = tokens};
}

}  // namespace zoo

#include "kernels/gpu/checked_program.h"

#include <utility>

#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/util/Exception.h>
#include <torch/utils.h>

#include "base/error.h"

namespace zoo {
namespace {

std::unique_ptr<const KernelProgram> compiled(const std::string& file, const std::string& text,
                                              c10::Device device) {
  return std::make_unique<const GpuProgram>(file, text, device);
}

/// By type of device.
std::map<c10::DeviceType, MakeProgram>& makers() {
  static std::map<c10::DeviceType, MakeProgram> all = {{c10::DeviceType::CUDA, compiled}};
  return all;
}

}  // namespace

void register_kernels(c10::DeviceType type, MakeProgram make) {
  if (make) {
    makers()[type] = make;
  } else {
    makers().erase(type);
  }
}

bool has_kernels(c10::Device device) { return makers().contains(device.type()); }

CheckedProgram::CheckedProgram(std::string name, std::string file, std::string text, Agrees agrees)
    : name_(std::move(name)), file_(std::move(file)), text_(std::move(text)), agrees_(std::move(agrees)) {}

const KernelProgram* CheckedProgram::on(c10::Device device) {
  if (!has_kernels(device)) return nullptr;
  const std::scoped_lock lock(mutex_);
  const auto found = programs_.find(device.index());
  if (found != programs_.end()) return found->second.get();
  return programs_.emplace(device.index(), made_for(device)).first->second.get();
}

std::unique_ptr<const KernelProgram> CheckedProgram::made_for(c10::Device device) const {
  const c10::InferenceMode may_record(false);
  const torch::AutoGradMode recording(true);
  // The first use may be in mixed precision, which would round what the results are compared with.
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  std::string problem;
  try {
    auto program = makers().at(device.type())(file_, text_, device);
    if (agrees_(*program, device)) return program;
    problem = "its results are not those of LibTorch's operations";
  } catch (const SystemError& error) {
    problem = error.what();
  }
  TORCH_WARN("the kernel for ", name_, " is left out on ", device.str(), ", which is slower: ", problem);
  return nullptr;
}

}  // namespace zoo

#include "tests/support/strict_kernels.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/gpu/checked_program.h"
#include "tests/support/strict_device.h"
#include "tests/support/texts_here.h"

namespace zoo::testing {
namespace {

class OnTheStrictDevice final : public KernelProgram {
 public:
  void launch(const std::string& function, const LaunchSize& size,
              std::vector<void*> arguments) const override {
    start_on_strict_device("zoo::" + function,
                           texts_.call(function, size, arguments, address_on_the_processor));
  }

 private:
  TextsHere texts_;
};

std::unique_ptr<const KernelProgram> made(const std::string&, const std::string&, c10::Device) {
  return std::make_unique<const OnTheStrictDevice>();
}

}  // namespace

StrictKernels::StrictKernels() { register_kernels(strict_device().type(), made); }

StrictKernels::~StrictKernels() { register_kernels(strict_device().type(), nullptr); }

}  // namespace zoo::testing

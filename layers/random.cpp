#include "layers/random.h"

#include <mutex>

#include <ATen/CPUGeneratorImpl.h>

namespace zoo {
namespace {

thread_local RandomScope* innermost = nullptr;

}  // namespace

RandomScope::RandomScope(std::initializer_list<uint64_t> coordinates)
    : random_(coordinates), outer_(innermost) {
  innermost = this;
}

RandomScope::~RandomScope() { innermost = outer_; }

uint64_t draw_seed() {
  if (innermost != nullptr) return innermost->random_.next();
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return at::check_generator<at::CPUGeneratorImpl>(generator)->random64();
}

}  // namespace zoo

#pragma once
// The texts of our kernels for GPUs (kernels/gpu), compiled for the processor
// (tests/support/cuda_shim.h).

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernels/gpu/gpu_program.h"

namespace zoo::testing {

/// The functions of all texts on the processor, in place of a GPU's.
class TextsHere : public KernelProgram {
 public:
  /// Gives the address at which the processor finds what is at `address`.
  using Shown = std::function<void*(void* address)>;

  TextsHere();
  /// Runs the function.
  void launch(const std::string& function, const LaunchSize& size,
              std::vector<void*> arguments) const override;
  /// The same call, with copies of its arguments. Throws c10::Error if there is no such function.
  std::function<void()> call(const std::string& function, const LaunchSize& size,
                             const std::vector<void*>& arguments, const Shown& shown) const;

 private:
  /// Gives what runs in every thread.
  using Bind = std::function<std::function<void()>(const std::vector<void*>& arguments, const Shown& shown)>;
  struct Function {
    size_t n_arguments;
    Bind bind;
  };
  template <class... Args>
  void add(const std::string& name, void (*kernel)(Args...));
  template <class... In, class... Out>
  void add(const std::string& name, void (*forward)(In...), void (*backward)(Out...));

  std::map<std::string, Function> functions_;
};

/// x as the texts write and read it in 16 bits.
float as_bf16_of_texts(float x);
float as_half_of_texts(float x);

}  // namespace zoo::testing

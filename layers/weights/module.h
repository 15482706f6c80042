#pragma once
// The base of this library's modules: they can be cloned.

#include <concepts>
#include <memory>
#include <optional>
#include <tuple>

#include <torch/nn/module.h>
#include <torch/types.h>

namespace zoo {

/// A module that can be cloned, if it derives from Cloneable or implements fresh(). Every module of the
/// library can also be printed: `std::cout << module` shows its sizes and rates, and those of its submodules.
class Module : public torch::nn::Module {
 public:
  /// An independent copy: the same parameters and buffers in the same formats, on `device` or else where they
  /// are; the same modes (training or evaluation, trainable or frozen). Gradients are not copied. If parts of
  /// this module share a matrix, such as tied embeddings, the same parts of the copy share one. If this
  /// module uses a matrix of another module, the copy has its own copy of that matrix. Does not change the
  /// random numbers that follow. The result has the type of this module; copy_of() returns it as that type.
  /// Throws c10::Error if a derived class does not implement fresh().
  std::shared_ptr<torch::nn::Module> clone(
      const std::optional<torch::Device>& device = std::nullopt) const final;

 protected:
  /// Another module that is constructed with the same arguments. clone() then copies the tensors into it. If
  /// an argument is a module that this one does not own, the new one gets a copy of it on `device`.
  virtual std::shared_ptr<torch::nn::Module> fresh(const std::optional<torch::Device>& device) const;
  /// Takes over what is neither a tensor nor a mode of torch::nn::Module, before the tensors are copied.
  /// `from` has the type of this module.
  virtual void take_settings(const torch::nn::Module& from);

 private:
  static void copy_state(torch::nn::Module& to, const torch::nn::Module& from,
                         const std::optional<torch::Device>& device);
  void clone_(torch::nn::Module& other, const std::optional<torch::Device>& device) final;
};

/// module->clone() as the module's own type: `Attention copy(copy_of(attention.ptr()))`.
template <class Impl>
std::shared_ptr<Impl> copy_of(const std::shared_ptr<Impl>& module,
                              const std::optional<torch::Device>& device = std::nullopt) {
  return std::dynamic_pointer_cast<Impl>(module->clone(device));
}

/// A module whose fresh() is written here: it calls the constructor of Derived with Derived::options. A
/// constructor that takes something else has a member function arguments() beside it, which returns them
/// as a tuple. A module among them is copied: it belongs to another one.
///
///     class ResidualImpl : public Cloneable<ResidualImpl> {
///      public:
///       explicit ResidualImpl(const ResidualOptions& options);
///       ResidualOptions options;
template <class Derived, class Base = Module>
class Cloneable : public Base {
 public:
  using Base::Base;

 protected:
  std::shared_ptr<torch::nn::Module> fresh(const std::optional<torch::Device>& device) const override {
    const auto construct = [&](const auto&... arguments) {
      return std::make_shared<Derived>(for_copy(arguments, device)...);
    };
    const auto& self = static_cast<const Derived&>(*this);
    if constexpr (requires { self.arguments(); })
      return std::apply(construct, self.arguments());
    else
      return construct(self.options);
  }

 private:
  template <class Argument>
  static const Argument& for_copy(const Argument& argument, const std::optional<torch::Device>&) {
    return argument;
  }
  template <std::derived_from<Module> Part>
  static std::shared_ptr<Part> for_copy(const std::shared_ptr<Part>& part,
                                        const std::optional<torch::Device>& device) {
    return part ? copy_of(part, device) : nullptr;
  }
};

}  // namespace zoo

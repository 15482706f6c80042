#pragma once
// Activations have names, by which an observer reads and replaces them in a forward pass.
//
//   residual.I                  the stream of vectors before layer I, (B, T, D); residual.N comes after the
//   last
//                               of N layers, before the final norm
//   layers.I.attention.heads    what the heads of self-attention return, before the output projection:
//                               (B, T, H, Dh)
//   layers.I.attention          what self-attention adds to the stream, (B, T, D); also a mixer in its place
//   layers.I.cross_attention.heads, layers.I.cross_attention     the same of attention over a memory
//   layers.I.feed_forward       what the feed-forward network, or the experts, add to the stream: (B, T, D)
//   memory                      what a decoder's cross-attention reads, (B, S, D)
//
// In a model with two stacks "encoder." or "decoder." stands before each. What is added to the stream is seen
// with the norm behind the sub-layer (sandwich, residual_post) and its learned factors.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <torch/types.h>

namespace zoo {

enum class ActivationKind {
  residual,
  attention_heads,
  attention,
  cross_attention_heads,
  cross_attention,
  feed_forward,
  memory
};

/// The stack of a model: the only one, or one of two.
enum class StackSide { only, encoder, decoder };
constexpr auto config_names(StackSide) {
  return std::to_array<std::string_view>({"only", "encoder", "decoder"});
}

/// An activation's place in a model.
struct ActivationPlace {
  ActivationKind kind = ActivationKind::residual;
  int64_t layer = 0;  // from 0; of a residual from 0 to the number of layers; of the memory 0
  StackSide side = StackSide::only;

  /// "encoder.layers.3.attention.heads"
  std::string name() const;
  auto operator<=>(const ActivationPlace&) const = default;
};

/// The place of a name; nullopt: no place has this name.
std::optional<ActivationPlace> activation_place(std::string_view name);

/// Sees every activation of a forward pass, in the order in which they are computed.
class ActivationObserver {
 public:
  virtual ~ActivationObserver() = default;
  /// Returns what the pass goes on with: x itself, or another tensor. The shapes stay, with one exception:
  /// the last residual may get more rows, which then all go through the final norm.
  virtual torch::Tensor on(const ActivationPlace& place, const torch::Tensor& x) = 0;
};

/// A place and who observes it.
struct ObservedPlace {
  ActivationObserver* observer = nullptr;
  ActivationPlace place = {};

  torch::Tensor operator()(const torch::Tensor& x) const { return observer->on(place, x); }
};

}  // namespace zoo

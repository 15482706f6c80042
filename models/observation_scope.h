#pragma once
// Reading and replacing activations in the forward passes of a model.

#include <map>
#include <memory>
#include <vector>

#include "layers/attention/activation_observer.h"
#include "models/embedder.h"
#include "models/model.h"
#include "models/stack.h"

namespace zoo {

/// While this object lives, every forward pass of the model calls the observer at each named activation
/// (layers/attention/activation_observer.h), generation included. One thread at a time may use the model
/// then. The destructor ends it, and without this object a pass has the same bits as ever.
class ObservationScope {
 public:
  /// Throws UsageError for a model without layers that have names, such as a resnet or a model that folds, or
  /// if another scope observes the model.
  ObservationScope(Model& model, ActivationObserver& observer);
  ~ObservationScope();
  ObservationScope(const ObservationScope&) = delete;
  ObservationScope& operator=(const ObservationScope&) = delete;

 private:
  std::vector<std::shared_ptr<StackImpl>> stacks_;
};

/// Token embedders of a model, by the stacks that read them.
using TokenEmbedders = std::map<StackSide, std::shared_ptr<TokenEmbedderImpl>>;
/// Those of a model; empty: it reads no tokens, or has an embedder of its own.
TokenEmbedders token_embedders_of(const torch::nn::Module& model);

/// The same for the vectors of tokens (TokenVectorObserver in models/embedder.h), which are the input that
/// gradients reach: a token itself has none.
class TokenVectorScope {
 public:
  /// Throws UsageError for a model without token embedders, or if another scope observes them.
  TokenVectorScope(Model& model, TokenVectorObserver& observer);
  ~TokenVectorScope();
  TokenVectorScope(const TokenVectorScope&) = delete;
  TokenVectorScope& operator=(const TokenVectorScope&) = delete;

 private:
  TokenEmbedders embedders_;
};

/// The stacks of a model in the order in which they compute; empty: it has no activations with names.
std::vector<std::shared_ptr<StackImpl>> stacks_of(const torch::nn::Module& model);
/// Which of a model's `n_stacks` a stack is.
StackSide side_of(const StackImpl& stack, size_t n_stacks);

}  // namespace zoo

#include "tasks/ctc.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "base/error.h"
#include "kernels/first_derivative.h"
#include "kernels/log_sum.h"
#include "models/model.h"

namespace zoo {
namespace {

using torch::autograd::AutogradContext;
using Tensors = torch::autograd::variable_list;

/// One row: T vectors of log-probabilities and a transcript with blanks around its tokens.
class Lattice {
 public:
  /// log_probs: (T, C), row by row; `transcript` has no padding.
  Lattice(const double* log_probs, int64_t n_vectors, int64_t n_classes,
          const std::vector<int64_t>& transcript, int64_t blank)
      : log_probs_(log_probs), n_vectors_(n_vectors), n_classes_(n_classes) {
    symbols_.push_back(blank);
    for (const int64_t token : transcript) symbols_.insert(symbols_.end(), {token, blank});
  }

  /// -log p of the transcript; infinity if no path says it.
  double loss() {
    forward();
    const size_t last = symbols_.size() - 1;
    if (n_vectors_ == 0) return last == 0 ? 0 : -kLogOfZero;
    const double* const row = at(forward_, n_vectors_ - 1);
    const double total = last == 0 ? row[0] : log_sum(row[last], row[last - 1]);
    return -total;
  }

  /// Subtracts weight · p(class at t | transcript) from gradient (T, C). After loss(), which was finite.
  void subtract_occupancies(double loss, double weight, float* gradient) {
    backward();
    for (int64_t t = 0; t < n_vectors_; ++t) {
      const double *const before = at(forward_, t), *const after = at(backward_, t);
      for (size_t s = 0; s < symbols_.size(); ++s) {
        // Both count the symbol at t.
        const double path = before[s] + after[s] - log_prob(t, s) + loss;
        if (path > kLogOfZero)
          gradient[t * n_classes_ + symbols_[s]] -= static_cast<float>(weight * std::exp(path));
      }
    }
  }

 private:
  double log_prob(int64_t t, size_t s) const { return log_probs_[t * n_classes_ + symbols_[s]]; }
  /// Whether a path may go from symbol s - 2 to s without the blank between them.
  bool may_skip_to(size_t s) const { return s >= 2 && s % 2 == 1 && symbols_[s] != symbols_[s - 2]; }
  double* at(std::vector<double>& table, int64_t t) {
    return table.data() + static_cast<size_t>(t) * symbols_.size();
  }

  /// forward_[t][s]: log-probability of all beginnings of paths that are at symbol s at t.
  void forward() {
    const size_t n = symbols_.size();
    forward_.assign(static_cast<size_t>(n_vectors_) * n, kLogOfZero);
    for (int64_t t = 0; t < n_vectors_; ++t) {
      double* const row = at(forward_, t);
      for (size_t s = 0; s < n; ++s) {
        double total = t == 0 && s < 2 ? 0 : kLogOfZero;
        if (t > 0) {
          const double* const before = row - n;
          total = before[s];
          if (s >= 1) total = log_sum(total, before[s - 1]);
          if (may_skip_to(s)) total = log_sum(total, before[s - 2]);
        }
        row[s] = total + log_prob(t, s);
      }
    }
  }

  /// backward_[t][s]: the same of all ends of paths.
  void backward() {
    const size_t n = symbols_.size();
    backward_.assign(static_cast<size_t>(n_vectors_) * n, kLogOfZero);
    for (int64_t t = n_vectors_ - 1; t >= 0; --t) {
      double* const row = at(backward_, t);
      for (size_t s = 0; s < n; ++s) {
        const bool is_last = t == n_vectors_ - 1;
        double total = is_last && s + 2 >= n ? 0 : kLogOfZero;
        if (!is_last) {
          const double* const after = row + n;
          total = after[s];
          if (s + 1 < n) total = log_sum(total, after[s + 1]);
          if (s + 2 < n && may_skip_to(s + 2)) total = log_sum(total, after[s + 2]);
        }
        row[s] = total + log_prob(t, s);
      }
    }
  }

  const double* log_probs_;
  int64_t n_vectors_, n_classes_;
  std::vector<int64_t> symbols_;  // blank, token, blank, …, token, blank
  std::vector<double> forward_, backward_;
};

/// The tokens of a row, without its padding.
std::vector<int64_t> tokens_of(const int64_t* row, int64_t length, int64_t n_classes, int64_t blank) {
  std::vector<int64_t> tokens(row, std::find(row, row + length, -1));
  const auto is_token = [&](int64_t id) { return id >= 0 && id < n_classes && id != blank; };
  TORCH_CHECK(std::ranges::all_of(tokens, is_token),
              "ctc_loss_sum: every token of a transcript must be in 0 … ", n_classes - 1,
              " and not the blank, ", blank);
  return tokens;
}

struct CtcLoss : torch::autograd::Function<CtcLoss> {
  /// Everything is on the CPU but the logits; `transcripts` and `lengths` are contiguous.
  static torch::Tensor forward(AutogradContext* context, const torch::Tensor& logits,
                               const torch::Tensor& lengths, const torch::Tensor& transcripts, double weight,
                               int64_t blank, bool wants_gradient) {
    const auto log_probs = logits.detach().to(torch::kCPU, torch::kFloat64).log_softmax(-1).contiguous();
    const int64_t B = logits.size(0), T = logits.size(1), C = logits.size(2), L = transcripts.size(1);
    auto gradient = wants_gradient ? torch::zeros({B, T, C}, torch::kFloat) : torch::Tensor();
    double total = 0;
    for (int64_t b = 0; b < B; ++b) {
      const int64_t n = lengths.const_data_ptr<int64_t>()[b];
      TORCH_CHECK(n >= 0 && n <= T, "ctc_loss_sum: a row cannot have ", n, " of ", T, " vectors");
      Lattice lattice(log_probs.const_data_ptr<double>() + b * T * C, n, C,
                      tokens_of(transcripts.const_data_ptr<int64_t>() + b * L, L, C, blank), blank);
      const double loss = lattice.loss();
      if (std::isinf(loss)) continue;
      total += weight * loss;
      if (!wants_gradient) continue;
      auto own = gradient[b].narrow(0, 0, n);
      own.copy_(log_probs[b].narrow(0, 0, n).exp().mul_(weight));
      lattice.subtract_occupancies(loss, weight, own.mutable_data_ptr<float>());
    }
    if (wants_gradient) context->saved_data["gradient"] = gradient.to(logits.device(), logits.scalar_type());
    return torch::full({}, total, logits.options().dtype(torch::kFloat).requires_grad(false));
  }
  static Tensors backward(AutogradContext* context, const Tensors& gradients) {
    only_first_derivative("CTC");
    return {context->saved_data["gradient"].toTensor() * gradients[0], {}, {}, {}, {}, {}};
  }
};

torch::Tensor on_cpu(const torch::Tensor& tensor) {
  return tensor.to(torch::kCPU, torch::kInt64).contiguous();
}

}  // namespace

torch::Tensor ctc_loss_sum(const torch::Tensor& logits, const torch::Tensor& lengths,
                           const torch::Tensor& transcripts, double weight, std::optional<int64_t> blank) {
  TORCH_CHECK(logits.dim() == 3 && transcripts.dim() == 2 && transcripts.size(0) == logits.size(0),
              "ctc_loss_sum needs logits (B, T, C) and transcripts (B, L), not ", logits.sizes(), " and ",
              transcripts.sizes());
  const bool wants_gradient = logits.requires_grad() && torch::GradMode::is_enabled();
  const auto own = lengths.defined() ? lengths : torch::full({logits.size(0)}, logits.size(1), torch::kInt64);
  return CtcLoss::apply(logits, on_cpu(own), on_cpu(transcripts), weight, blank.value_or(logits.size(2) - 1),
                        wants_gradient);
}

int64_t CtcObjective::n_targets(const Batch& batch) const {
  const auto found = batch.fields.find(fields::kTranscripts);
  return found == batch.fields.end() ? 0 : (found->second >= 0).sum().item<int64_t>();
}

torch::Tensor CtcObjective::loss(Model& model, const Batch& part) const {
  const auto* const aligning = model.aligning();
  if (!part.fields.contains(fields::kTranscripts) || !aligning) {
    throw ConfigError(
        "training.objective: ctc is for recordings and a model with a score for each of their vectors: set "
        "task: speech_recognition and model.architecture: speech_encoder or wave_encoder");
  }
  const auto& transcripts = part.field(fields::kTranscripts);
  const int64_t n_classes = model.n_outputs(), blank = aligning->blank();
  const auto highest = transcripts.max().item<int64_t>();
  const bool has_blank = (transcripts == blank).any().item<bool>();
  if (highest >= n_classes || has_blank) {
    throw DataError(fmt::format("the model cannot predict the token {}: it has {} tokens and the blank, {}",
                                has_blank ? blank : highest, n_classes - 1, blank));
  }
  const auto logits = model.logits(model.features(part)).view({part.n_rows(), -1, n_classes});
  return ctc_loss_sum(logits, aligning->n_moments(part), transcripts, 1.0, blank);
}

ObjectiveType ctc_objective() {
  ObjectiveType type;
  type.name = "ctc";
  type.doc = "CTC: the probability of a transcript, summed over all ways to spread it over a recording.";
  type.make = [](const Selection&, const ObjectiveContext& context) -> std::shared_ptr<const Objective> {
    if (context.label_smoothing > 0)
      throw ConfigError("training.label_smoothing: ctc has no targets to smooth: set it to 0");
    return std::make_shared<CtcObjective>();
  };
  return type;
}

}  // namespace zoo

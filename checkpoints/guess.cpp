#include "checkpoints/guess.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"

namespace zoo {
namespace {

/// Calls `use` with the targets of the first batches, until they are at least `most`.
void for_targets(BatchSource& source, int64_t most, const std::function<void(int64_t target)>& use) {
  int64_t n = 0;
  for (int64_t i = 0; i < source.n_batches(0) && n < most; ++i) {
    const auto targets = source.batch(0, i).targets;
    if (!targets.defined() || targets.is_floating_point()) return;  // there are no classes to guess
    const auto values = targets.contiguous();
    std::for_each_n(values.const_data_ptr<int64_t>(), values.numel(), use);
    n += values.numel();
  }
}

}  // namespace

std::optional<GuessLosses> guess_losses(Task& task, Split split) {
  constexpr int64_t most = 1'000'000;
  const auto purpose = task.purpose();
  const int64_t n_classes = predicts_tokens(purpose.head) ? purpose.vocab_size : purpose.n_classes;
  if (n_classes < 1) return std::nullopt;
  std::vector<double> counts(static_cast<size_t>(n_classes), 1.0);
  double total = static_cast<double>(n_classes), nats = 0;
  try {
    for_targets(task.batches(Split::train), most, [&](int64_t target) {
      ++counts[static_cast<size_t>(target)];
      ++total;
    });
  } catch (const DataError&) {
    return std::nullopt;
  }
  int64_t n_targets = 0;
  for_targets(task.batches(split), most, [&](int64_t target) {
    nats -= std::log(counts[static_cast<size_t>(target)] / total);
    ++n_targets;
  });
  if (n_targets == 0) return std::nullopt;
  return GuessLosses{.uniform = std::log(static_cast<double>(n_classes)),
                     .unigram = nats / static_cast<double>(n_targets)};
}

bool has_learnt(double loss, const GuessLosses& guess) {
  constexpr double least = 0.02;
  return loss < (1 - least) * guess.unigram;
}

std::optional<std::string> guess_note(double loss, const GuessLosses& guess) {
  const auto note = [&](double guessed, std::string_view how) {
    return fmt::format("the loss {:.3f} is not below {:.3f}, the loss of guessing {}", loss, guessed, how);
  };
  if (loss >= guess.uniform) return note(guess.uniform, "every class with the same probability");
  if (loss >= guess.unigram) return note(guess.unigram, "the frequencies of the training data");
  return std::nullopt;
}

}  // namespace zoo

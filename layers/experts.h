#pragma once
// A mixture of experts in place of one feed-forward network (Shazeer et al. 2017): a router chooses k of E
// networks for each token, and the layer's output is the sum of theirs, each times its weight.
//
//     y = Σ_{e ∈ top k} g_e(x) · expert_e(x)  +  shared(x)
//
// Tokens are sorted by expert, and each expert's matrix is multiplied with its own rows. Unless a capacity is
// set no token is dropped, so what a token gets does not depend on the tokens beside it. In an encoder the
// experts may choose the tokens instead (Zhou et al. 2022).

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layers/expert_exchange.h"
#include "layers/feed_forward.h"
#include "layers/weights/linear.h"

namespace zoo {

/// How scores of experts, router(x), become weights.
///   softmax              softmax over all experts, then the k largest (Qwen, OLMoE, DeepSeek V2)
///   softmax_after_top_k  the k largest scores, then softmax over them (Mixtral, gpt-oss)
///   sigmoid              each score by itself, then the k largest (DeepSeek V3)
enum class Router { softmax, softmax_after_top_k, sigmoid };
constexpr auto config_names(Router) {
  return std::to_array<std::string_view>({"softmax", "softmax_after_top_k", "sigmoid"});
}

/// Only the experts of the best groups are chosen from (DeepSeek V2 and V3).
///   max      a group is as good as its best expert
///   top_two  as the sum of its two best experts
enum class GroupScore { max, top_two };
constexpr auto config_names(GroupScore) { return std::to_array<std::string_view>({"max", "top_two"}); }

/// Whether tokens choose their experts, or experts their tokens.
///   tokens   each token its k best experts
///   experts  each expert the k·T/E tokens of a row, rounded up, that suit it best (Zhou et al. 2022). What a
///            token gets depends on the other tokens of its row: for encoders alone
enum class Chooser { tokens, experts };
constexpr auto config_names(Chooser) { return std::to_array<std::string_view>({"tokens", "experts"}); }

/// Over which tokens the loss of balance takes the share of tokens that an expert has.
///   row   those of the row (DeepSeek V2): nothing beside the row matters
///   step  those of the last step, over all rows and processes (Qiu et al. 2025 take those of the step
///         itself, which are not known while its rows go through the model)
enum class BalanceOver { row, step };
constexpr auto config_names(BalanceOver) { return std::to_array<std::string_view>({"row", "step"}); }

struct ExpertsOptions {
  /// `expert`: of each of `count` networks, of which `active` work for a token.
  ExpertsOptions(FeedForwardOptions expert, int64_t count, int64_t active)
      : expert_(std::move(expert)), count_(count), active_(active) {}
  TORCH_ARG(FeedForwardOptions, expert);
  TORCH_ARG(int64_t, count);
  TORCH_ARG(int64_t, active);
  TORCH_ARG(Router, router) = Router::softmax;
  /// Whether the router's scores have a learned number for each expert (gpt-oss).
  TORCH_ARG(bool, router_bias) = false;
  /// Whether the weights of the chosen experts are divided by their sum.
  TORCH_ARG(bool, normalize) = false;
  /// Factor on the weights.
  TORCH_ARG(double, scale) = 1.0;
  /// Whether each expert has a number that is added to its score for the choice alone (Wang et al. 2024).
  TORCH_ARG(bool, choice_bias) = false;
  TORCH_ARG(Chooser, chooser) = Chooser::tokens;
  /// By how much adjust_bias() changes the numbers of choice_bias.
  TORCH_ARG(double, bias_rate) = 0.0;
  /// In training an expert takes at most capacity·k·T/E tokens of a row, rounded up: first choices go first,
  /// then earlier tokens; what is dropped adds nothing (Fedus et al. 2021). 0: no limit.
  TORCH_ARG(double, capacity) = 0.0;
  /// Experts are in `groups` groups of neighbours, and only those of the best `active_groups` are chosen
  /// from.
  TORCH_ARG(int64_t, groups) = 1;
  TORCH_ARG(int64_t, active_groups) = 1;
  TORCH_ARG(GroupScore, group_score) = GroupScore::max;
  /// A network that works for every token; absent: none.
  TORCH_ARG(std::optional<FeedForwardOptions>, shared) = std::nullopt;
  /// Whether the shared network's output is times sigmoid(w · x) (Qwen2).
  TORCH_ARG(bool, shared_gate) = false;
  /// Factors on two losses that training adds for each token: that of balance (Fedus et al. 2021), within
  /// each row as in DeepSeek V2, so that the rows beside it do not matter:
  ///     Σ_e f_e P_e,  f_e = E/k · share of the row's tokens that have e,  P_e = mean of the row's softmax or
  /// sigmoid of e, divided by its sum; and (log Σ_e exp score_e)² (z-loss, Zoph et al. 2022).
  TORCH_ARG(double, balance) = 0.0;
  TORCH_ARG(BalanceOver, balance_over) = BalanceOver::row;
  TORCH_ARG(double, z_loss) = 0.0;
};

/// The experts of each of N tokens.
struct ExpertChoice {
  torch::Tensor experts;  // (N, k) int64
  torch::Tensor weights;  // (N, k) float
};

/// The passes in which an expert counts its tokens: those in training, or those in evaluation, too.
enum class CountedPasses { training, all };

/// How the tokens of some passes were divided among experts.
struct ExpertLoad {
  double busiest = 0;  // tokens of the busiest expert, divided by the mean over all
  double idle = 0;     // share of the experts that had no token
  double entropy = 0;  // of the router's softmax, mean over tokens, divided by log E: 1 is even
  double dropped = 0;  // share of the choices that a capacity has dropped
};

/// Parameters: `router` (E, D), with a bias if router_bias; `gate` and `up` (E F, D) and `down` (E D, F),
/// whose parts are the experts' matrices; `shared`; `shared_gate` (1, D); the buffers `choice_bias` (E) and,
/// for BalanceOver::step, `last_share` (E).
class ExpertsImpl : public Cloneable<ExpertsImpl> {
 public:
  explicit ExpertsImpl(const ExpertsOptions& options);
  /// (B, T, D) → (B, T, D). lengths: (B) int64, the tokens of each row that count for balance; undefined:
  /// all.
  torch::Tensor forward(const torch::Tensor& x, const torch::Tensor& lengths = {});
  /// x: (N, D). Ties go to whichever torch.topk takes. For Chooser::tokens.
  ExpertChoice choose(const torch::Tensor& x) const;
  /// What the losses of balance are times in the backward pass of later forward passes in training: 1 / the
  /// number of targets of a step. They are added to the gradients alone, so that reported losses are those of
  /// the objective. 0: the tokens of these passes are not counted either.
  void weigh_losses(double weight) { loss_weight_ = weight; }
  void count(CountedPasses passes) { counted_ = passes; }
  /// Begins a step: the tokens of earlier passes no longer count. Several threads may be in
  /// forward(), but none may be during this call and the next two.
  void begin_step();
  /// How the passes since then divided their tokens, without padding; nothing if there were none.
  std::optional<ExpertLoad> load_of_step() const;
  /// The tokens (E) int64 on the CPU that each expert had in them; zeros if there were none.
  torch::Tensor counts() const;
  /// Ends a step in which the experts had `counts` (E) tokens, over all rows and processes: with a bias_rate,
  /// choice_bias rises by it for experts with fewer tokens than the mean, and falls for those with more (Wang
  /// et al. 2024); last_share becomes their share.
  void end_step(const torch::Tensor& counts);
  bool needs_counts() const { return options.bias_rate() > 0 || last_share.defined(); }
  /// From now on `gate`, `up` and `down` have the parts of this process's experts alone, those from
  /// rank · E / n on, and others' work is asked for through `exchange`. Null: they have all parts.
  void divide(std::shared_ptr<const ExpertExchange> exchange) { exchange_ = std::move(exchange); }
  bool is_divided() const { return exchange_ != nullptr; }
  /// gate, if there is one, up and down.
  std::vector<Linear> maps() const;
  /// The parameters of the experts that do not work for a token.
  int64_t idle_parameters() const;
  void pretty_print(std::ostream& stream) const override;

  ExpertsOptions options;
  Linear router{nullptr};
  Linear gate{nullptr}, up{nullptr}, down{nullptr};  // gate: gated activations only
  FeedForward shared{nullptr};
  Linear shared_gate{nullptr};
  torch::Tensor choice_bias;  // (E) or undefined
  torch::Tensor last_share;   // (E) or undefined: 1 is even

 private:
  /// Tokens with their experts, as pairs that are sorted by expert.
  struct Pairs {
    torch::Tensor tokens;         // (P) int64: of N
    torch::Tensor weights;        // (P) float
    std::vector<int64_t> counts;  // pairs of each expert
  };

  ExpertChoice choose_by(const torch::Tensor& scores) const;                 // (N, E)
  torch::Tensor routed(const torch::Tensor& x, const ExpertChoice& choice);  // (N, D) → (N, D)
  /// scores: (B, T, E).
  Pairs chosen_by_experts(const torch::Tensor& scores, const torch::Tensor& lengths) const;
  torch::Tensor routed(const torch::Tensor& x, const Pairs& pairs);  // (N, D) → (N, D)
  /// The outputs of the experts for rows that are sorted by expert.
  torch::Tensor outputs_of(const torch::Tensor& sorted, const std::vector<int64_t>& counts);
  torch::Tensor outputs_here(const torch::Tensor& sorted, const std::vector<int64_t>& counts);
  /// Whether a choice is within the capacity of its expert: (B, T, k) bool.
  torch::Tensor within_capacity(const torch::Tensor& experts, const torch::Tensor& lengths) const;
  /// scores: (B, T, E).
  torch::Tensor balance_loss(const torch::Tensor& scores, const torch::Tensor& experts,
                             const torch::Tensor& lengths) const;

  /// scores: (B, T, E); is_token: (B, T), 0 for padding; counts: (E).
  void count_load(const torch::Tensor& scores, const torch::Tensor& is_token, const torch::Tensor& counts,
                  int64_t n_dropped);

  double loss_weight_ = 1;
  CountedPasses counted_ = CountedPasses::training;
  std::shared_ptr<const ExpertExchange> exchange_;
  std::mutex counting_;
  torch::Tensor tokens_of_experts_;  // (E) int64 on the CPU; undefined: no passes
  double entropy_ = 0;               // Σ over tokens
  double n_tokens_ = 0;
  int64_t n_dropped_ = 0;
};
TORCH_MODULE(Experts);

/// Those of a model, in the order of its modules.
std::vector<std::shared_ptr<ExpertsImpl>> experts_of(const torch::nn::Module& model);

/// `n_tokens`: vectors that the layer reads, over all rows. Counts the experts that work.
void count_experts(CostAccount& account, const std::string& name, const ExpertsOptions& options,
                   double n_tokens);

}  // namespace zoo

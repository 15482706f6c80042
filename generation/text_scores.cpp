#include "generation/text_scores.h"

#include <algorithm>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "generation/log_probabilities.h"
#include "generation/prompt.h"
#include "generation/sequence_reader.h"
#include "models/inference_scope.h"

namespace zoo {
namespace {

/// A part of a text that the model sees at once: it reads `prompt` and predicts each of `ids`.
struct Passage {
  size_t text;   // its number
  size_t first;  // the place of ids[0] among the tokens of the text
  TokenIds prompt, ids;
};

/// Logits that are computed at once.
constexpr int64_t kMostLogits = 1 << 22;

/// Appends the passages of a text: more than one if it has more tokens than the model sees.
void append_passages(const TokensToScore& text, size_t number, const GenerativeModel& model,
                     std::vector<Passage>& to) {
  if (text.ids.empty()) return;
  if (!model.continues_prompt()) {
    to.push_back({.text = number, .first = 0, .prompt = text.prompt, .ids = text.ids});
    return;
  }
  const int64_t limit = model.max_length();
  auto seen = text.prompt;
  shorten(seen, limit);
  for (size_t first = 0; first < text.ids.size();) {
    TORCH_CHECK(std::ssize(seen) <= limit, "a text has to leave room for its next token");
    const size_t room = static_cast<size_t>(limit) + 1 - seen.size();
    const auto rest = std::span(text.ids).subspan(first);
    const auto ids = rest.first(std::min(rest.size(), room));
    to.push_back({.text = number, .first = first, .prompt = seen, .ids = {ids.begin(), ids.end()}});
    seen.insert(seen.end(), ids.begin(), ids.end());
    shorten(seen, limit);
    first += ids.size();
  }
}

/// The tokens [begin, begin + width) of each row, as far as it has them, padded with zeros.
TokenBatch columns(std::span<const TokenIds> rows, int64_t begin, int64_t width, torch::Device device) {
  const auto n_rows = std::ssize(rows);
  auto ids = torch::zeros({n_rows, width}, torch::kInt64), lengths = torch::zeros({n_rows}, torch::kInt64);
  for (int64_t b = 0; b < n_rows; ++b) {
    const auto& row = rows[static_cast<size_t>(b)];
    const int64_t n = std::clamp<int64_t>(std::ssize(row) - begin, 0, width);
    std::copy_n(row.begin() + std::min(begin, std::ssize(row)), n,
                ids.mutable_data_ptr<int64_t>() + b * width);
    lengths.mutable_data_ptr<int64_t>()[b] = n;
  }
  const bool differ = (lengths != width).any().item<bool>();
  return {.ids = ids.to(device), .lengths = differ ? lengths.to(device) : torch::Tensor()};
}

int64_t longest(std::span<const TokenIds> rows) {
  int64_t n = 0;
  for (const auto& row : rows) n = std::max(n, std::ssize(row));
  return n;
}

/// The scores of tokens, one for each row of logits.
std::vector<ScoredToken> scores(const torch::Tensor& logits, const std::vector<int64_t>& tokens,
                                int64_t n_likeliest) {
  std::vector<ScoredToken> result;
  for (const double value : log_probabilities(logits, tokens)) result.push_back({.logprob = value});
  if (n_likeliest == 0) return result;
  auto likeliest = likeliest_tokens(logits, n_likeliest);
  for (size_t i = 0; i < result.size(); ++i) result[i].likeliest = std::move(likeliest[i]);
  return result;
}

/// The scores of the tokens of passages that are read together.
std::vector<std::vector<ScoredToken>> read(GenerativeModel& model, torch::Device device,
                                           std::span<const Passage* const> passages, int64_t n_likeliest) {
  std::vector<TokenIds> prompts, read_after;
  std::vector<int64_t> next, prompt_of;  // by passage
  for (const auto* const passage : passages) {
    // Passages with one prompt stand together.
    if (prompts.empty() || prompts.back() != passage->prompt) prompts.push_back(passage->prompt);
    prompt_of.push_back(std::ssize(prompts) - 1);
    read_after.emplace_back(passage->ids.begin(), passage->ids.end() - 1);
    next.push_back(passage->ids.front());
  }
  DecodingState state;
  auto logits = model.prefill({.input = columns(prompts, 0, longest(prompts), device)}, state);  // (B, V)
  if (prompts.size() < passages.size()) {  // a prompt is read once for all of its passages
    state.reorder(prompt_of);
    logits = logits.index_select(0, torch::tensor(prompt_of, torch::kInt64).to(device));
  }
  std::vector<std::vector<ScoredToken>> result;
  for (auto& score : scores(logits, next, n_likeliest)) result.push_back({std::move(score)});

  const auto n_rows = std::ssize(passages);
  const int64_t width = std::max<int64_t>(1, kMostLogits / (n_rows * logits.size(1)));
  for (int64_t begin = 0; begin < longest(read_after); begin += width) {
    const int64_t n = std::min(width, longest(read_after) - begin);
    std::vector<int64_t> places;  // of real tokens in the flat batch
    next.clear();
    for (int64_t b = 0; b < n_rows; ++b) {
      const auto& ids = passages[static_cast<size_t>(b)]->ids;
      for (int64_t t = begin; t < std::min(begin + n, std::ssize(ids) - 1); ++t) {
        places.push_back(b * n + t - begin);
        next.push_back(ids[static_cast<size_t>(t) + 1]);
      }
    }
    const auto at = LogitsAt::positions(torch::tensor(places, torch::kInt64).to(device));
    auto values = scores(model.forward(columns(read_after, begin, n, device), state, at), next, n_likeliest);
    for (size_t i = 0; i < places.size(); ++i)
      result[static_cast<size_t>(places[i] / n)].push_back(std::move(values[i]));
  }
  return result;
}

}  // namespace

TokensToScore tokens_to_score(std::string_view text, const Tokenizer& tokenizer,
                              const GenerativeModel& model) {
  check_prompt_size(text, model.max_length());
  const auto frame = tokenizer.frame();
  return {.prompt = model_input(frame ? frame->before : TokenIds(), tokenizer, model, "the text"),
          .ids = tokenizer.encode(text)};
}

TokensToScore tokens_to_score(std::string_view source, std::string_view target, const Tokenizer& tokenizer,
                              const GenerativeModel& model) {
  check_prompt_size(target, model.max_length());
  TokensToScore result{
      .prompt = model_input(encode_prompt(tokenizer, source, model), tokenizer, model, "the source"),
      .ids = tokenizer.encode(target)};
  if (const auto frame = tokenizer.frame()) {
    result.ids = framed(*frame, std::move(result.ids));
  } else if (const int64_t eos = tokenizer.special().eos; eos >= 0) {
    result.ids.push_back(eos);
  }
  const int64_t most = model.max_length() - (model.sequence_has_prompt() ? std::ssize(result.prompt) : 0);
  if (std::ssize(result.ids) > most) {
    throw DataError(
        fmt::format("the target has {} tokens with the end token, and the model writes at most {}: "
                    "shorten it",
                    result.ids.size(), most));
  }
  return result;
}

std::vector<std::vector<ScoredToken>> scored_tokens(Model& model, const std::vector<TokensToScore>& texts,
                                                    int64_t n_likeliest, int64_t batch_size) {
  TORCH_CHECK(batch_size > 0, "batch_size must be positive");
  const InferenceScope scope(model);
  auto& generative = *model.generative();
  TokenIds all;  // checked at once, because each check looks for the device of the weights
  for (const auto& text : texts) {
    all.insert(all.end(), text.prompt.begin(), text.prompt.end());
    all.insert(all.end(), text.ids.begin(), text.ids.end());
  }
  model.check_tokens(all);
  std::vector<Passage> passages;
  for (size_t i = 0; i < texts.size(); ++i) append_passages(texts[i], i, generative, passages);
  // Passages of similar length share a batch: this saves padding.
  std::vector<const Passage*> sorted;
  for (const auto& passage : passages) sorted.push_back(&passage);
  std::ranges::stable_sort(sorted, {}, [](const Passage* passage) {
    return std::tuple<size_t, const TokenIds&, size_t>(passage->prompt.size(), passage->prompt,
                                                       passage->ids.size());
  });
  std::vector<std::vector<ScoredToken>> result;
  for (const auto& text : texts) result.emplace_back(text.ids.size());
  const auto most = static_cast<size_t>(batch_size);
  for (size_t begin = 0; begin < sorted.size(); begin += most) {
    const auto batch = std::span(sorted).subspan(begin, std::min(most, sorted.size() - begin));
    auto values = read(generative, model.device(), batch, n_likeliest);
    for (size_t i = 0; i < batch.size(); ++i) {
      std::ranges::move(values[i], result[batch[i]->text].begin() + static_cast<ptrdiff_t>(batch[i]->first));
    }
  }
  return result;
}

std::vector<std::vector<double>> token_logprobs(Model& model, const std::vector<TokensToScore>& texts,
                                                int64_t batch_size) {
  std::vector<std::vector<double>> result;
  for (const auto& text : scored_tokens(model, texts, 0, batch_size)) {
    auto& logprobs = result.emplace_back();
    for (const auto& token : text) logprobs.push_back(token.logprob);
  }
  return result;
}

}  // namespace zoo

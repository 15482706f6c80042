#include "training/tasks/text_tasks.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "generation/generator.h"
#include "models/families/families.h"

namespace zoo {
namespace {

/// Whether one of the tokens `begin` … `end` (excluded) is `id`. Reads parts of the store, because a document
/// may be a whole corpus.
bool has_token(const TokenStore& store, int64_t begin, int64_t end, int64_t id) {
  constexpr int64_t at_once = 65'536;
  for (; begin < end; begin += at_once) {
    const auto part = store.slice(begin, std::min(begin + at_once, end));
    if (std::ranges::find(part, id) != part.end()) return true;
  }
  return false;
}

}  // namespace

void require_shape(const Experiment& experiment, std::initializer_list<FamilyShape> shapes,
                   std::string_view wanted, const Complain& complain) {
  if (std::ranges::find(shapes, shape_of(experiment.model)) != shapes.end()) return;
  complain("model.architecture", fmt::format("must be {} for {}, not {}", wanted, experiment.task.type,
                                             experiment.model.architecture.type));
}

void require_positions(const Experiment& experiment, std::string_view key, int64_t length,
                       const Complain& complain) {
  if (length <= experiment.model.max_positions) return;
  complain(key,
           fmt::format("{} is longer than model.max_positions {}", length, experiment.model.max_positions));
}

void refuse_key(const Experiment& experiment, std::string_view key, bool is_set, std::string_view owner,
                const Complain& complain) {
  if (is_set && experiment.task.type != owner)
    complain(key, fmt::format("is for {}, not for {}", owner, experiment.task.type));
}

std::shared_ptr<const Tokenizer> make_tokenizer_for(
    const TokenizerConfig& config, SpecialTokenSet needed,
    const std::vector<const std::vector<std::string>*>& corpora) {
  const bool all = config.special_tokens.value_or(needed == SpecialTokenSet::all ||
                                                  config.type == TokenizerKind::sentencepiece);
  const auto special = all ? SpecialTokenSet::all : SpecialTokenSet::none;
  return make_tokenizer(config, special, [&](const std::function<void(std::string_view)>& sink) {
    for (const auto* corpus : corpora) {
      for (const auto& text : *corpus) sink(text);
    }
  });
}

size_t predicted_bytes(const Tokenizer& tokenizer, const TokenStore& store, int64_t begin, int64_t end,
                       std::string_view text) {
  const int64_t unk = tokenizer.special().unk;
  if (tokenizer.keeps_text() && (unk < 0 || !has_token(store, begin, end, unk))) return text.size();
  TokenIds known = store.slice(begin, end);
  std::erase(known, unk);
  return tokenizer.decode(known).size();
}

std::string bits_key(const Tokenizer& tokenizer) {
  return tokenizer.keeps_text() ? "bits_per_byte" : "bits_per_decoded_byte";
}

std::vector<Sample> sampled_texts(Model& model, const Task& task, const std::vector<TokenIds>& prompts) {
  GenerationConfig options = task.experiment().generation;
  options.num_samples = 1;
  const Generator generator(model, task.tokenizer());
  std::vector<Sample> result;
  for (const auto& generation : generator.generate(prompts, options)) {
    result.push_back(
        {.input = task.tokenizer().decode(generation.prompt_ids), .output = generation.outputs.front().text});
  }
  return result;
}

}  // namespace zoo

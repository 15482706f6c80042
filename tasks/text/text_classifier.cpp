#include "tasks/text/text_classifier.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "data/epoch_plan.h"
#include "generation/prompt.h"
#include "models/inference_scope.h"
#include "tasks/examples.h"
#include "tasks/labels.h"
#include "tasks/text/text_tasks.h"
#include "text/batches/padded_rows.h"
#include "tokenizers/tokenize.h"

namespace zoo {

torch::Tensor TextClassifier::targets(const LabelledTexts& rows) const {
  return targets_of(rows.labels, labels(), problem(), experiment().data);
}

TextClassifier::EncodedText TextClassifier::encode(const std::string& text,
                                                   const std::optional<std::string>& second) const {
  if (pairs() == PairUse::always && !second)
    throw DataError("this model reads pairs of texts, and the second one is missing (data.pair_column)");
  if (pairs() == PairUse::none && second) throw DataError("this model reads single texts, not pairs");
  EncodedText encoded{.text = encode_text(text), .second = {}};
  if (second) encoded.second = encode_text(*second);
  if (const int64_t n_around = n_special_tokens(encoded); n_around >= length_limit()) {
    throw DataError(fmt::format(
        "the model reads {} tokens, and {} special tokens stand around a text: its {}", length_limit(),
        n_around, "data.sequence_length, or the model_max_length of its tokenizer, is too small"));
  }
  return encoded;
}

std::vector<TokenIds> TextClassifier::first_texts(const std::vector<EncodedText>& encoded) {
  std::vector<TokenIds> texts;
  for (const auto& each : encoded) texts.push_back(each.text);
  return texts;
}

int64_t TextClassifier::length_with_specials(const EncodedText& text) const {
  return std::ssize(text.text) + (text.second ? std::ssize(*text.second) : 0) + n_special_tokens(text);
}

TokenIds TextClassifier::encode_text(const std::string& text) const {
  const auto cut_at = tokenizer().frame().value_or(TextFrame{}).cut_at;
  return tokenizer().encode(part_to_read(text, length_limit(), cut_at));
}

torch::Tensor TextClassifier::class_scores(Model& model, const std::vector<EncodedText>& texts,
                                           const PredictOptions& options) const {
  constexpr int64_t most_tokens = 4096;
  const InferenceScope scope(model);
  const Scorer classifier = scorer(model);
  auto all = torch::empty({std::ssize(texts), std::ssize(labels())});
  int64_t n_before = 0;  // texts that are done
  for (const bool are_pairs : {false, true}) {
    std::vector<int64_t> lengths, numbers;
    for (int64_t i = 0; i < std::ssize(texts); ++i) {
      const auto& text = texts[static_cast<size_t>(i)];
      if (text.second.has_value() != are_pairs) continue;
      lengths.push_back(std::min(length_with_specials(text), length_limit()));
      numbers.push_back(i);
    }
    const auto score_batch = [&](std::span<const int64_t> examples) {
      std::vector<EncodedText> rows;
      std::vector<int64_t> places;
      for (const int64_t i : examples) {
        places.push_back(numbers[static_cast<size_t>(i)]);
        rows.push_back(texts[static_cast<size_t>(places.back())]);
      }
      all.index_copy_(0, int64_tensor(places), classifier.scores(rows));
    };
    const auto progress = [&](int64_t done, int64_t) {
      if (options.on_progress) options.on_progress(n_before + done, std::ssize(texts));
    };
    for_each_batch(lengths, {.rows = classifier.most_rows, .tokens = most_tokens}, score_batch, progress);
    n_before += std::ssize(lengths);
  }
  return all;
}

void TextClassifier::name_inputs(Split split, const EvaluationOptions& options) {
  if (!options.examples) return;
  const auto rows = take_rows(split);
  for (size_t i = 0; i < options.examples->size(); ++i) {
    auto& example = options.examples->at(i);
    example.input = rows.texts[i];
    if (!rows.pairs.empty()) example.input += kBetweenPairs + rows.pairs[i];
    if (!example.target) example.target = rows.labels[i];
  }
}

void TextClassifier::note_length(const TokenStore& texts, const TokenStore& seconds, Split split) {
  const bool are_pairs = seconds.n_rows() > 0;
  EncodedText shortest;
  if (are_pairs) shortest.second = TokenIds();
  const int64_t n_around = n_special_tokens(shortest);
  int64_t n_cut = 0;
  for (int64_t i = 0; i < texts.n_rows(); ++i) {
    const int64_t of_second = are_pairs ? seconds.row_length(i) : 0;
    n_cut += texts.row_length(i) + of_second + n_around > length_limit() ? 1 : 0;
  }
  add_notes(notes_on_cut(n_cut, texts.n_rows(), are_pairs ? "pairs" : "texts", split, "data.sequence_length",
                         length_limit()));
}

std::vector<Prediction> TextClassifier::predict(Model& model, const std::vector<std::string>& inputs,
                                                const PredictOptions& options) {
  std::vector<Prediction> predictions;
  std::vector<EncodedText> texts;
  std::vector<size_t> origins;  // of the texts among the inputs: those with tokens
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto second = options.seconds.empty() ? std::nullopt : options.seconds.at(i);
    try {
      auto text = encode(inputs[i], second);
      auto& prediction = predictions.emplace_back(Prediction{.input = inputs[i]});
      if (second) prediction.input += kBetweenPairs + *second;
      prediction.cut = length_with_specials(text) > length_limit();
      prediction.answer = answer_from({}, problem(), labels());
      if (text.text.empty() && (!text.second || text.second->empty())) continue;
      texts.push_back(std::move(text));
      origins.push_back(i);
    } catch (const DataError& error) {
      throw DataError(fmt::format("text {}: {}", i + 1, error.what()));
    }
  }
  const auto outputs = activated(class_scores(model, texts, options), problem());
  for (size_t i = 0; i < origins.size(); ++i)
    predictions[origins[i]].answer = answer_from(outputs[static_cast<int64_t>(i)], problem(), labels());
  return predictions;
}

std::vector<Sample> TextClassifier::samples(Model& model, const std::vector<std::string>& inputs) {
  constexpr size_t n_samples = 5;
  TextInputs shown = split_at_tabs(inputs, pairs());
  std::vector<std::string> references;
  if (inputs.empty()) {
    const auto rows = take_rows(Split::valid);
    for (size_t i = 0; i < std::min(n_samples, rows.texts.size()); ++i) {
      shown.texts.push_back(rows.texts[i]);
      if (!rows.pairs.empty()) shown.seconds.emplace_back(rows.pairs[i]);
      references.push_back(rows.labels[i]);
    }
  }
  std::vector<Sample> samples;
  for (const auto& prediction : predict(model, shown.texts, {.seconds = shown.seconds})) {
    Sample sample{.input = prediction.input, .output = in_words(prediction)};
    if (!references.empty()) sample.reference = references[samples.size()];
    samples.push_back(std::move(sample));
  }
  return samples;
}

}  // namespace zoo

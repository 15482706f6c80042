#include "tasks/prediction.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/named_enum.h"
#include "base/text.h"
#include "io/json_document.h"
#include "text/text_rows.h"

namespace zoo {
namespace {

/// The first `top` of a list.
template <class T>
std::span<const T> first_of(const std::vector<T>& list, int64_t top) {
  return std::span(list).first(static_cast<size_t>(std::min(top, std::ssize(list))));
}

nlohmann::ordered_json labels_json(const std::vector<LabelProbability>& labels, Problem problem,
                                   int64_t top) {
  const char* const key = problem == Problem::regression ? "score" : "probability";
  auto list = nlohmann::ordered_json::array();
  for (const auto& [label, probability] : first_of(labels, top))
    list.push_back({{"label", label}, {key, probability}});
  return list;
}

nlohmann::ordered_json objects_json(const std::vector<LabelledBox>& objects, int64_t top) {
  const auto rounded = [](double pixels) { return std::round(pixels * 100) / 100; };
  auto list = nlohmann::ordered_json::array();
  for (const auto& [label, score, box, query] : first_of(objects, top)) {
    const auto numbers = nlohmann::ordered_json::array(
        {rounded(box.x), rounded(box.y), rounded(box.width), rounded(box.height)});
    list.push_back({{"label", label}, {"score", score}, {"box", numbers}});
  }
  return list;
}

nlohmann::ordered_json tokens_json(const PredictedTokens& answer, int64_t top) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& token : answer.tokens) {
    auto& entry = list.emplace_back(nlohmann::ordered_json{{"token", token.token}});
    if (answer.problem != Problem::single_label) {
      entry["labels"] = labels_json(token.labels, answer.problem, top);
    } else if (token.has_class()) {
      entry["label"] = token.labels.front().label;
      entry["probability"] = token.labels.front().probability;
    } else {
      entry["label"] = entry["probability"] = nullptr;
    }
  }
  return list;
}

/// Text on one line, whole, with control characters escaped.
std::string on_one_line(std::string_view text) { return excerpt(text, std::string::npos); }

std::string labels_text(const std::vector<LabelProbability>& labels, int64_t top) {
  std::string text;
  for (const auto& [label, probability] : first_of(labels, top))
    text += fmt::format("{}{}\t{:.4f}", text.empty() ? "" : "\t", on_one_line(label), probability);
  return text + '\n';
}

std::string objects_text(const std::string& input, const std::vector<LabelledBox>& objects, int64_t top) {
  std::string text;
  for (const auto& [label, score, box, query] : first_of(objects, top)) {
    text += fmt::format("{}\t{}\t{:.4f}\t{:.2f}\t{:.2f}\t{:.2f}\t{:.2f}\n", on_one_line(input),
                        on_one_line(label), score, box.x, box.y, box.width, box.height);
  }
  return text;
}

std::string tokens_text(const std::vector<LabelledToken>& tokens, int64_t top) {
  std::string text;
  for (const auto& token : tokens) {
    text += on_one_line(token.token) + '\t' +
            (token.has_class() ? labels_text(token.labels, top) : std::string("-\t-\n"));
  }
  return text + '\n';
}

/// Adds what one prediction says to its entry in the document.
struct JsonOfAnswer {
  nlohmann::ordered_json& result;
  int64_t top;

  void operator()(const PredictedLabels& answer) const {
    result["labels"] = labels_json(answer.labels, answer.problem, top);
  }
  void operator()(const PredictedScore& answer) const { result["score"] = answer.value; }  // NaN becomes null
  void operator()(const PredictedTokens& answer) const { result["tokens"] = tokens_json(answer, top); }
  void operator()(const PredictedObjects& answer) const {
    result["objects"] = objects_json(answer.objects, top);
  }
  void operator()(const Transcript& answer) const {
    result["text"] = answer.text;
    if (answer.language) result["language"] = *answer.language;
    if (!answer.segments) return;
    auto& segments = result["segments"] = nlohmann::ordered_json::array();
    for (const auto& [begin, end, text] : *answer.segments)
      segments.push_back({{"start", begin}, {"end", end}, {"text", text}});
  }
};

/// The lines of one prediction.
struct LinesOfAnswer {
  const std::string& input;
  int64_t top;
  InputColumn column;

  std::string operator()(const PredictedLabels& answer) const {
    return first() + labels_text(answer.labels, top);
  }
  std::string operator()(const PredictedScore& answer) const {
    return first() + (std::isnan(answer.value) ? "\n" : fmt::format("{:.6g}\n", answer.value));
  }
  std::string operator()(const PredictedTokens& answer) const { return tokens_text(answer.tokens, top); }
  std::string operator()(const PredictedObjects& answer) const {
    return objects_text(input, answer.objects, top);
  }
  std::string operator()(const Transcript& answer) const {
    if (!answer.segments) return first() + on_one_line(answer.text) + '\n';
    std::string lines;
    for (const auto& [begin, end, text] : *answer.segments)
      lines += first() + fmt::format("{:.2f}\t{:.2f}\t{}\n", begin, end, on_one_line(text));
    return lines;
  }

 private:
  std::string first() const {
    return column == InputColumn::first ? on_one_line(input) + '\t' : std::string();
  }
};

}  // namespace

TextInputs split_at_tabs(std::vector<std::string> inputs, PairUse use) {
  TextInputs result;
  if (use == PairUse::none) return {.texts = std::move(inputs)};
  for (auto& input : inputs) {
    try {
      if (use == PairUse::possible && input.find(kBetweenPairs) == input.npos) {
        result.texts.push_back(std::move(input));
        result.seconds.emplace_back();
        continue;
      }
      auto [first, second] = split_pair(input);
      result.texts.push_back(std::move(first));
      result.seconds.emplace_back(std::move(second));
    } catch (const DataError& error) {
      throw DataError(fmt::format("text {}: {}", result.texts.size() + 1, error.what()));
    }
  }
  return result;
}

UnlikelyObjects keep_best_objects(std::vector<Prediction>& predictions, double min_score, int64_t top) {
  UnlikelyObjects unlikely;
  for (auto& prediction : predictions) {
    auto* const answer = std::get_if<PredictedObjects>(&prediction.answer);
    if (!answer) continue;
    auto& objects = answer->objects;
    std::erase_if(objects, [&](const LabelledBox& object) {
      if (object.score >= min_score) return false;
      if (unlikely.n++ == 0 || object.score > unlikely.best_score) {
        unlikely.best_score = object.score;
        unlikely.label = object.label, unlikely.input = prediction.input;
      }
      return true;
    });
    if (top < std::ssize(objects)) objects.resize(static_cast<size_t>(top));
  }
  return unlikely;
}

std::string in_words(const std::vector<LabelProbability>& labels, Problem problem) {
  if (problem == Problem::single_label) return labels.empty() ? std::string() : labels.front().label;
  constexpr double half = 0.5;
  std::string text;
  for (const auto& [label, probability] : labels) {
    if (problem == Problem::multi_label && probability < half) continue;
    text += (text.empty() ? "" : ", ") + label;
    if (problem == Problem::regression) text += fmt::format(" {:.4g}", probability);
  }
  return text.empty() ? "-" : text;
}

std::string in_words(const Prediction& prediction) {
  if (const auto* const score = std::get_if<PredictedScore>(&prediction.answer))
    return fmt::format("{:.4g}", score->value);
  const auto& [labels, problem] = std::get<PredictedLabels>(prediction.answer);
  return in_words(labels, problem);
}

std::string to_json(const std::vector<Prediction>& predictions, int64_t top,
                    std::optional<WeightFormat> weights) {
  auto results = nlohmann::ordered_json::array();
  for (const auto& prediction : predictions) {
    auto& result = results.emplace_back(nlohmann::ordered_json{{"input", prediction.input}});
    std::visit(JsonOfAnswer{result, top}, prediction.answer);
  }
  nlohmann::ordered_json document{{"results", std::move(results)}};
  if (weights) document["weights"] = name_of(*weights);
  // A byte model may read bytes that are not UTF-8: they become U+FFFD.
  return shown_json(document);
}

std::string to_text(const std::vector<Prediction>& predictions, int64_t top, InputColumn column) {
  std::string text;
  for (const auto& prediction : predictions)
    text += std::visit(LinesOfAnswer{prediction.input, top, column}, prediction.answer);
  return text;
}

}  // namespace zoo

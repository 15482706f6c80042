#include "tasks/prediction.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace zoo {
namespace {

/// The first `top` of a list.
template <class T>
std::span<const T> first_of(const std::vector<T>& list, int64_t top) {
  return std::span(list).first(static_cast<size_t>(std::min(top, std::ssize(list))));
}

nlohmann::ordered_json labels_json(const std::vector<LabelProbability>& labels, int64_t top) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& [label, probability] : first_of(labels, top))
    list.push_back({{"label", label}, {"probability", probability}});
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

nlohmann::ordered_json tokens_json(const std::vector<LabelledToken>& tokens) {
  auto list = nlohmann::ordered_json::array();
  for (const auto& token : tokens) {
    auto& entry = list.emplace_back(
        nlohmann::ordered_json{{"token", token.token}, {"label", nullptr}, {"probability", nullptr}});
    if (!token.has_class()) continue;
    entry["label"] = token.predicted.label;
    entry["probability"] = token.predicted.probability;
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

std::string tokens_text(const std::vector<LabelledToken>& tokens) {
  std::string text;
  for (const auto& token : tokens) {
    const auto& [label, probability] = token.predicted;
    text += on_one_line(token.token) + (token.has_class()
                                            ? fmt::format("\t{}\t{:.4f}\n", on_one_line(label), probability)
                                            : std::string("\t-\t-\n"));
  }
  return text + '\n';
}

}  // namespace

UnlikelyObjects keep_best_objects(std::vector<Prediction>& predictions, double min_score, int64_t top) {
  UnlikelyObjects unlikely;
  for (auto& prediction : predictions) {
    auto& objects = prediction.objects;
    if (!objects) continue;
    std::erase_if(*objects, [&](const LabelledBox& object) {
      if (object.score >= min_score) return false;
      if (unlikely.n++ == 0 || object.score > unlikely.best_score) {
        unlikely.best_score = object.score;
        unlikely.label = object.label, unlikely.input = prediction.input;
      }
      return true;
    });
    if (top < std::ssize(*objects)) objects->resize(static_cast<size_t>(top));
  }
  return unlikely;
}

std::string to_json(const std::vector<Prediction>& predictions, int64_t top) {
  auto results = nlohmann::ordered_json::array();
  for (const auto& [input, labels, cut, objects, on_white, tokens, transcript] : predictions) {
    auto& result = results.emplace_back(nlohmann::ordered_json{{"input", input}});
    if (transcript) {
      result["text"] = *transcript;
    } else if (tokens) {
      result["tokens"] = tokens_json(*tokens);
    } else if (objects) {
      result["objects"] = objects_json(*objects, top);
    } else {
      result["labels"] = labels_json(labels, top);
    }
  }
  const nlohmann::ordered_json document{{"results", std::move(results)}};
  // A byte model may read bytes that are not UTF-8: they become U+FFFD.
  return document.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string to_text(const std::vector<Prediction>& predictions, int64_t top, InputColumn column) {
  std::string text;
  for (const auto& [input, labels, cut, objects, on_white, tokens, transcript] : predictions) {
    if (tokens) {
      text += tokens_text(*tokens);
      continue;
    }
    if (!objects && column == InputColumn::first) text += on_one_line(input) + '\t';
    if (transcript) {
      text += on_one_line(*transcript) + '\n';
    } else {
      text += objects ? objects_text(input, *objects, top) : labels_text(labels, top);
    }
  }
  return text;
}

}  // namespace zoo

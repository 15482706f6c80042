#include "tokenizers/hub/frame_of_template.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/error.h"
#include "tokenizers/subwords/specification.h"
#include "tokenizers/subwords/vocabulary.h"

namespace zoo {
namespace {

using SpecJson = nlohmann::json;

int64_t checked_template_id(const SpecJson& value) {
  const int64_t id = value.is_number_integer() ? value.get<int64_t>() : -1;
  if (id < 0 || id >= kMostTokenIds) throw DataError("tokenizer.json: post_processor: an id is out of range");
  return id;
}

/// The tokens before, between and after the texts of a template, and the segments (type ids) of its pieces.
struct TemplateParts {
  std::array<std::vector<int64_t>, 3> tokens;
  size_t n_texts = 0;
  std::vector<int64_t> segments_before_second, segments_from_second;
};

TemplateParts parts_of(const SpecJson& pieces, const SpecJson& special_tokens) {
  TemplateParts parts;
  for (const auto& piece : pieces) {
    const auto text = piece.find("Sequence");
    const auto& content = text != piece.end() ? *text : piece.at("SpecialToken");
    if (text != piece.end()) {
      const bool is_first = content.at("id") == "A";
      if (parts.n_texts > 1 || is_first != (parts.n_texts == 0))
        throw DataError("tokenizer.json: post_processor: a template without the texts A and B in this order");
      ++parts.n_texts;
    } else {
      for (const auto& id : special_tokens.at(content.at("id").get<std::string>()).at("ids"))
        parts.tokens[parts.n_texts].push_back(checked_template_id(id));
    }
    auto& segments = parts.n_texts > 1 ? parts.segments_from_second : parts.segments_before_second;
    segments.push_back(option(content, "type_id", int64_t{0}));
  }
  return parts;
}

TextFrame frame_of_both(const SpecJson& part) {
  const auto& special_tokens = part.at("special_tokens");
  const auto one = parts_of(part.at("single"), special_tokens);
  const auto two = parts_of(part.at("pair"), special_tokens);
  if (one.n_texts != 1)
    throw DataError("tokenizer.json: post_processor: the template 'single' is not tokens around one text");
  const auto all_are = [](const std::vector<int64_t>& segments, int64_t segment) {
    return std::ranges::all_of(segments, [&](int64_t each) { return each == segment; });
  };
  if (!all_are(one.segments_before_second, 0)) {
    throw DataError(
        "tokenizer.json: post_processor: the template 'single' has type ids other than 0, which is not "
        "supported");
  }
  const int64_t second = two.n_texts == 2 ? two.segments_from_second.front() : 0;
  TextFrame frame{.before = one.tokens[0],
                  .between = two.tokens[1],
                  .after = one.tokens[1],
                  .second_segment = second != 0 ? 1 : 0};
  if (two.n_texts != 2 || two.tokens[0] != frame.before || two.tokens[2] != frame.after) {
    frame.pair = PairTemplate::other_tokens;
  } else if (!all_are(two.segments_before_second, 0) ||
             !all_are(two.segments_from_second, frame.second_segment)) {
    frame.pair = PairTemplate::other_segments;
  }
  return frame;
}

void add_to(TextFrame& outer, const TextFrame& inner) {
  outer.before.insert(outer.before.end(), inner.before.begin(), inner.before.end());
  outer.between.insert(outer.between.begin(), inner.between.begin(), inner.between.end());
  outer.after.insert(outer.after.begin(), inner.after.begin(), inner.after.end());
  outer.second_segment = std::min(outer.second_segment, inner.second_segment);
  outer.pair = std::max(outer.pair, inner.pair);
}

}  // namespace

TextFrame frame_of_template(const SpecJson& part) {
  TextFrame frame;
  if (part.is_null()) return frame;
  const std::string type = type_of(part);
  if (type == "ByteLevel") return frame;
  if (type == "TemplateProcessing") return frame_of_both(part);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    const int64_t sep = checked_template_id(part.at("sep").at(1)),
                  cls = checked_template_id(part.at("cls").at(1));
    frame = {.before = {cls}, .between = {sep}, .after = {sep}, .second_segment = 1};
    if (type == "RobertaProcessing") {
      frame.between.push_back(sep);
      frame.second_segment = 0;
    }
    return frame;
  }
  if (type == "Sequence") {
    const auto& processors = part.at("processors");
    for (auto inner = processors.rbegin(); inner != processors.rend(); ++inner)
      add_to(frame, frame_of_template(*inner));
    return frame;
  }
  refuse_part("the post-processor", type);
}

}  // namespace zoo

#include "text/gguf/sentencepiece_blanks.h"

#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "text/gguf/gguf_token_kinds.h"
#include "text/gguf/tokenizer_refusal.h"
#include "tokenizers/hub/exported_pieces.h"
#include "tokenizers/subwords/specification.h"

namespace zoo {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse() {
  refuse_tokenizer("its normalizer or its pre_tokenizer is not that of SentencePiece");
}

/// The steps of a part, which may be a sequence of steps or nothing.
std::vector<Json> steps_of(const Json& document, const char* part, const char* steps) {
  const auto whole = document.value(part, Json());
  if (whole.is_null()) return {};
  return type_of(whole) == "Sequence" ? whole.at(steps).get<std::vector<Json>>() : std::vector{whole};
}

Json replace(const Json& pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", pattern}, {"content", content}};
}

/// Where a blank is put before something.
enum class Marked { nothing, text, parts };

bool hides_a_mark(const Json& step) {
  for (size_t i = 1; i < kHiding.size(); ++i) {
    if (step == replace({{"String", kHiding.at(i - 1)}}, kHiding.at(i))) return true;
  }
  return false;
}

}  // namespace

SentencePieceBlanks sentencepiece_blanks(const Json& document) {
  const Json blank{{"String", " "}};
  SentencePieceBlanks result;
  auto marked = Marked::nothing;
  bool are_marks = false;  // the blanks
  bool has_lines = false;  // which are encoded one by one
  for (const auto& step : steps_of(document, "normalizer", "normalizers")) {
    if (step == replace(blank, gguf_token::word_mark)) {
      are_marks = true;
    } else if (step == Json{{"type", "Prepend"}, {"prepend", gguf_token::word_mark}} ||
               step == replace({{"Regex", kTextStart}}, gguf_token::word_mark)) {
      marked = Marked::text;
    } else if (step == replace({{"Regex", kLineStart}}, gguf_token::word_mark)) {
      marked = Marked::parts;
    } else if (!hides_a_mark(step)) {
      refuse();
    }
  }
  for (const auto& step : steps_of(document, "pre_tokenizer", "pretokenizers")) {
    const auto type = type_of(step);
    const auto pattern = step.value("pattern", Json());
    if (type == "Metaspace" && !option(step, "split", true)) {
      const auto mark = option(step, "replacement", gguf_token::word_mark);
      const auto scheme =
          option(step, "prepend_scheme", option(step, "add_prefix_space", true) ? "always" : "never");
      // Where the blanks are marks already, a blank that is put before the text becomes one, too.
      if (mark != gguf_token::word_mark && (mark != " " || !are_marks)) refuse();
      are_marks = true;
      if (scheme != "never") marked = Marked::text;
    } else if (type == "Split" && pattern == Json{{"String", "\n"}} &&
               option(step, "behavior", "") == "Isolated") {
      has_lines = true;
    } else if (type != "Split" || !are_marks || pattern != blank) {  // of blanks there are none left (Gemma)
      refuse();
    }
  }
  // A part ends at what stands by itself. So all lines begin with a blank, or none.
  const auto& vocab = document.at("model").at("vocab");
  if (has_lines && vocab.contains("\n")) result.apart = "\n";
  if (has_lines && result.apart.empty() && marked == Marked::parts) result.apart = "<0x0A>";
  const bool fits = marked == Marked::nothing || (marked == Marked::parts) != result.apart.empty();
  if (!are_marks || !fits) refuse();
  result.before_parts = marked != Marked::nothing;
  return result;
}

}  // namespace zoo

#include "tokenizers/hub/exported_pieces.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "io/json_document.h"
#include "tokenizers/hub/sentencepiece_merges.h"
#include "tokenizers/subwords/specification.h"

namespace zoo {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr const char* kMark = "▁";
/// A character for private use that stands for a line break while the rules of characters are applied, which
/// would make it a blank.
constexpr const char* kLineBreak = "\xF4\x8F\xBF\xBC";

OrderedJson replace(OrderedJson pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", std::move(pattern)}, {"content", content}};
}
OrderedJson literal(const std::string& text) { return {{"String", text}}; }
OrderedJson regex(const char* expression) { return {{"Regex", expression}}; }

OrderedJson split(OrderedJson pattern, const char* behavior) {
  return {{"type", "Split"}, {"pattern", std::move(pattern)}, {"behavior", behavior}, {"invert", false}};
}

OrderedJson metaspace(const char* replacement, const char* scheme) {
  return {{"type", "Metaspace"}, {"replacement", replacement}, {"prepend_scheme", scheme}, {"split", false}};
}

bool reads_masks(const ExportedPieces& exported) {
  return is_frame_of_encoder(exported.frame, exported.special);
}

/// Where a line begins that is not empty, except for the first line of a text behind a mask, which cannot be
/// told from the first line of all: see pre_tokenizer_of().
const char* line_start(const ExportedPieces& exported) {
  if (reads_masks(exported)) return R"((?<=\n)(?=[^\n]))";
  return exported.has_line_break ? kLineStart : kTextStart;
}

OrderedJson normalizer_of(const ExportedPieces& exported) {
  auto steps = OrderedJson::array();
  if (exported.letters == LetterCase::folded) steps = folding_steps();
  if (!exported.charsmap.empty()) {
    if (exported.has_line_break) steps.push_back(replace(literal("\n"), kLineBreak));
    steps.push_back({{"type", "Precompiled"}, {"precompiled_charsmap", to_base64(exported.charsmap)}});
    if (exported.has_line_break) steps.push_back(replace(literal(kLineBreak), "\n"));
  }
  if (exported.blanks == SeveralBlanks::are_one) {
    steps.push_back(replace(regex(R"( +\z)"), ""));
    steps.push_back(replace(regex(" {2,}"), " "));
  }
  // From the end, so that no character is hidden twice.
  for (size_t i = exported.hides_marks ? kHiding.size() : 0; i-- > 1;)
    steps.push_back(replace(literal(kHiding.at(i - 1)), kHiding.at(i)));
  steps.push_back(replace(literal(" "), kMark));
  const bool has_lines = exported.has_line_break || !reads_masks(exported);
  if (exported.marks == MarkedPlaces::lines && has_lines)
    steps.push_back(replace(regex(line_start(exported)), kMark));
  return {{"type", "Sequence"}, {"normalizers", std::move(steps)}};
}

/// A token such as "<eos>" is never made from a text, because its score is too low, unless a part of it has
/// no token of its own: then this part is always by itself.
void isolate_brackets(const ExportedPieces& exported, OrderedJson& steps) {
  for (const char* const bracket : {"<", ">", "[", "]"}) {
    const bool is_known = std::ranges::any_of(exported.pieces, [&](const ExportedPiece& piece) {
      return piece.kind == PieceKind::text && piece.text.find(bracket) != std::string::npos;
    });
    if (!is_known) steps.push_back(split(literal(bracket), "Isolated"));
  }
}

OrderedJson pre_tokenizer_of(const ExportedPieces& exported) {
  auto steps = OrderedJson::array();
  const bool marks_text = exported.marks == MarkedPlaces::text;
  if (marks_text && exported.blanks == SeveralBlanks::are_one) {
    steps.push_back(metaspace(kMark, "first"));  // one blank before the text is this mark
  } else if (marks_text || (exported.marks == MarkedPlaces::lines && reads_masks(exported))) {
    // All blanks of the text are marks already, so this one is the mark of the beginning alone.
    steps.push_back(metaspace(" ", "first"));
    if (!marks_text && exported.has_line_break) steps.push_back(split(regex(R"( (?=\n))"), "Removed"));
    steps.push_back(metaspace(kMark, "never"));
  }
  if (exported.has_line_break) steps.push_back(split(literal("\n"), "Isolated"));
  if (exported.algorithm == SentencePieceModel::unigram) isolate_brackets(exported, steps);
  if (steps.empty()) return nullptr;
  return {{"type", "Sequence"}, {"pretokenizers", std::move(steps)}};
}

OrderedJson decoder_of(const ExportedPieces& exported) {
  OrderedJson steps =
      OrderedJson::array({replace(literal(kMark), " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}});
  if (exported.marks == MarkedPlaces::text)
    steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  if (exported.marks == MarkedPlaces::lines)
    steps.push_back(replace(regex(exported.has_line_break ? R"((?<![^\n]) )" : R"((?<![\s\S]) )"), ""));
  for (size_t i = 1; exported.hides_marks && i < kHiding.size(); ++i)
    steps.push_back(replace(literal(kHiding.at(i)), kHiding.at(i - 1)));
  return {{"type", "Sequence"}, {"decoders", std::move(steps)}};
}

bool has_bytes(const ExportedPieces& exported) {
  return std::ranges::find(exported.pieces, PieceKind::byte, &ExportedPiece::kind) != exported.pieces.end();
}

OrderedJson unigram_of(const ExportedPieces& exported) {
  float least = 0;
  for (const auto& piece : exported.pieces) {
    if (piece.kind == PieceKind::text) least = std::min(least, piece.score);
  }
  // Less than that of any way to write such a piece in characters.
  constexpr double longest_name = 64;
  const double never = longest_name * (static_cast<double>(least) - 10);
  auto vocab = OrderedJson::array();
  size_t unk = 0;
  for (const auto& piece : exported.pieces) {
    if (piece.kind == PieceKind::unknown) unk = vocab.size();
    const double score = piece.kind == PieceKind::text ? static_cast<double>(piece.score) : never;
    vocab.push_back({piece.text, score});
  }
  return {{"type", "Unigram"},
          {"unk_id", unk},
          {"vocab", std::move(vocab)},
          {"byte_fallback", has_bytes(exported)}};
}

OrderedJson bpe_of(const ExportedPieces& exported) {
  std::vector<std::string> texts;
  std::vector<float> scores;
  for (const auto& piece : exported.pieces) {
    if (piece.kind != PieceKind::text) continue;
    texts.push_back(piece.text);
    scores.push_back(piece.score);
  }
  const auto learnt = merges_of_scores(texts, scores);
  if (!learnt) throw DataError("the vocabulary has too many or too long pieces for a tokenizer.json");
  auto merges = OrderedJson::array();
  for (const auto& [left, right] : *learnt) merges.push_back({left, right});
  // An ordered object looks through all its members for each new one.
  OrderedJson::object_t vocab;
  int64_t id = 0;
  for (const auto& piece : exported.pieces)
    static_cast<OrderedJson::object_t::Container&>(vocab).emplace_back(piece.text, id++);
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", exported.unknown},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", true},
          {"byte_fallback", has_bytes(exported)},
          {"ignore_merges", false},
          {"vocab", std::move(vocab)},
          {"merges", std::move(merges)}};
}

}  // namespace

std::map<std::string, std::string> export_pieces(const ExportedPieces& exported) {
  const auto name_of = [&](int64_t id) { return exported.pieces.at(static_cast<size_t>(id)).text; };
  const bool is_bpe = exported.algorithm == SentencePieceModel::bpe;
  const OrderedJson tokenizer{
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added_tokens_of(exported.special, exported.frame, BlanksBeforeMask::belong_to_mask)},
      {"normalizer", normalizer_of(exported)},
      {"pre_tokenizer", pre_tokenizer_of(exported)},
      {"post_processor", post_processor_of(exported.frame, name_of)},
      {"decoder", decoder_of(exported)},
      {"model", is_bpe ? bpe_of(exported) : unigram_of(exported)}};
  return {{"tokenizer.json", json_text(tokenizer, 2) + "\n"},
          {"tokenizer_config.json", json_text(config_of(exported.special, exported.frame), 2) + "\n"}};
}

}  // namespace zoo

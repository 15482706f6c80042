// A tokenizer.json (https://huggingface.co/docs/tokenizers): normalizer, pre_tokenizer, model,
// post_processor, decoder, added_tokens.

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "tokenizers/hub/added_tokens.h"
#include "tokenizers/hub/frame_of_template.h"
#include "tokenizers/hub/places.h"
#include "tokenizers/hub/python_blanks.h"
#include "tokenizers/hub/text_codec.h"
#include "tokenizers/subwords/byte_level.h"
#include "tokenizers/subwords/decoder.h"
#include "tokenizers/subwords/normalizer.h"
#include "tokenizers/subwords/pre_tokenizer.h"
#include "tokenizers/subwords/specification.h"
#include "tokenizers/subwords/subword_model.h"
#include "tokenizers/subwords/word_cache.h"

namespace zoo {
namespace {

using SpecJson = nlohmann::json;

SpecJson part_of(const SpecJson& document, const char* name) {
  const auto found = document.find(name);
  return found == document.end() ? SpecJson(nullptr) : *found;
}

bool is_of_type(const SpecJson& part, std::string_view type) {
  return part.is_object() && option(part, "type", "") == type;
}

/// Whether a part is of this type, or is a Sequence that has one.
bool has_part(const SpecJson& part, std::string_view type, const char* members) {
  if (is_of_type(part, type)) return true;
  if (!is_of_type(part, "Sequence") || !part.contains(members)) return false;
  return std::ranges::any_of(part[members],
                             [&](const auto& inner) { return has_part(inner, type, members); });
}

/// Whether the file is transformers 5's, where a tokenizer.json counts as it is unless its class makes
/// tokenizers by itself.
bool is_of_transformers_5(const TokenizerSettings& settings) { return settings.config.contains("backend"); }

/// Classes that put bos and eos around texts as tokenizer_config.json says.
bool adds_by_flags(const TokenizerSettings& settings) {
  const auto& type = settings.type;
  return !is_of_transformers_5(settings) &&
         (type == "LlamaTokenizer" || type == "CodeLlamaTokenizer" || type == "GemmaTokenizer");
}

bool is_clip(const TokenizerSettings& settings) { return settings.type == "CLIPTokenizer"; }

/// What classes of transformers change in a tokenizer.json that they load.
void adapt_to_class(SpecJson& document, const TokenizerSettings& settings) {
  if (!settings.has_config && settings.type.empty()) return;
  const bool is_general =
      settings.type.empty() || settings.type == "PreTrainedTokenizer" || settings.type == "TokenizersBackend";
  const auto cut = document.find("pre_tokenizer");
  const bool has_bytes = cut != document.end() && has_part(*cut, "ByteLevel", "pretokenizers");
  if (cut != document.end() && is_of_type(*cut, "ByteLevel") && cut->contains("add_prefix_space") &&
      !(is_general && is_of_transformers_5(settings)))
    (*cut)["add_prefix_space"] = settings.flag("add_prefix_space", false);
  // A class that puts a blank in the place of each end of a word, when it decodes.
  if (const auto decoder = document.find("decoder");
      is_clip(settings) && decoder != document.end() && is_of_type(*decoder, "ByteLevel")) {
    const auto suffix = option(document.at("model"), "end_of_word_suffix", "");
    const SpecJson blanks = {{"type", "Replace"}, {"pattern", {{"String", suffix}}}, {"content", " "}};
    *decoder = {{"type", "Sequence"}, {"decoders", SpecJson::array({*decoder, blanks})}};
  }
  static constexpr auto marks_words = std::to_array<std::string_view>(
      {"LlamaTokenizer", "CodeLlamaTokenizer", "T5Tokenizer", "MT5Tokenizer"});
  if (std::ranges::find(marks_words, settings.type) != marks_words.end() && !has_bytes &&
      !settings.flag("add_prefix_space", true))
    throw DataError(
        "tokenizer_config.json: add_prefix_space: false is not supported beside this tokenizer.json: write a "
        "tokenizer.json that does so");
  static constexpr auto bert_like = std::to_array<std::string_view>(
      {"BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "ConvBertTokenizer", "FunnelTokenizer",
       "LayoutLMTokenizer", "LxmertTokenizer", "MobileBertTokenizer", "RetriBertTokenizer",
       "SqueezeBertTokenizer"});
  const auto normalizer = document.find("normalizer");
  if (std::ranges::find(bert_like, settings.type) == bert_like.end() || normalizer == document.end() ||
      !is_of_type(*normalizer, "BertNormalizer"))
    return;
  (*normalizer)["lowercase"] = settings.flag("do_lower_case", true);
  (*normalizer)["handle_chinese_chars"] = settings.flag("tokenize_chinese_chars", true);
  const auto strips = settings.config.find("strip_accents");
  (*normalizer)["strip_accents"] = strips == settings.config.end() ? SpecJson(nullptr) : *strips;
}

/// transformers 5 does so for no BPE, whose blanks are those of the text.
bool removes_blanks(const SpecJson& model, const TokenizerSettings& settings) {
  const bool is_bpe = is_of_type(model, "BPE");
  return settings.flag("clean_up_tokenization_spaces", false) &&
         (!is_bpe ||
          settings.flag("clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output", false));
}

class JsonCodec final : public TextCodec {
 public:
  JsonCodec(const SpecJson& document, const TokenizerSettings& settings)
      : normalizer_(make_normalizer(part_of(document, "normalizer"))),
        pre_tokenizer_(make_pre_tokenizer(part_of(document, "pre_tokenizer"))),
        model_(make_subword_model(document.at("model"))),
        decoder_(make_token_decoder(part_of(document, "decoder"))),
        cleans_up_(removes_blanks(part_of(document, "model"), settings)),
        strips_(is_clip(settings)) {
    add_tokens(document, settings);
    frame_ = frame_of(document, settings);
    trims_ = trims_of_places(part_of(document, "post_processor"));
    for (const auto* const ids : {&frame_.before, &frame_.between, &frame_.after}) {
      if (std::ranges::any_of(*ids, [&](int64_t id) { return id >= id_end(); }))
        throw DataError("tokenizer.json: post_processor: an id is out of range");
    }
    const auto decoder = part_of(document, "decoder");
    has_byte_characters_ = has_part(decoder, "ByteLevel", "decoders");
    has_byte_tokens_ = has_part(decoder, "ByteFallback", "decoders");
    depends_on_neighbours_ =
        has_part(decoder, "BPEDecoder", "decoders") || has_part(decoder, "CTC", "decoders");
    joins_blanks_ = has_byte_characters_ || has_part(decoder, "Metaspace", "decoders") ||
                    has_part(decoder, "Replace", "decoders");
    keeps_text_ = has_byte_characters_ && !normalizer_ && pre_tokenizer_ && pre_tokenizer_->keeps_text &&
                  has_part(part_of(document, "pre_tokenizer"), "ByteLevel", "pretokenizers") &&
                  model_->keeps_text() && !cleans_up_;
    can_be_cut_ = (!normalizer_ || normalizer_->keeps_to_words) && pre_tokenizer_ &&
                  pre_tokenizer_->at_blanks == AtBlanks::cuts && !added_.reach_over_blanks();
  }

  /// A long text in parts, so that what is between it and its ids takes little memory.
  std::vector<int64_t> encode(std::string_view text, TextPlace place,
                              std::span<const int64_t> also) const override {
    constexpr size_t part_size = size_t{1} << 20;
    std::vector<int64_t> ids;
    WordCaches::Access words(caches_);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = part_end(text, begin, part_size);
      append_part(text.substr(begin, end - begin), begin == 0 ? place : TextPlace::alone, also, words, ids);
      begin = end;
    }
    return ids;
  }

  size_t part_end(std::string_view text, size_t begin, size_t size) const override {
    if (!can_be_cut_ || text.size() - begin <= size) return text.size();
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
    for (size_t at = begin + size; at + 1 < text.size(); ++at) {
      if (text[at] == ' ' && is_letter(text[at - 1]) && is_letter(text[at + 1])) return at;
    }
    return text.size();
  }

  std::vector<PlacedToken> encode_with_places(std::string_view text, TextPlace place,
                                              std::span<const int64_t> also) const override {
    std::vector<PlacedToken> placed;
    std::vector<std::string> texts;  // of the tokens, as tokenizers has them
    std::vector<SubwordToken> tokens;
    for (auto& segment : added_.split(text, normalizer_, Alignment::kept, also)) {
      if (segment.id >= 0) {
        const auto origin =
            segment.text.size() == 0 ? TextRange{} : segment.text.origin({0, segment.text.size()});
        placed.push_back({segment.id, origin.begin, origin.end});
        texts.push_back(segment.text.text());
        continue;
      }
      const CutText pieces = pieces_of(std::move(segment), place);
      for (size_t i = 0; i < pieces.size(); ++i) {
        tokens.clear();
        model_->append_tokens(pieces.piece(i), tokens);
        for (const auto& token : tokens) {
          const TextRange origin = origin_of(pieces, i, token);
          placed.push_back({token.id, origin.begin, origin.end});
          texts.emplace_back(model_->vocabulary().token(token.id));
        }
      }
    }
    to_code_points(text, placed);
    for (const bool adds_blank : trims_) trim_places(texts, adds_blank, placed);
    return placed;
  }

  std::string decode(std::span<const int64_t> ids) const override {
    std::vector<std::string> tokens;
    for (const int64_t id : ids) {
      const auto text = token(id);
      if (text.data() && !added_.is_special(text)) tokens.emplace_back(text);
    }
    std::string text;
    if (decoder_) {
      if (!tokens.empty()) decoder_(tokens);
      for (const auto& part : tokens) text += part;
    } else {
      text = fmt::format("{}", fmt::join(tokens, " "));
    }
    if (strips_) return std::string(stripped(text, true, true));
    return cleans_up_ ? without_needless_blanks(std::move(text)) : text;
  }

  std::optional<TokenText> token_text(int64_t id) const override {
    const auto text = token(id);
    if (!text.data() || added_.is_special(text) || depends_on_neighbours_) return TokenText();
    if (has_byte_characters_) {
      std::string bytes;
      append_as_bytes(text, bytes);
      return TokenText{bytes, bytes};
    }
    const auto byte = has_byte_tokens_ ? byte_of_token(text) : std::nullopt;
    return byte ? std::optional(TokenText{*byte, *byte}) : std::nullopt;
  }

  std::string label(int64_t id) const override {
    const auto text = token(id);
    if (!text.data()) return fmt::format("<{}>", id);
    if (added_.token(id) || !has_byte_characters_) return std::string(text);
    std::string bytes;
    append_as_bytes(text, bytes);
    if (find_invalid_utf8(bytes)) {
      std::string codes;
      for (const char byte : bytes) codes += fmt::format("<0x{:02X}>", static_cast<unsigned char>(byte));
      return codes;
    }
    return bytes;
  }

  int64_t find(std::string_view wanted) const override {
    const int64_t id = added_.find(wanted);
    return id >= 0 ? id : model_->vocabulary().find(wanted);
  }

  int64_t id_end() const override { return std::max(added_.id_end(), model_->vocabulary().id_end()); }
  TextFrame frame() const override { return frame_; }
  bool joins_blanks() const override { return joins_blanks_; }
  bool keeps_text() const override { return keeps_text_; }
  bool cleans_up() const override { return cleans_up_; }

 private:
  void append_part(std::string_view text, TextPlace place, std::span<const int64_t> also,
                   WordCaches::Access& words, std::vector<int64_t>& ids) const {
    for (auto& segment : added_.split(text, normalizer_, Alignment::dropped, also)) {
      if (segment.id >= 0) {
        ids.push_back(segment.id);
        continue;
      }
      const CutText pieces = pieces_of(std::move(segment), place);
      for (size_t i = 0; i < pieces.size(); ++i) words.append_ids(*model_, pieces.piece(i), ids);
    }
  }

  CutText pieces_of(TextSegment segment, TextPlace place) const {
    const auto context = !segment.is_first                  ? PieceContext::later
                         : place == TextPlace::continuation ? PieceContext::continuation
                                                            : PieceContext::first;
    CutText pieces(std::move(segment.text));
    if (pre_tokenizer_) pre_tokenizer_->cut(pieces, context);
    return pieces;
  }

  /// The bytes of the whole text that a token of a piece stands for.
  static TextRange origin_of(const CutText& pieces, size_t i, const SubwordToken& token) {
    const TextRange piece = pieces.range(i);
    const size_t begin = std::min(piece.begin + token.begin, piece.end),
                 end = std::min(piece.begin + token.end, piece.end);
    if (begin == end) return {token.begin, token.end};  // as in tokenizers
    return pieces.whole().origin({begin, end});
  }

  std::string_view token(int64_t id) const {
    const auto* const added = added_.token(id);
    return added ? std::string_view(added->content) : model_->vocabulary().token(id);
  }

  void add_token(const AddedToken& token) {
    const auto& vocabulary = model_->vocabulary();
    added_.add(token, vocabulary.find(token.content), vocabulary.size());
  }

  /// Those of tokenizer.json, then what tokenizer_config.json adds to them, as transformers does it.
  void add_tokens(const SpecJson& document, const TokenizerSettings& settings) {
    for (const auto& part : part_of(document, "added_tokens")) add_token(added_token(part));
    std::vector<AddedToken> more;
    for (const auto& [id, token] : settings.added) {
      if (!added_.contains(token)) more.push_back(token);
    }
    const auto is_known = [&](const AddedToken& token) {
      return added_.find(token.content) >= 0 ||
             std::ranges::any_of(more, [&](const auto& other) { return other.content == token.content; });
    };
    for (const auto& [role, token] : settings.roles) {
      if (!is_known(token)) more.push_back(token);
    }
    for (const auto& token : settings.further_tokens()) {
      if (!is_known(token)) more.push_back(token);
    }
    for (const auto& token : more) add_token(token);
    added_.index(normalizer_, settings.special_texts());
  }

  TextFrame frame_of(const SpecJson& document, const TokenizerSettings& settings) const {
    if (!adds_by_flags(settings)) return frame_of_template(part_of(document, "post_processor"));
    TextFrame frame{.before = {}, .between = {}, .after = {}, .second_segment = 1};
    const auto add = [&](TokenRole role, std::vector<int64_t>& to) {
      const int64_t id = find(settings.token(role));
      if (id < 0)
        throw DataError("tokenizer_config.json: add_bos_token or add_eos_token without such a token");
      to.push_back(id);
      frame.between.push_back(id);
    };
    if (settings.flag("add_eos_token", false)) add(TokenRole::eos, frame.after);
    if (settings.flag("add_bos_token", true)) add(TokenRole::bos, frame.before);
    return frame;
  }

  std::optional<Normalizer> normalizer_;
  std::optional<PreTokenizer> pre_tokenizer_;
  std::unique_ptr<SubwordModel> model_;
  TokenDecoder decoder_;
  AddedTokens added_;
  TextFrame frame_;
  std::vector<bool> trims_;  // see trims_of_places()
  bool cleans_up_, strips_, has_byte_characters_ = false, joins_blanks_ = false, keeps_text_ = false;
  bool can_be_cut_ = false;                                       // before a blank between letters
  bool has_byte_tokens_ = false, depends_on_neighbours_ = false;  // by the decoder
  mutable WordCaches caches_;
};

}  // namespace

std::unique_ptr<TextCodec> make_json_codec(SpecJson document, const TokenizerSettings& settings) {
  for (const char* const name : {"normalizer", "pre_tokenizer", "decoder", "post_processor"})
    check_part_count(part_of(document, name));
  adapt_to_class(document, settings);
  return std::make_unique<JsonCodec>(document, settings);
}

}  // namespace zoo

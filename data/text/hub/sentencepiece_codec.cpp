// Models of SentencePiece with the additions of transformers: T5 and Llama (spiece.model, tokenizer.model) as
// the classes T5Tokenizer and LlamaTokenizer read them, and Marian's pair of models with a common vocab.json.

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sentencepiece_processor.h>

#include "base/error.h"
#include "base/text.h"
#include "data/sentencepiece/model_check.h"
#include "data/text/hub/added_tokens.h"
#include "data/text/hub/text_codec.h"
#include "data/text/subwords/decoder.h"
#include "data/text/subwords/specification.h"
#include "data/text/subwords/vocabulary.h"
#include "data/text/unicode/characters.h"

namespace zoo {
namespace {

using PieceModel = sentencepiece::SentencePieceProcessor;
constexpr std::string_view word_mark = "\xE2\x96\x81";  // ▁

void check_status(const sentencepiece::util::Status& status) {
  if (!status.ok()) throw DataError(fmt::format("SentencePiece: {}", excerpt(status.ToString(), 150)));
}

std::unique_ptr<PieceModel> piece_model(const std::map<std::string, std::string>& files,
                                        const std::string& name) {
  auto model = std::make_unique<PieceModel>();
  try {
    check_status(model->LoadFromSerializedProto(checked_sentencepiece_model(files.at(name))));
  } catch (const DataError& e) {
    throw DataError(fmt::format("{}: {}", name, e.what()));
  }
  return model;
}

std::vector<std::string> pieces_of(const PieceModel& model, std::string_view text) {
  std::vector<std::string> pieces;
  check_status(model.Encode(text, &pieces));
  return pieces;
}

std::string text_of_pieces(const PieceModel& model, const std::vector<std::string>& pieces) {
  std::string text;
  check_status(model.Decode(pieces, &text));
  return text;
}

/// What str.strip() of Python removes.
bool is_python_space(char32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

std::string stripped(std::string_view text, bool left, bool right) {
  size_t begin = 0, end = text.size();
  for (size_t next = begin; left && begin < end; begin = next) {
    if (!is_python_space(next_code_point(text, next))) break;
  }
  for (size_t before = end; right && begin < end; end = before) {
    if (!is_python_space(previous_code_point(text, before))) break;
  }
  return std::string(text.substr(begin, end - begin));
}

/// What all of them share: added tokens as transformers' own (slow) tokenizers find them, and their decoding.
class PieceCodec : public TextCodec {
 public:
  std::vector<int64_t> encode(std::string_view text, TextPlace place) const final {
    std::vector<int64_t> ids;
    for (const auto& part : split(text)) {
      if (part.id >= 0) {
        ids.push_back(part.id);
      } else if (!part.text.empty()) {
        append_ids(part.text, place == TextPlace::continuation && part.is_first, ids);
      }
    }
    return ids;
  }

  std::vector<PlacedToken> encode_with_places(std::string_view, TextPlace) const final {
    throw DataError("a SentencePiece model does not say where its tokens stand in a text");
  }

  std::string decode(std::span<const int64_t> ids) const final {
    std::vector<std::string> parts, pieces;
    const auto flush = [&] {
      if (!pieces.empty()) parts.push_back(text_of(pieces));
      pieces.clear();
    };
    for (const int64_t id : ids) {
      const auto found = added_.find(id);
      if (found != added_.end() && found->second.special) continue;
      if (found == added_.end()) {
        if (auto text = piece(id)) pieces.push_back(std::move(*text));
        continue;
      }
      const bool has_before = !pieces.empty();
      flush();
      if (has_before && parts.back().empty()) parts.pop_back();
      parts.push_back(found->second.content);
    }
    flush();
    auto text = fmt::format("{}", fmt::join(parts, " "));
    return cleans_up_ ? without_needless_blanks(std::move(text)) : text;
  }

  std::string label(int64_t id) const final {
    const auto found = added_.find(id);
    if (found != added_.end()) return found->second.content;
    return piece(id).value_or(fmt::format("<{}>", id));
  }

  int64_t find(std::string_view token) const final {
    const auto added =
        std::ranges::find_if(added_, [&](const auto& entry) { return entry.second.content == token; });
    return added != added_.end() ? added->first : find_piece(token);
  }

  int64_t id_end() const final {
    return std::max(pieces_end(), added_.empty() ? 0 : added_.rbegin()->first + 1);
  }
  TextFrame frame() const final { return frame_; }
  bool joins_blanks() const final { return true; }
  bool keeps_text() const final { return false; }
  bool cleans_up() const final { return cleans_up_; }

 protected:
  explicit PieceCodec(const TokenizerSettings& settings)
      : cleans_up_(settings.flag("clean_up_tokenization_spaces", false)) {}

  virtual void append_ids(const std::string& text, bool continues, std::vector<int64_t>& ids) const = 0;
  /// The text of tokens that are not added ones.
  virtual std::string text_of(std::vector<std::string> pieces) const = 0;
  virtual std::optional<std::string> piece(int64_t id) const = 0;
  virtual int64_t find_piece(std::string_view token) const = 0;
  virtual int64_t pieces_end() const = 0;

  void set_added(int64_t id, const AddedToken& token) {
    if (!token.content.empty()) added_[id] = token;
  }
  /// The tokens with a meaning are added tokens, too, at the end if they are no pieces.
  void finish_added(const TokenizerSettings& settings) {
    for (const auto& [id, token] : settings.added) set_added(id, token);
    const auto add = [&](AddedToken token) {
      token.special = true;
      const auto same = std::ranges::find_if(
          added_, [&](const auto& entry) { return entry.second.content == token.content; });
      if (same != added_.end()) {
        same->second.special = true;
        return;
      }
      const int64_t known = find_piece(token.content);
      set_added(known >= 0 ? known : id_end(), token);
    };
    for (const auto& [role, token] : settings.roles) add(token);
    for (const auto& token : settings.additional) add(token);
    for (const auto& [id, token] : added_) finder_.add(token.content, id);
  }
  int64_t role_id(const TokenizerSettings& settings, TokenRole role, const char* name) const {
    const int64_t id = find(settings.token(role));
    if (id < 0) throw DataError(fmt::format("the tokenizer has no {}", name));
    return id;
  }

  TextFrame frame_{.before = {}, .between = {}, .after = {}, .second_segment = 0};

 private:
  struct Part {
    int64_t id = -1;
    std::string text;
    bool is_first = false;
  };

  std::vector<Part> split(std::string_view text) const {
    std::vector<Part> parts;
    size_t done = 0;
    while (const auto match = finder_.find(text, done)) {
      if (match->begin > done)
        parts.push_back(
            {.id = -1, .text = std::string(text.substr(done, match->begin - done)), .is_first = done == 0});
      parts.push_back({.id = match->id,
                       .text = std::string(text.substr(match->begin, match->end - match->begin)),
                       .is_first = false});
      done = match->end;
    }
    if (done < text.size())
      parts.push_back({.id = -1, .text = std::string(text.substr(done)), .is_first = done == 0});
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].id < 0) continue;
      const auto& token = added_.at(parts[i].id);
      Part* const left = i > 0 ? &parts[i - 1] : nullptr;
      Part* const right = i + 1 < parts.size() ? &parts[i + 1] : nullptr;
      if (token.rstrip && right && right->id < 0) right->text = stripped(right->text, true, false);
      if (token.lstrip && left && left->id < 0) left->text = stripped(left->text, false, true);
      if (!token.single_word) continue;
      if (left && !left->text.empty() && !left->text.ends_with(' ')) {
        left->text += parts[i].text;
        left->id = -1;
        parts[i] = {};
      } else if (right && !right->text.empty() && !right->text.starts_with(' ')) {
        right->text.insert(0, parts[i].text);
        right->id = -1;
        parts[i] = {};
      }
    }
    return parts;
  }

  std::map<int64_t, AddedToken> added_;
  TokenFinder finder_;
  bool cleans_up_;
};

enum class PieceRules { t5, llama };

/// T5Tokenizer and LlamaTokenizer in their "legacy" behaviour, which is the default: each text between added
/// tokens begins with a blank.
class OneModelCodec final : public PieceCodec {
 public:
  OneModelCodec(std::unique_ptr<PieceModel> model, const TokenizerSettings& settings, PieceRules rules)
      : PieceCodec(settings),
        model_(std::move(model)),
        rules_(rules),
        adds_blank_(settings.flag("add_prefix_space", true)) {
    const bool is_t5 = rules == PieceRules::t5;
    if (!settings.flag("legacy", true)) refuse_part("the option legacy of", "false");
    if (is_t5) add_extra_ids(settings);
    finish_added(settings);
    if (is_t5) {
      const int64_t eos = role_id(settings, TokenRole::eos, "eos_token");
      frame_.after = frame_.between = {eos};
      return;
    }
    frame_.second_segment = 1;
    if (settings.flag("add_eos_token", false)) {
      frame_.after = {role_id(settings, TokenRole::eos, "eos_token")};
      frame_.between = frame_.after;
    }
    if (settings.flag("add_bos_token", true)) {
      frame_.before = {role_id(settings, TokenRole::bos, "bos_token")};
      frame_.between.push_back(frame_.before.front());
    }
  }

 private:
  void append_ids(const std::string& text, bool continues, std::vector<int64_t>& ids) const override {
    if (!continues) {
      std::vector<int> added;
      check_status(model_->Encode(text, &added));
      ids.insert(ids.end(), added.begin(), added.end());
      return;
    }
    // SentencePiece begins every text with a blank. After a character that no piece has, it cuts `text` as in
    // the middle of a longer one.
    static constexpr std::string_view stand_in = "\xF4\x8F\xBF\xBD";
    const auto whole = std::string(stand_in) + text;
    const auto encoded = model_->EncodeAsImmutableProto(whole);
    for (const auto& piece : encoded.pieces()) {
      if (piece.begin() >= stand_in.size() || piece.end() > stand_in.size()) ids.push_back(piece.id());
    }
  }

  std::string text_of(std::vector<std::string> pieces) const override {
    if (adds_blank_ && pieces.front().starts_with(word_mark)) pieces.front().erase(0, word_mark.size());
    const std::string text = text_of_pieces(*model_, pieces);
    return rules_ == PieceRules::t5 ? stripped(text, true, true) : text;
  }

  std::optional<std::string> piece(int64_t id) const override {
    if (id < 0 || id >= pieces_end()) return std::nullopt;
    return model_->IdToPiece(static_cast<int>(id));
  }

  int64_t find_piece(std::string_view token) const override {
    const int id = model_->PieceToId(token);
    return id >= 0 && id < pieces_end() && model_->IdToPiece(id) == token ? id : -1;
  }

  int64_t pieces_end() const override { return model_->GetPieceSize(); }

  /// <extra_id_0> has the last id.
  void add_extra_ids(const TokenizerSettings& settings) {
    const auto n = option(settings.config, "extra_ids", int64_t{100});
    if (n < 0 || n > 10'000) throw DataError("tokenizer_config.json: extra_ids is out of range");
    for (int64_t i = 0; i < n; ++i) {
      set_added(pieces_end() + n - 1 - i, {.content = fmt::format("<extra_id_{}>", i),
                                           .lstrip = true,
                                           .rstrip = true,
                                           .normalized = false,
                                           .special = true});
    }
  }

  std::unique_ptr<PieceModel> model_;
  PieceRules rules_;
  bool adds_blank_;
};

/// MarianTokenizer: pieces of two models, with the ids of vocab.json. encode() cuts texts of the source
/// language, decode() joins pieces of the target language.
class MarianCodec final : public PieceCodec {
 public:
  MarianCodec(const std::map<std::string, std::string>& files, const TokenizerSettings& settings)
      : PieceCodec(settings),
        source_(piece_model(files, "source.spm")),
        target_(piece_model(files, files.contains("target.spm") ? "target.spm" : "source.spm")),
        vocabulary_(json_file(files, "vocab.json")) {
    if (settings.flag("separate_vocabs", false)) refuse_part("the option", "separate_vocabs");
    unk_ = vocabulary_.find(settings.token(TokenRole::unk));
    if (unk_ < 0) throw DataError("vocab.json: it has no unk_token");
    finish_added(settings);
    frame_.after = {role_id(settings, TokenRole::eos, "eos_token")};
  }

 private:
  void append_ids(const std::string& given, bool, std::vector<int64_t>& ids) const override {
    std::string_view text = given;
    const auto add = [&](std::string_view piece) {
      const int64_t id = find(piece);
      ids.push_back(id >= 0 ? id : unk_);
    };
    if (const size_t end = text.find("<<"); text.starts_with(">>") && end != text.npos) {
      add(text.substr(0, end + 2));  // the code of a language
      text.remove_prefix(end + 2);
    }
    for (const auto& piece : pieces_of(*source_, text)) add(piece);
  }

  std::string text_of(std::vector<std::string> pieces) const override {
    std::string text = text_of_pieces(*target_, pieces);
    for (size_t at = text.find(word_mark); at != text.npos; at = text.find(word_mark, at + 1))
      text.replace(at, word_mark.size(), " ");
    return stripped(text, true, true);
  }

  std::optional<std::string> piece(int64_t id) const override {
    const auto token = vocabulary_.token(id);
    return token.data() ? std::optional(std::string(token)) : std::nullopt;
  }
  int64_t find_piece(std::string_view token) const override { return vocabulary_.find(token); }
  int64_t pieces_end() const override { return vocabulary_.id_end(); }

  std::unique_ptr<PieceModel> source_, target_;
  SubwordVocabulary vocabulary_;
  int64_t unk_ = -1;
};

}  // namespace

std::unique_ptr<TextCodec> make_sentencepiece_codec(const std::map<std::string, std::string>& files,
                                                    const TokenizerSettings& settings) {
  if (files.contains("source.spm")) return std::make_unique<MarianCodec>(files, settings);
  const bool has_t5_file = files.contains("spiece.model");
  const auto& type = settings.type;
  const bool is_t5 = type == "T5Tokenizer" || type == "MT5Tokenizer" || (type.empty() && has_t5_file);
  const bool is_llama = type == "LlamaTokenizer" || type == "CodeLlamaTokenizer";
  if (!is_t5 && !is_llama)
    throw DataError(fmt::format("a SentencePiece model of the class {} is not supported", excerpt(type, 40)));
  const std::string name = has_t5_file ? "spiece.model" : "tokenizer.model";
  return std::make_unique<OneModelCodec>(piece_model(files, name), settings,
                                         is_t5 ? PieceRules::t5 : PieceRules::llama);
}

}  // namespace zoo

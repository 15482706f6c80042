// Models of SentencePiece with the additions of transformers: T5, Pegasus, Llama and SigLIP (spiece.model,
// tokenizer.model) as the classes T5Tokenizer, PegasusTokenizer, LlamaTokenizer and SiglipTokenizer read
// them, and Marian's pair of models with a common vocab.json.

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sentencepiece_processor.h>

#include "base/error.h"
#include "base/text.h"
#include "tokenizers/hub/added_tokens.h"
#include "tokenizers/hub/python_blanks.h"
#include "tokenizers/hub/text_codec.h"
#include "tokenizers/sentencepiece/model_check.h"
#include "tokenizers/subwords/decoder.h"
#include "tokenizers/subwords/specification.h"
#include "tokenizers/subwords/vocabulary.h"
#include "tokenizers/unicode/characters.h"
#include "tokenizers/unicode/lowercase.h"

namespace zoo {
namespace {

using PieceModel = sentencepiece::SentencePieceProcessor;
constexpr std::string_view word_mark = "\xE2\x96\x81";  // ▁

void check_status(const sentencepiece::util::Status& status) {
  if (!status.ok()) throw DataError(fmt::format("SentencePiece: {}", excerpt(status.ToString(), 150)));
}

/// Whether a model puts a blank before texts: as its file says, or not.
enum class DummyPrefix { as_stored, none };

std::unique_ptr<PieceModel> piece_model(const std::map<std::string, std::string>& files,
                                        const std::string& name,
                                        DummyPrefix prefix = DummyPrefix::as_stored) {
  // normalizer_spec { add_dummy_prefix: false }: a message that comes twice is merged.
  constexpr std::string_view no_prefix("\x1A\x02\x18\x00", 4);
  auto model = std::make_unique<PieceModel>();
  try {
    auto content = checked_sentencepiece_model(files.at(name));
    if (prefix == DummyPrefix::none) content += no_prefix;
    check_status(model->LoadFromSerializedProto(content));
  } catch (const DataError& e) {
    throw DataError(fmt::format("{}: {}", name, e.what()));
  }
  return model;
}

/// A piece, and the bytes of the text that it stands for: begin … end - 1.
struct PlacedPiece {
  std::string text;
  int64_t id;
  size_t begin, end;
};

std::vector<PlacedPiece> pieces_of(const PieceModel& model, std::string_view text) {
  std::vector<PlacedPiece> pieces;
  const auto encoded = model.EncodeAsImmutableProto(text);
  if (encoded.text() != text) throw DataError("SentencePiece could not encode the text with this model");
  for (const auto& piece : encoded.pieces())
    pieces.push_back({.text = piece.piece(), .id = piece.id(), .begin = piece.begin(), .end = piece.end()});
  return pieces;
}

std::string text_of_pieces(const PieceModel& model, const std::vector<std::string>& pieces) {
  std::string text;
  check_status(model.Decode(pieces, &text));
  return text;
}

/// A part of a text, put together from pieces of it.
class JoinedText {
 public:
  JoinedText() = default;
  /// `begin`: of `text` in the whole text, in bytes.
  JoinedText(std::string_view text, size_t begin) : text_(text), joints_{{.at = 0, .begin = begin}} {}

  const std::string& text() const { return text_; }
  bool empty() const { return text_.empty(); }
  void strip(bool left, bool right) {
    const auto rest = stripped(text_, left, right);
    const auto skipped = static_cast<size_t>(rest.data() - text_.data());
    for (auto& [at, begin] : joints_) {
      // Pieces that are gone leave a joint at the place where the rest begins.
      begin += skipped - std::min(at, skipped);
      at -= std::min(at, skipped);
    }
    text_ = std::string(rest);
  }
  void append(const JoinedText& next) {
    for (const auto& [at, begin] : next.joints_) joints_.push_back({.at = text_.size() + at, .begin = begin});
    text_ += next.text_;
  }
  /// Where a byte stands in the whole text.
  size_t place(size_t at) const {
    const auto after = std::ranges::upper_bound(joints_, at, {}, &Joint::at);
    const auto& joint = *std::prev(after);
    return joint.begin + (at - joint.at);
  }
  /// The same for the end of a piece: the byte before it counts.
  size_t end_place(size_t at) const { return at == 0 ? place(0) : place(at - 1) + 1; }

 private:
  struct Joint {
    size_t at, begin;  // in this text, in the whole one
  };
  std::string text_;
  std::vector<Joint> joints_;
};

/// Where a part of a text between added tokens begins: at the beginning of the text, there in the middle of a
/// longer one, or behind an added token.
enum class PartStart { text, continuation, token };

/// What all of them share: added tokens as transformers' own (slow) tokenizers find them, and their decoding.
class PieceCodec : public TextCodec {
 public:
  std::vector<int64_t> encode(std::string_view text, TextPlace place,
                              std::span<const int64_t> also) const final {
    std::vector<int64_t> ids;
    for (const auto& part : split(text, also)) {
      if (part.id >= 0) {
        ids.push_back(part.id);
      } else if (!part.text.empty()) {
        append_ids(part.text.text(), start_of(part, place), ids);
      }
    }
    return ids;
  }

  /// The places are those that SentencePiece gives: a token stands for the blanks before it, too.
  std::vector<PlacedToken> encode_with_places(std::string_view text, TextPlace place,
                                              std::span<const int64_t> also) const final {
    std::vector<PlacedToken> tokens, in_part;
    for (const auto& part : split(text, also)) {
      if (part.id >= 0) {
        tokens.push_back({part.id, part.text.place(0), part.text.end_place(part.text.text().size())});
      } else if (!part.text.empty()) {
        in_part.clear();
        append_placed(part.text.text(), start_of(part, place), in_part);
        for (const auto& [id, begin, end] : in_part) {
          const size_t from = part.text.place(begin);
          tokens.push_back({id, from, begin == end ? from : part.text.end_place(end)});
        }
      }
    }
    in_code_points(text, tokens);
    return tokens;
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

  /// A blank stands between an added token and its neighbours.
  std::optional<TokenText> token_text(int64_t id) const final {
    auto text = piece(id);
    if (added_.contains(id) || !text) return TokenText();
    if (const auto byte = byte_of_token(*text)) return TokenText{*byte, *byte};
    for (size_t at = text->find(word_mark); at != text->npos; at = text->find(word_mark, at + 1))
      text->replace(at, word_mark.size(), " ");
    return TokenText{.first = decode({&id, 1}), .later = *std::move(text)};
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

  virtual void append_ids(const std::string& text, PartStart start, std::vector<int64_t>& ids) const = 0;
  /// The same with places in bytes of `text`.
  virtual void append_placed(const std::string& text, PartStart start,
                             std::vector<PlacedToken>& tokens) const = 0;
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
    for (const auto& token : settings.further_tokens()) add(token);
    special_texts_ = settings.special_texts();
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
    JoinedText text;
    bool is_first = false;
  };

  static PartStart start_of(const Part& part, TextPlace place) {
    if (!part.is_first) return PartStart::token;
    return place == TextPlace::continuation ? PartStart::continuation : PartStart::text;
  }

  std::vector<Part> split(std::string_view text, std::span<const int64_t> also) const {
    std::vector<Part> parts;
    const auto add = [&](int64_t id, size_t begin, size_t end) {
      parts.push_back({.id = id,
                       .text = JoinedText(text.substr(begin, end - begin), begin),
                       .is_first = id < 0 && begin == 0});
    };
    size_t done = 0, from = 0;
    while (const auto match = finder_.find(text, from)) {
      from = match->end;
      const bool is_found = special_texts_ == SpecialTexts::tokens || !added_.at(match->id).special ||
                            std::ranges::find(also, match->id) != also.end();
      if (!is_found) continue;
      if (match->begin > done) add(-1, done, match->begin);
      add(match->id, match->begin, match->end);
      done = match->end;
    }
    if (done < text.size()) add(-1, done, text.size());
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].id < 0) continue;
      const auto& token = added_.at(parts[i].id);
      Part* const left = i > 0 ? &parts[i - 1] : nullptr;
      Part* const right = i + 1 < parts.size() ? &parts[i + 1] : nullptr;
      if (token.rstrip && right && right->id < 0) right->text.strip(true, false);
      if (token.lstrip && left && left->id < 0) left->text.strip(false, true);
      if (!token.single_word) continue;
      if (left && !left->text.empty() && !left->text.text().ends_with(' ')) {
        left->text.append(parts[i].text);
        left->id = -1;
        parts[i] = {};
      } else if (right && !right->text.empty() && !right->text.text().starts_with(' ')) {
        auto joined = std::move(parts[i].text);
        joined.append(right->text);
        right->text = std::move(joined);
        right->id = -1;
        parts[i] = {};
      }
    }
    return parts;
  }

  std::map<int64_t, AddedToken> added_;
  TokenFinder finder_;
  SpecialTexts special_texts_ = SpecialTexts::tokens;
  bool cleans_up_;
};

enum class PieceRules { t5, llama, siglip, pegasus };

/// T5Tokenizer, PegasusTokenizer and LlamaTokenizer, the first and the last in their "legacy" behaviour,
/// which is the default: each text between added tokens begins with a blank.
class OneModelCodec : public PieceCodec {
 public:
  OneModelCodec(std::unique_ptr<PieceModel> model, const TokenizerSettings& settings, PieceRules rules)
      : PieceCodec(settings), model_(std::move(model)) {
    const bool is_t5 = rules == PieceRules::t5, ends_with_eos = rules != PieceRules::llama;
    // Versions of transformers differ in what they make of such a file.
    for (const char* const key : {"legacy", "add_prefix_space"}) {
      if (settings.flag(key, true)) continue;
      throw DataError(
          fmt::format("tokenizer_config.json: {}: false is not supported beside {}: save the tokenizer with "
                      "transformers, which writes a tokenizer.json",
                      key, ends_with_eos ? "spiece.model" : "tokenizer.model"));
    }
    if (is_t5) add_extra_ids(settings);
    if (rules == PieceRules::pegasus) add_first_ids(settings);
    finish_added(settings);
    if (rules == PieceRules::pegasus) {
      frame_.after = {role_id(settings, TokenRole::eos, "eos_token")};
      return;
    }
    if (ends_with_eos) {
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

 protected:
  const PieceModel& model() const { return *model_; }

  void append_ids(const std::string& text, PartStart start, std::vector<int64_t>& ids) const override {
    if (start != PartStart::continuation) {
      std::vector<int> added;
      check_status(model_->Encode(text, &added));
      for (const int id : added) ids.push_back(id + offset_);
      return;
    }
    std::vector<PlacedToken> tokens;
    append_placed(text, start, tokens);
    for (const auto& token : tokens) ids.push_back(token.id);
  }

  void append_placed(const std::string& text, PartStart start,
                     std::vector<PlacedToken>& tokens) const override {
    const bool continues = start == PartStart::continuation;
    // SentencePiece begins every text with a blank. After a character that no piece has, it cuts `text` as in
    // the middle of a longer one.
    static constexpr std::string_view unknown = "\xF4\x8F\xBF\xBD";
    const auto stand_in = continues ? unknown : std::string_view();
    for (const auto& piece : pieces_of(*model_, std::string(stand_in) + text)) {
      if (continues && piece.begin < stand_in.size() && piece.end <= stand_in.size()) continue;
      tokens.push_back({piece.id + offset_, piece.begin - std::min(piece.begin, stand_in.size()),
                        piece.end - std::min(piece.end, stand_in.size())});
    }
  }

  std::string text_of(std::vector<std::string> pieces) const override {
    return text_of_pieces(*model_, pieces);
  }

  std::optional<std::string> piece(int64_t id) const override {
    if (id < offset_ || id >= pieces_end()) return std::nullopt;
    return model_->IdToPiece(static_cast<int>(id - offset_));
  }

  int64_t find_piece(std::string_view token) const override {
    const int id = model_->PieceToId(token);
    return id >= 0 && id < model_->GetPieceSize() && model_->IdToPiece(id) == token ? id + offset_ : -1;
  }

  int64_t pieces_end() const override { return model_->GetPieceSize() + offset_; }

  /// Pegasus has the tokens of its first training before the pieces: padding, end, two masks, <unk_2> and so
  /// on.
  void add_first_ids(const TokenizerSettings& settings) {
    offset_ = option(settings.config, "offset", int64_t{103});
    const auto mask = settings.config.find("mask_token_sent");
    if (offset_ < 4 || offset_ > 10'000 || (mask != settings.config.end() && mask->is_null()))
      throw DataError("tokenizer_config.json: offset or mask_token_sent: these values are not supported");
    std::vector<std::string> names = {settings.token(TokenRole::pad), settings.token(TokenRole::eos),
                                      option(settings.config, "mask_token_sent", "<mask_1>"),
                                      settings.token(TokenRole::mask)};
    for (int64_t i = 2; i < offset_; ++i) names.push_back(fmt::format("<unk_{}>", i));
    for (int64_t id = 0; id < std::ssize(names); ++id)
      set_added(id, {.content = names[static_cast<size_t>(id)], .normalized = false, .special = true});
  }

 private:
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
  int64_t offset_ = 0;  // the id of piece 0
};

/// string.punctuation of Python.
constexpr std::string_view kPunctuation = R"(!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~)";

/// A text without capitals, ASCII's punctuation and repeated blanks, of which each byte knows its place.
class CanonicalText {
 public:
  CanonicalText(std::string_view text, bool folds_case) {
    for (size_t at = 0, next = 0; at < text.size(); at = next) {
      const auto code_point = next_code_point(text, next);
      const auto whole = text.substr(at, next - at);
      if (kPunctuation.find(whole) != kPunctuation.npos) continue;
      if (is_python_space(code_point)) {
        if (!text_.ends_with(' ') && !text_.empty()) append(" ", at);
      } else {
        append(folds_case ? lowered(code_point, whole) : std::string(whole), at);
      }
    }
    if (text_.ends_with(' ')) text_.pop_back();
    places_.resize(text_.size());
    places_.push_back(text.size());
  }

  const std::string& text() const { return text_; }
  /// Where the character of a byte begins in the whole text; at the end: where that ends.
  size_t place(size_t at) const { return places_.at(at); }

 private:
  /// As lower() of Python, in which İ becomes i and a dot.
  static std::string lowered(char32_t code_point, std::string_view whole) {
    constexpr char32_t dotted_capital = 0x130;
    return code_point == dotted_capital ? "i\xCC\x87" : lowercase(whole);
  }

  void append(std::string_view bytes, size_t place) {
    text_ += bytes;
    places_.insert(places_.end(), bytes.size(), place);
  }

  std::string text_;
  std::vector<size_t> places_;
};

/// SiglipTokenizer: texts in a canonical form, which begin with a blank, but not behind added tokens.
class SiglipCodec final : public OneModelCodec {
 public:
  SiglipCodec(std::unique_ptr<PieceModel> model, const TokenizerSettings& settings)
      : OneModelCodec(std::move(model), settings, PieceRules::siglip),
        folds_case_(settings.flag("do_lower_case", true)),
        stand_in_(settings.token(TokenRole::unk)),
        n_stand_in_(pieces_of(this->model(), stand_in_).size()) {}

 private:
  void append_ids(const std::string& text, PartStart start, std::vector<int64_t>& ids) const override {
    std::vector<PlacedToken> tokens;
    append_placed(text, start, tokens);
    for (const auto& token : tokens) ids.push_back(token.id);
  }

  void append_placed(const std::string& given, PartStart start,
                     std::vector<PlacedToken>& tokens) const override {
    std::string text = given;
    // Each of them has three bytes here, and a blank one: what is between them keeps its place by the
    // difference.
    for (size_t at = text.find(word_mark); at != text.npos; at = text.find(word_mark, at))
      text.replace(at, word_mark.size(), " ");
    const CanonicalText canonical(start == PartStart::text ? std::string(word_mark) + text : text,
                                  folds_case_);
    const size_t before = start == PartStart::text ? word_mark.size() : 0;
    const auto place = [&](size_t at) {
      const size_t whole = canonical.place(at < stand_in_.size() ? 0 : at - stand_in_.size());
      return std::min(whole - std::min(whole, before), given.size());
    };
    // Alone, a text would lose the blank before it.
    const auto pieces = pieces_of(model(), stand_in_ + canonical.text());
    for (size_t i = std::min(n_stand_in_, pieces.size()); i < pieces.size(); ++i)
      tokens.push_back({pieces[i].id, place(pieces[i].begin), place(pieces[i].end)});
  }

  std::string text_of(std::vector<std::string> pieces) const override {
    return std::string(stripped(OneModelCodec::text_of(std::move(pieces)), true, true));
  }

  bool folds_case_;
  std::string stand_in_;
  size_t n_stand_in_;
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
  void append_ids(const std::string& text, PartStart start, std::vector<int64_t>& ids) const override {
    std::vector<PlacedToken> tokens;
    append_placed(text, start, tokens);
    for (const auto& token : tokens) ids.push_back(token.id);
  }

  void append_placed(const std::string& given, PartStart, std::vector<PlacedToken>& tokens) const override {
    std::string_view text = given;
    const auto add = [&](std::string_view piece, size_t begin, size_t end) {
      const int64_t id = find(piece);
      tokens.push_back({id >= 0 ? id : unk_, begin, end});
    };
    size_t done = 0;
    if (const size_t end = text.find("<<"); text.starts_with(">>") && end != text.npos) {
      done = end + 2;  // the code of a language
      add(text.substr(0, done), 0, done);
      text.remove_prefix(done);
    }
    for (const auto& piece : pieces_of(*source_, text)) add(piece.text, done + piece.begin, done + piece.end);
  }

  std::string text_of(std::vector<std::string> pieces) const override {
    std::string text = text_of_pieces(*target_, pieces);
    for (size_t at = text.find(word_mark); at != text.npos; at = text.find(word_mark, at + 1))
      text.replace(at, word_mark.size(), " ");
    return std::string(stripped(text, true, true));
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
  const bool is_siglip = type == "SiglipTokenizer", is_pegasus = type == "PegasusTokenizer";
  if (!is_t5 && !is_llama && !is_siglip && !is_pegasus)
    throw DataError(fmt::format("a SentencePiece model of the class {} is not supported", excerpt(type, 40)));
  const std::string name = has_t5_file ? "spiece.model" : "tokenizer.model";
  if (is_siglip) return std::make_unique<SiglipCodec>(piece_model(files, name, DummyPrefix::none), settings);
  return std::make_unique<OneModelCodec>(piece_model(files, name), settings,
                                         is_t5        ? PieceRules::t5
                                         : is_pegasus ? PieceRules::pegasus
                                                      : PieceRules::llama);
}

}  // namespace zoo

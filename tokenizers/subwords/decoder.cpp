#include "tokenizers/subwords/decoder.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "tokenizers/subwords/byte_level.h"
#include "tokenizers/subwords/replacement.h"
#include "tokenizers/subwords/specification.h"
#include "tokenizers/unicode/characters.h"

namespace zoo {
namespace {

using SpecJson = nlohmann::json;
using Tokens = std::vector<std::string>;

constexpr std::pair<std::string_view, std::string_view> needless_blanks[] = {
    {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
    {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};

/// The same with one rule more, which tokenizers has.
constexpr std::pair<std::string_view, std::string_view> clean_up_of_words[] = {
    {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
    {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};

/// Replaces `from`, which is not empty, everywhere.
void replace_everywhere(std::string& text, std::string_view from, std::string_view to) {
  size_t at = text.find(from);
  if (at == text.npos) return;
  std::string result;
  size_t copied = 0;
  for (; at != text.npos; at = text.find(from, copied)) {
    result.append(text, copied, at - copied).append(to);
    copied = at + from.size();
  }
  text = result.append(text, copied);
}

std::string joined(const Tokens& tokens) {
  std::string text;
  for (const auto& token : tokens) text += token;
  return text;
}

size_t total_size(const Tokens& tokens) {
  size_t size = 0;
  for (const auto& token : tokens) size += token.size() + 1;
  return size;
}

class DecodeByteLevel final : public TokenDecoder {
 public:
  void apply(Tokens& tokens) const override {
    std::string bytes;
    for (const auto& token : tokens) append_as_bytes(token, bytes);
    tokens = {with_replacement_characters(bytes)};
  }
};

class DecodeWordPiece final : public TokenDecoder {
 public:
  explicit DecodeWordPiece(const SpecJson& part)
      : prefix_(option(part, "prefix", "##")), cleans_up_(option(part, "cleanup", true)) {}

  void apply(Tokens& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      auto& token = tokens[i];
      if (i > 0) token = token.starts_with(prefix_) ? token.substr(prefix_.size()) : " " + token;
      if (!cleans_up_) continue;
      for (const auto& [from, to] : clean_up_of_words) replace_everywhere(token, from, to);
    }
  }

 private:
  std::string prefix_;
  bool cleans_up_;
};

class DecodeMetaspace final : public TokenDecoder {
 public:
  explicit DecodeMetaspace(const SpecJson& part)
      : mark_(option(part, "replacement", "▁")),
        prepends_(option(part, "prepend_scheme",
                         option(part, "add_prefix_space", true) ? "always" : "never") != "never") {
    if (mark_.empty()) throw DataError("tokenizer.json: Metaspace's replacement is empty");
  }

  void apply(Tokens& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i)
      replace_everywhere(tokens[i], mark_, i == 0 && prepends_ ? "" : " ");
  }

 private:
  std::string mark_;
  bool prepends_;
};

class DecodeReplace final : public TokenDecoder {
 public:
  explicit DecodeReplace(const SpecJson& part)
      : pattern_(part.at("pattern")), content_(short_option(part, "content", "")) {}
  void apply(Tokens& tokens) const override {
    for (auto& token : tokens) token = pattern_.replaced(token, content_);
  }

 private:
  TextPattern pattern_;
  std::string content_;
};

/// Tokens such as <0xE4> are bytes.
class DecodeByteFallback final : public TokenDecoder {
 public:
  void apply(Tokens& tokens) const override {
    Tokens result;
    std::string bytes;
    const auto flush = [&] {
      if (bytes.empty()) return;
      if (find_invalid_utf8(bytes)) {
        result.insert(result.end(), bytes.size(), "\xEF\xBF\xBD");
      } else {
        result.push_back(bytes);
      }
      bytes.clear();
    };
    for (auto& token : tokens) {
      if (const auto byte = byte_of_token(token)) {
        bytes += *byte;
        continue;
      }
      flush();
      result.push_back(std::move(token));
    }
    flush();
    tokens = std::move(result);
  }
};

class DecodeFuse final : public TokenDecoder {
 public:
  void apply(Tokens& tokens) const override { tokens = {joined(tokens)}; }
};

class DecodeStrip final : public TokenDecoder {
 public:
  explicit DecodeStrip(const SpecJson& part)
      : content_(part.at("content").get<std::string>()),
        start_(part.at("start").get<size_t>()),
        stop_(part.at("stop").get<size_t>()) {
    if (content_.empty()) throw DataError("tokenizer.json: the content of Strip is empty");
  }

  void apply(Tokens& tokens) const override {
    for (auto& token : tokens) {
      std::string_view rest = token;
      for (size_t i = 0; i < start_ && rest.starts_with(content_); ++i) rest.remove_prefix(content_.size());
      for (size_t i = 0; i < stop_ && rest.ends_with(content_); ++i) rest.remove_suffix(content_.size());
      token = std::string(rest);
    }
  }

 private:
  std::string content_;
  size_t start_, stop_;
};

/// Tokens with a suffix end a word.
class DecodeBpe final : public TokenDecoder {
 public:
  explicit DecodeBpe(const SpecJson& part) : suffix_(option(part, "suffix", "</w>")) {
    if (suffix_.empty()) throw DataError("tokenizer.json: the suffix of BPEDecoder is empty");
  }
  void apply(Tokens& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i)
      replace_everywhere(tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
  }

 private:
  std::string suffix_;
};

/// Connectionist temporal classification: equal tokens that follow each other are one.
class DecodeCtc final : public TokenDecoder {
 public:
  explicit DecodeCtc(const SpecJson& part)
      : pad_(option(part, "pad_token", "<pad>")),
        delimiter_(option(part, "word_delimiter_token", "|")),
        cleans_up_(option(part, "cleanup", true)) {
    if (pad_.empty() || delimiter_.empty()) throw DataError("tokenizer.json: a token of CTC is empty");
  }
  void apply(Tokens& tokens) const override {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (auto& token : tokens) {
      replace_everywhere(token, pad_, "");
      if (!cleans_up_) continue;
      for (const auto& [from, to] : clean_up_of_words) replace_everywhere(token, from, to);
      replace_everywhere(token, delimiter_, " ");
    }
    std::erase_if(tokens, [](const std::string& token) { return token.empty(); });
  }

 private:
  std::string pad_, delimiter_;
  bool cleans_up_;
};

class DecoderSequence final : public TokenDecoder {
 public:
  explicit DecoderSequence(const SpecJson& part) {
    for (const auto& each : part.at("decoders")) {
      if (auto made = make_token_decoder(each)) parts_.push_back(std::move(made));
    }
  }
  void apply(Tokens& tokens) const override {
    const size_t before = total_size(tokens);
    for (const auto& part : parts_) {
      part->apply(tokens);
      check_growth(before, total_size(tokens));
    }
  }

 private:
  std::vector<std::unique_ptr<TokenDecoder>> parts_;
};

}  // namespace

std::unique_ptr<TokenDecoder> make_token_decoder(const SpecJson& part) {
  if (part.is_null()) return nullptr;
  const std::string type = type_of(part);
  if (type == "ByteLevel") return std::make_unique<DecodeByteLevel>();
  if (type == "WordPiece") return std::make_unique<DecodeWordPiece>(part);
  if (type == "Metaspace") return std::make_unique<DecodeMetaspace>(part);
  if (type == "Replace") return std::make_unique<DecodeReplace>(part);
  if (type == "ByteFallback") return std::make_unique<DecodeByteFallback>();
  if (type == "Fuse") return std::make_unique<DecodeFuse>();
  if (type == "Strip") return std::make_unique<DecodeStrip>(part);
  if (type == "BPEDecoder") return std::make_unique<DecodeBpe>(part);
  if (type == "CTC") return std::make_unique<DecodeCtc>(part);
  if (type == "Sequence") return std::make_unique<DecoderSequence>(part);
  refuse_part("the decoder", type);
}

std::optional<std::string> byte_of_token(std::string_view token) {
  if (token.size() != 6 || !token.starts_with("<0x") || !token.ends_with('>')) return std::nullopt;
  unsigned value = 0;
  const char* const digits = token.data() + 3;
  if (std::from_chars(digits, digits + 2, value, 16).ptr != digits + 2) return std::nullopt;
  return std::string(1, static_cast<char>(value));
}

std::string without_needless_blanks(std::string text) {
  for (const auto& [from, to] : needless_blanks) replace_everywhere(text, from, to);
  return text;
}

size_t bytes_of_possible_blanks(std::string_view text) {
  size_t longest = 0;
  for (const auto& [from, to] : needless_blanks) {
    for (size_t n = 1; n < from.size(); ++n) {
      if (text.ends_with(from.substr(0, n))) longest = std::max(longest, n);
    }
  }
  return longest;
}

}  // namespace zoo

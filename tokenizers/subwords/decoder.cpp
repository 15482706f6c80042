#include "tokenizers/subwords/decoder.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

/// The rules of without_needless_blanks(), and one more, which tokenizers has.
void clean_up(std::string& token) {
  token = without_needless_blanks(std::move(token));
  replace_everywhere(token, " do not", " don't");
}

size_t total_size(const Tokens& tokens) {
  size_t size = 0;
  for (const auto& token : tokens) size += token.size() + 1;
  return size;
}

std::string not_empty(std::string text, const char* what) {
  if (text.empty()) throw DataError(fmt::format("tokenizer.json: {} is empty", what));
  return text;
}

TokenDecoder decode_byte_level(const SpecJson&) {
  return [](Tokens& tokens) {
    std::string bytes;
    for (const auto& token : tokens) append_as_bytes(token, bytes);
    tokens = {with_replacement_characters(bytes)};
  };
}

TokenDecoder decode_word_piece(const SpecJson& part) {
  return [prefix = option(part, "prefix", "##"), cleans_up = option(part, "cleanup", true)](Tokens& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      auto& token = tokens[i];
      if (i > 0) token = token.starts_with(prefix) ? token.substr(prefix.size()) : " " + token;
      if (cleans_up) clean_up(token);
    }
  };
}

TokenDecoder decode_metaspace(const SpecJson& part) {
  const auto scheme =
      option(part, "prepend_scheme", option(part, "add_prefix_space", true) ? "always" : "never");
  return [mark = not_empty(option(part, "replacement", "▁"), "Metaspace's replacement"),
          prepends = scheme != "never"](Tokens& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i)
      replace_everywhere(tokens[i], mark, i == 0 && prepends ? "" : " ");
  };
}

TokenDecoder decode_replace(const SpecJson& part) {
  return [pattern = std::make_shared<const TextPattern>(part.at("pattern")),
          content = short_option(part, "content", "")](Tokens& tokens) {
    for (auto& token : tokens) token = pattern->replaced(token, content);
  };
}

/// Tokens such as <0xE4> are bytes.
TokenDecoder decode_byte_fallback(const SpecJson&) {
  return [](Tokens& tokens) {
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
  };
}

TokenDecoder decode_fuse(const SpecJson&) {
  return [](Tokens& tokens) { tokens = {fmt::format("{}", fmt::join(tokens, ""))}; };
}

TokenDecoder decode_strip(const SpecJson& part) {
  return [content = not_empty(part.at("content").get<std::string>(), "the content of Strip"),
          start = part.at("start").get<size_t>(), stop = part.at("stop").get<size_t>()](Tokens& tokens) {
    for (auto& token : tokens) {
      std::string_view rest = token;
      for (size_t i = 0; i < start && rest.starts_with(content); ++i) rest.remove_prefix(content.size());
      for (size_t i = 0; i < stop && rest.ends_with(content); ++i) rest.remove_suffix(content.size());
      token = std::string(rest);
    }
  };
}

/// Tokens with a suffix end a word.
TokenDecoder decode_word_ends(const SpecJson& part) {
  return [suffix = not_empty(option(part, "suffix", "</w>"), "the suffix of BPEDecoder")](Tokens& tokens) {
    for (size_t i = 0; i < tokens.size(); ++i)
      replace_everywhere(tokens[i], suffix, i + 1 == tokens.size() ? "" : " ");
  };
}

/// Connectionist temporal classification: equal tokens that follow each other are one.
TokenDecoder decode_ctc(const SpecJson& part) {
  return [pad = not_empty(option(part, "pad_token", "<pad>"), "a token of CTC"),
          delimiter = not_empty(option(part, "word_delimiter_token", "|"), "a token of CTC"),
          cleans_up = option(part, "cleanup", true)](Tokens& tokens) {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (auto& token : tokens) {
      replace_everywhere(token, pad, "");
      if (!cleans_up) continue;
      clean_up(token);
      replace_everywhere(token, delimiter, " ");
    }
    std::erase_if(tokens, [](const std::string& token) { return token.empty(); });
  };
}

TokenDecoder decode_sequence(const SpecJson& part) {
  std::vector<TokenDecoder> parts;
  for (const auto& each : part.at("decoders")) {
    if (auto made = make_token_decoder(each)) parts.push_back(std::move(made));
  }
  return [parts = std::move(parts)](Tokens& tokens) {
    const size_t before = total_size(tokens);
    for (const auto& each : parts) {
      each(tokens);
      check_growth(before, total_size(tokens));
    }
  };
}

}  // namespace

TokenDecoder make_token_decoder(const SpecJson& part) {
  if (part.is_null()) return {};
  static const std::map<std::string_view, TokenDecoder (*)(const SpecJson&)> makers = {
      {"ByteLevel", decode_byte_level},
      {"WordPiece", decode_word_piece},
      {"Metaspace", decode_metaspace},
      {"Replace", decode_replace},
      {"ByteFallback", decode_byte_fallback},
      {"Fuse", decode_fuse},
      {"Strip", decode_strip},
      {"BPEDecoder", decode_word_ends},
      {"CTC", decode_ctc},
      {"Sequence", decode_sequence}};
  const std::string type = type_of(part);
  const auto found = makers.find(type);
  if (found == makers.end()) refuse_part("the decoder", type);
  return found->second(part);
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

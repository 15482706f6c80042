#include "tokenizers/hub/tiktoken.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "tokenizers/subwords/byte_level.h"
#include "tokenizers/subwords/known_patterns.h"
#include "tokenizers/subwords/specification.h"
#include "tokenizers/subwords/vocabulary.h"

namespace zoo {
namespace {

using SpecJson = nlohmann::json;

struct RankedToken {
  std::string bytes;
  int64_t rank = 0;
};

std::optional<RankedToken> token_in(std::string_view line) {
  const size_t blank = line.find(' ');
  if (blank == 0 || blank == line.npos) return std::nullopt;
  const auto digits = line.substr(0, blank);
  // Whisper's vocabulary ends with a token of no bytes, written so.
  auto bytes = digits == "=" ? std::optional<std::string>("") : from_base64(digits);
  RankedToken token;
  const char* const end = line.data() + line.size();
  const auto number = std::from_chars(line.data() + blank + 1, end, token.rank);
  if (!bytes || number.ec != std::errc() || number.ptr != end) return std::nullopt;
  token.bytes = std::move(*bytes);
  return token;
}

/// The first line of `text`, which loses it.
std::string_view take_line(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  auto line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

SpecJson pre_tokenizer_for(const std::string& name) {
  const auto begins = [&](std::string_view start) { return name.starts_with(start); };
  if (begins("gpt2") || begins("multilingual") || begins("r50k") || begins("p50k"))
    return {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  const auto pattern = begins("qwen")    ? patterns::qwen2
                       : begins("o200k") ? patterns::o200k
                                         : patterns::llama3;
  const SpecJson split = {
      {"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"}, {"invert", false}};
  const SpecJson bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  return {{"type", "Sequence"}, {"pretokenizers", SpecJson::array({split, bytes})}};
}

}  // namespace

bool is_tiktoken_file(std::string_view content) { return token_in(take_line(content)).has_value(); }

SpecJson tokenizer_json_of_tiktoken(const std::string& name, std::string_view content) {
  constexpr size_t longest_token = 1024;
  std::vector<RankedToken> tokens;
  for (int64_t line = 1; !content.empty(); ++line) {
    const auto text = take_line(content);
    if (text.empty()) continue;
    auto token = token_in(text);
    if (!token || token->bytes.size() > longest_token || token->rank < 0 || token->rank >= kMostTokenIds)
      throw DataError(fmt::format("{}: line {} is no token in Base64 with its rank", name, line));
    tokens.push_back(std::move(*token));
  }
  std::unordered_map<std::string_view, int64_t> ranks;
  for (const auto& token : tokens) {
    if (!ranks.emplace(token.bytes, token.rank).second)
      throw DataError(fmt::format("{}: the token of rank {} is there twice", name, token.rank));
  }
  std::ranges::stable_sort(tokens, {}, &RankedToken::rank);
  SpecJson vocab = SpecJson::object(), merges = SpecJson::array();
  for (const auto& [bytes, rank] : tokens) {
    vocab[as_characters(bytes)] = rank;
    std::vector<std::tuple<int64_t, int64_t, size_t>> cuts;
    for (size_t i = 1; i < bytes.size(); ++i) {
      const auto left = ranks.find(std::string_view(bytes).substr(0, i)),
                 right = ranks.find(std::string_view(bytes).substr(i));
      if (left != ranks.end() && right != ranks.end()) cuts.emplace_back(left->second, right->second, i);
    }
    std::ranges::sort(cuts);
    for (const auto& [left, right, at] : cuts)
      merges.push_back({as_characters(std::string_view(bytes).substr(0, at)),
                        as_characters(std::string_view(bytes).substr(at))});
  }
  SpecJson document = {{"pre_tokenizer", pre_tokenizer_for(name)},
                       {"decoder", {{"type", "ByteLevel"}}},
                       {"post_processor", {{"type", "ByteLevel"}, {"trim_offsets", false}}}};
  document["model"] = {{"type", "BPE"}, {"ignore_merges", true}};
  document["model"]["vocab"] = std::move(vocab);
  document["model"]["merges"] = std::move(merges);
  return document;
}

}  // namespace zoo

#include "tokenizers/tokenizer_file.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "io/files.h"
#include "io/json_document.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;
using Member = int64_t SpecialTokens::*;

constexpr std::array<std::pair<std::string_view, Member>, 7> special_members = {{
    {"pad", &SpecialTokens::pad},
    {"unk", &SpecialTokens::unk},
    {"bos", &SpecialTokens::bos},
    {"eos", &SpecialTokens::eos},
    {"mask", &SpecialTokens::mask},
    {"cls", &SpecialTokens::cls},
    {"sep", &SpecialTokens::sep},
}};

constexpr std::string_view file_name = "tokenizer.json";

int64_t token_id(const nlohmann::json& id, std::string_view name) {
  if (!id.is_number_integer()) throw DataError(fmt::format("the id of {} is not a whole number", name));
  const auto value = id.get<int64_t>();  // an unsigned number beyond int64 becomes negative
  if (value < 0) throw DataError(fmt::format("the id of {} is out of range", name));
  return value;
}

void read_hub_members(const nlohmann::json& json, TokenizerFile& file) {
  const auto& special = json.at("special");
  for (const auto& id : special.at("other_ends"))
    file.special.other_ends.push_back(token_id(id, "other_ends"));
  if (const auto& start = special.at("start"); !start.is_null())
    file.special.start = token_id(start, "start");
  file.files = json.at("files").get<std::map<std::string, std::string>>();
  if (file.files.empty()) file.vocab_size = token_id(json.at("vocab_size"), "vocab_size");
}

TokenizerFile from_json(const nlohmann::json& json) {
  TokenizerFile file;
  const auto type = json.at("type").get<std::string>();
  const auto names = config_names(TokenizerKind{});
  size_t index = 0;
  while (index < names.size() && names[index] != type) ++index;
  if (index == names.size()) throw DataError(fmt::format("the type \"{}\" is unknown", excerpt(type)));
  file.type = static_cast<TokenizerKind>(index);
  file.lowercase = json.at("lowercase").get<bool>();
  for (const auto& [name, member] : special_members) {
    const auto& id = json.at("special").at(std::string(name));
    if (id.is_null()) continue;
    file.special.*member = token_id(id, name);
  }
  if (file.type == TokenizerKind::hub) read_hub_members(json, file);
  if (file.type == TokenizerKind::character)
    file.symbols = json.at("symbols").get<std::vector<std::string>>();
  if (file.type != TokenizerKind::sentencepiece) return file;
  file.model_sha256 = json.at("model_sha256").get<std::string>();
  if (json.contains("normalization")) {
    const auto name = json.at("normalization").get<std::string>();
    if (name != name_of(TextNormalization::none))
      throw DataError(fmt::format("the normalization \"{}\" is unknown", excerpt(name)));
    file.normalization = TextNormalization::none;
    file.marks_lines = json.value("marks_lines", false);
  }
  return file;
}

}  // namespace

std::string to_json(const TokenizerFile& file) {
  Json special = Json::object();
  for (const auto& [name, member] : special_members) {
    const int64_t id = file.special.*member;
    special[std::string(name)] = id < 0 ? Json(nullptr) : Json(id);
  }
  const bool is_hub = file.type == TokenizerKind::hub;
  if (is_hub) {
    special["other_ends"] = file.special.other_ends;
    special["start"] = file.special.start < 0 ? Json(nullptr) : Json(file.special.start);
  }
  Json json = {
      {"type", std::string(name_of(file.type))}, {"lowercase", file.lowercase}, {"special", special}};
  if (file.type == TokenizerKind::character) json["symbols"] = file.symbols;
  if (file.type == TokenizerKind::sentencepiece) json["model_sha256"] = file.model_sha256;
  if (is_hub) json["files"] = file.files;
  if (is_hub && file.files.empty()) json["vocab_size"] = file.vocab_size;
  if (file.normalization == TextNormalization::none) {
    json["normalization"] = std::string(name_of(TextNormalization::none));
    json["marks_lines"] = file.marks_lines;
  }
  return json_text(json, 1) + "\n";
}

TokenizerFile read_tokenizer_file(const std::filesystem::path& run_dir) {
  const auto path = run_dir / file_name;
  std::string text;
  try {
    text = read_json_text(path);
  } catch (const Error& e) {
    throw CheckpointError(fmt::format("{}: no tokenizer: {}", run_dir.string(), e.what()));
  }
  try {
    return from_json(parse_json(text));
  } catch (const nlohmann::json::exception& e) {
    throw CheckpointError(fmt::format("{}: damaged: {}", path.string(), excerpt(e.what(), 200)));
  } catch (const DataError& e) {
    throw CheckpointError(fmt::format("{}: damaged: {}", path.string(), e.what()));
  }
}

void write_tokenizer_file(const std::filesystem::path& run_dir, const TokenizerFile& file) {
  write_file_atomically(run_dir / file_name, to_json(file));
}

SpecialTokens special_tokens(SpecialTokenSet set) {
  if (set == SpecialTokenSet::none) return {};
  return {.pad = 0, .unk = 1, .bos = 2, .eos = 3, .mask = 4, .cls = 5, .sep = 6};
}

std::vector<std::pair<std::string_view, int64_t>> named_ids(const SpecialTokens& special) {
  std::vector<std::pair<std::string_view, int64_t>> named;
  for (const auto& [name, member] : special_members) {
    if (const int64_t id = special.*member; id >= 0) named.emplace_back(name, id);
  }
  return named;
}

int64_t count(const SpecialTokens& special) { return std::ssize(named_ids(special)); }

std::string_view special_label(const SpecialTokens& special, int64_t id) {
  constexpr std::array<std::string_view, 7> labels = {"<pad>",  "<unk>", "<bos>", "<eos>",
                                                      "<mask>", "<cls>", "<sep>"};
  for (size_t i = 0; i < special_members.size(); ++i) {
    if (id >= 0 && special.*special_members[i].second == id) return labels[i];
  }
  return {};
}

std::vector<ExportedToken> exported_tokens(const SpecialTokens& special,
                                           const std::function<std::string(int64_t id)>& name_of) {
  std::vector<ExportedToken> tokens;
  for (const auto& [name, id] : named_ids(special))
    tokens.push_back({.id = id, .content = name_of(id), .role = fmt::format("{}_token", name)});
  std::ranges::stable_sort(tokens, {}, &ExportedToken::id);
  return tokens;
}

void check_id(int64_t id, int64_t vocab_size) {
  if (id < 0 || id >= vocab_size) {
    throw DataError(fmt::format("{} is not a token id: this vocabulary has 0 to {}", id, vocab_size - 1));
  }
}

void check_utf8(std::string_view text) {
  if (const auto offset = find_invalid_utf8(text)) {
    throw DataError(
        fmt::format("text is not UTF-8 at byte {}: {}", *offset, excerpt(text.substr(*offset), 16)));
  }
}

}  // namespace zoo

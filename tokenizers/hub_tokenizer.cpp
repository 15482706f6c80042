#include "tokenizers/hub_tokenizer.h"

#include <algorithm>
#include <array>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "io/file_kind.h"
#include "io/files.h"
#include "io/json_document.h"
#include "io/sha256.h"
#include "tokenizers/hub/exported_vocabulary.h"
#include "tokenizers/hub/text_codec.h"
#include "tokenizers/hub/tokenizer_class.h"
#include "tokenizers/id_tokenizer.h"
#include "tokenizers/subwords/decoder.h"
#include "tokenizers/subwords/subword_trainer.h"
#include "tokenizers/tokenizer_file.h"

namespace zoo {
namespace {

constexpr auto vocabulary_names = std::to_array<std::string_view>(
    {"tokenizer.json", "vocab.txt", "vocab.json", "spiece.model", "tokenizer.model", "tiktoken.model",
     "tokenizer.tiktoken", "gpt2.tiktoken", "multilingual.tiktoken", "qwen.tiktoken", "r50k_base.tiktoken",
     "p50k_base.tiktoken", "cl100k_base.tiktoken", "o200k_base.tiktoken"});
constexpr auto other_names =
    std::to_array<std::string_view>({"merges.txt", "source.spm", "target.spm", "tokenizer_config.json",
                                     "special_tokens_map.json", "added_tokens.json", "chat_template.jinja"});
constexpr auto hub_names = [] {
  std::array<std::string_view, vocabulary_names.size() + other_names.size()> all;
  std::ranges::copy(other_names, std::ranges::copy(vocabulary_names, all.begin()).out);
  return all;
}();
constexpr int64_t largest_hub_file = int64_t{64} << 20;  // bytes
constexpr std::string_view hub_folder = "hub";           // of a run
/// StarCoder's tokens for filling in the middle.
constexpr auto infilling_names =
    std::to_array<std::string_view>({"<fim_prefix>", "<fim_suffix>", "<fim_middle>"});

/// A line break and a blank as people see them in a list of tokens.
std::string with_visible_blanks(std::string_view token) {
  std::string text;
  for (const char c : token) {
    if (c == '\n') {
      text += "↵";
    } else if (c == '\t') {
      text += "⇥";
    } else if (c == ' ') {
      text += "▁";
    } else {
      text += c;
    }
  }
  return text;
}

class HubTokenizer final : public Tokenizer {
 public:
  HubTokenizer(HubFiles files, const SpecialTokens& special) : files_(std::move(files)), special_(special) {
    const auto settings = read_settings(files_);
    write_down_class(files_);
    std::erase_if(files_, [](const auto& file) { return !is_hub_file(file.first); });
    framed_by_task_ = settings.flag("frame_by_task", false);
    is_of_older_run_ = framed_by_task_ && settings.special_texts() == SpecialTexts::tokens;
    codec_ = make_text_codec(files_, settings);
    frame_ = codec_->frame();
    if (!settings.gives_segments()) {
      frame_.second_segment = 0;
      if (frame_.pair == PairTemplate::other_segments) frame_.pair = PairTemplate::told;
    }
    frame_.cut_at = settings.cut_at();
    if (framed_by_task_) written_ = infilling_tokens();
    const auto check = [&](int64_t id) {
      if (id >= vocab_size()) {
        throw DataError(fmt::format("the special token {} is outside the vocabulary, which has {} tokens", id,
                                    vocab_size()));
      }
    };
    for (const int64_t id : {special_.pad, special_.unk, special_.bos, special_.eos, special_.mask,
                             special_.cls, special_.sep, special_.start})
      check(id);
    std::ranges::for_each(special_.other_ends, check);
  }

  TokenIds encode(std::string_view text) const override {
    check_utf8(text);
    return codec_->encode(text, TextPlace::alone, written_);
  }
  TokenIds encode_continuation(std::string_view text) const override {
    check_utf8(text);
    return codec_->encode(text, TextPlace::continuation, written_);
  }
  TokenIds encode_masked(std::string_view text) const override {
    if (special_.mask < 0 || is_of_older_run_) return Tokenizer::encode_masked(text);
    check_utf8(text);
    const auto own_mask = codec_->label(special_.mask);
    std::string written(text);
    for (size_t at = 0; (at = written.find(kWrittenMask, at)) != written.npos; at += own_mask.size())
      written.replace(at, kWrittenMask.size(), own_mask);
    auto found = written_;
    found.push_back(special_.mask);
    return codec_->encode(written, TextPlace::alone, found);
  }
  size_t part_end(std::string_view text, size_t begin, size_t size) const override {
    return codec_->part_end(text, begin, size);
  }
  std::vector<PlacedToken> encode_with_places(std::string_view text) const override {
    check_utf8(text);
    return codec_->encode_with_places(text, TextPlace::alone, written_);
  }
  std::vector<PlacedToken> encode_continuation_with_places(std::string_view text) const override {
    check_utf8(text);
    return codec_->encode_with_places(text, TextPlace::continuation, written_);
  }
  std::string decode(std::span<const int64_t> ids) const override {
    for (const int64_t id : ids) check_id(id, vocab_size());
    return codec_->decode(ids);
  }
  size_t unsettled_bytes(std::string_view text) const override {
    return codec_->cleans_up() ? bytes_of_possible_blanks(text) : 0;
  }
  TokenText token_text(int64_t id) const override {
    check_id(id, vocab_size());
    if (codec_->cleans_up()) {
      throw DataError(
          "this vocabulary removes blanks from its texts (clean_up_tokenization_spaces), so a text is not "
          "that of its tokens one after the other: set it to false in tokenizer_config.json");
    }
    auto text = codec_->token_text(id);
    return text ? *std::move(text) : Tokenizer::token_text(id);
  }
  std::string label(int64_t id) const override {
    check_id(id, vocab_size());
    return with_visible_blanks(codec_->label(id));
  }
  int64_t vocab_size() const override { return codec_->id_end(); }
  bool joins_blanks() const override { return codec_->joins_blanks(); }
  bool keeps_text() const override { return codec_->keeps_text(); }
  const SpecialTokens& special() const override { return special_; }
  std::optional<TextFrame> frame() const override {
    return framed_by_task_ ? std::nullopt : std::optional(frame_);
  }
  /// transformers forbids no token by itself; generation.suppress_tokens has those that a model forbids.
  TokenIds never_generated() const override {
    if (!framed_by_task_) return {};
    auto ids = Tokenizer::never_generated();
    ids.insert(ids.end(), written_.begin(), written_.end());
    return ids;
  }
  std::map<std::string, std::string> exported_files(const TextFrame& frame) const override {
    auto files = files_;
    if (!framed_by_task_ || !files.contains("tokenizer.json")) return files;
    // transformers does not know the task, so the file says what it puts around texts.
    auto& file = files.at("tokenizer.json");
    // An object in the order of its file takes time that grows with the square of the vocabulary.
    auto document = parse_json(file);
    const auto name_of = [&](int64_t id) { return codec_->label(id); };
    document["post_processor"] = nlohmann::json(post_processor_of(frame, name_of));
    const bool reads_masks = is_frame_of_encoder(frame, exported_tokens(special_, name_of));
    for (auto& token : document["added_tokens"]) {
      if (token["id"] == special_.mask && !reads_masks) token["lstrip"] = false;
    }
    if (const auto config = files.find("tokenizer_config.json"); config != files.end()) {
      auto settings = parse_json(config->second);
      settings["model_input_names"] = nlohmann::json(model_input_names_of(frame));
      // transformers finds all special tokens in texts or none. People write masks, and the marks of gaps.
      if (reads_masks || !written_.empty()) settings["split_special_tokens"] = false;
      config->second = json_text(settings, 1) + "\n";
    }
    file = json_text(document, 2) + "\n";
    return files;
  }

  void save(const std::filesystem::path& run_dir) const override {
    const auto folder = run_dir / hub_folder;
    make_subdirectory(folder);
    for (const auto& [name, content] : files_) write_file_atomically(folder / name, content);
    write_tokenizer_file(run_dir, {.type = TokenizerKind::hub,
                                   .lowercase = false,
                                   .special = special_,
                                   .symbols = {},
                                   .model_sha256 = {},
                                   .files = digests()});
  }

  std::string fingerprint() const override {
    std::string result = "hub";
    for (const auto& [name, digest] : digests()) result += fmt::format(" {} {}", name, digest);
    return result;
  }

 private:
  TokenIds infilling_tokens() const {
    TokenIds ids;
    for (const auto name : infilling_names) {
      if (const int64_t id = codec_->find(name); id >= 0) ids.push_back(id);
    }
    return ids;
  }

  std::map<std::string, std::string> digests() const {
    std::map<std::string, std::string> result;
    for (const auto& [name, content] : files_) result.emplace(name, sha256(content));
    return result;
  }

  HubFiles files_;
  SpecialTokens special_;
  std::unique_ptr<TextCodec> codec_;
  TextFrame frame_;
  bool framed_by_task_ = false;  // a vocabulary that was trained here
  TokenIds written_;             // its tokens that texts may have by their names: <fim_prefix> …
  /// Such a one that takes the texts of special tokens for tokens, and whose <mask> takes no blanks.
  bool is_of_older_run_ = false;
};

/// The files that RUN/tokenizer.json lists. Throws DataError.
HubFiles read_saved_files(const std::filesystem::path& folder,
                          const std::map<std::string, std::string>& digests) {
  HubFiles files;
  for (const auto& [name, digest] : digests) {
    if (!is_hub_file(name)) throw DataError(fmt::format("'{}' is no file of a tokenizer", excerpt(name, 40)));
    const auto path = folder / name;
    auto content = read_file(path, Follow::nothing, largest_hub_file);
    if (sha256(content) != digest)
      throw DataError(fmt::format("{}: damaged, or does not belong to tokenizer.json", path.string()));
    files.emplace(name, std::move(content));
  }
  return files;
}

/// Whether a tokenizer.json is of the form that save() writes, which begins with the type.
bool is_own_tokenizer_file(const std::filesystem::path& path) {
  if (!has_file(path)) return false;
  std::array<char, 64> start{};
  const size_t size = read_at(open_for_reading(path, Follow::links), path, 0, start);
  std::string text(start.data(), size);
  std::erase_if(text, [](char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; });
  return text.starts_with("{\"type\":");
}

}  // namespace

std::span<const std::string_view> hub_file_names() { return hub_names; }

bool is_hub_file(std::string_view name) { return std::ranges::find(hub_names, name) != hub_names.end(); }

bool has_vocabulary(const HubFiles& files) {
  return std::ranges::any_of(vocabulary_names, [&](auto name) { return files.contains(std::string(name)); });
}

bool has_hub_tokenizer(const std::filesystem::path& dir) {
  if (is_there(dir / "config.yaml") || is_own_tokenizer_file(dir / "tokenizer.json")) return false;
  return std::ranges::any_of(vocabulary_names, [&](auto name) { return has_file(dir / name); });
}

std::vector<std::string> chat_template_files(const std::filesystem::path& dir) {
  constexpr const char* folder = "additional_chat_templates";
  constexpr size_t most = 100;
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(dir / folder, none)) {
    if (entry.path().extension() != ".jinja") continue;
    names.push_back(fmt::format("{}/{}", folder, entry.path().filename().string()));
    if (names.size() > most)
      throw DataError(fmt::format("{}: more than {} templates", (dir / folder).string(), most));
  }
  std::ranges::sort(names);
  return names;
}

void add_chat_templates(HubFiles& files, const std::vector<std::string>& names,
                        const std::function<std::string(const std::string& name)>& read) {
  if (names.empty()) return;
  auto list = nlohmann::json::array();
  const auto add = [&](const std::string& name, const std::string& source) {
    if (find_invalid_utf8(source)) throw DataError(fmt::format("the chat template '{}' is not UTF-8", name));
    list.push_back({{"name", name}, {"template", source}});
  };
  // As in transformers, what tokenizer_config.json has does not count then.
  if (const auto usual = files.find("chat_template.jinja"); usual != files.end()) {
    add("default", usual->second);
    files.erase(usual);
  }
  for (const auto& name : names) add(std::filesystem::path(name).stem().string(), read(name));
  set_setting(files, "chat_template", list);
}

HubFiles read_hub_files(const std::filesystem::path& dir, Follow follow) {
  HubFiles files;
  const auto content_of = [&](std::string_view name) {
    auto content = read_file(dir / name, follow, largest_hub_file);
    const auto stray = content.empty() ? std::nullopt : stray_content(content);
    if (stray) throw DataError(fmt::format("{}: {}", (dir / name).string(), *stray));
    return content;
  };
  const auto read = [&](std::string_view name) {
    if (is_there(dir / name)) files.emplace(name, content_of(name));
  };
  std::ranges::for_each(hub_names, read);
  if (has_vocabulary(files)) read("config.json");
  add_chat_templates(files, chat_template_files(dir), content_of);
  return files;
}

SpecialTokens hub_special_tokens(const HubFiles& files) {
  const auto settings = read_settings(files);
  std::unique_ptr<TextCodec> codec;  // it takes long to make, and newer files list the ids
  const auto id = [&](TokenRole role) -> int64_t {
    const auto token = settings.token(role);
    if (token.empty()) return -1;
    const auto known = std::ranges::find_if(settings.added,
                                            [&](const auto& entry) { return entry.second.content == token; });
    if (known != settings.added.end()) return known->first;
    if (!codec) codec = make_text_codec(files, settings);
    return codec->find(token);
  };
  return {.pad = id(TokenRole::pad),
          .unk = id(TokenRole::unk),
          .bos = id(TokenRole::bos),
          .eos = id(TokenRole::eos),
          .mask = id(TokenRole::mask),
          .cls = id(TokenRole::cls),
          .sep = id(TokenRole::sep)};
}

std::unique_ptr<Tokenizer> make_hub_tokenizer(HubFiles files, const SpecialTokens& special) {
  return std::make_unique<HubTokenizer>(std::move(files), special);
}

std::unique_ptr<Tokenizer> train_hub_tokenizer(const TokenizerConfig& config, SpecialTokenSet special,
                                               const TextReader& corpus) {
  const bool is_word_piece = config.type == TokenizerKind::wordpiece;
  SubwordTraining training{.kind = is_word_piece ? SubwordKind::word_piece : SubwordKind::byte_bpe,
                           .vocab_size = config.vocab_size,
                           .lowercase = config.lowercase,
                           .special = {}};
  auto ids = special_tokens(special);
  if (special != SpecialTokenSet::none) {
    for (const char* const name : {"pad", "unk", "bos", "eos", "mask", "cls", "sep"})
      training.special.emplace_back(fmt::format("{}_token", name), fmt::format("<{}>", name));
  } else if (is_word_piece) {
    training.special.emplace_back("unk_token", "<unk>");
    ids.unk = 0;
  }
  if (special == SpecialTokenSet::infilling) {
    if (is_word_piece) throw DataError("only a vocabulary of the type bpe can have tokens for filling gaps");
    for (const auto name : infilling_names) training.special.emplace_back("", name);
  }
  return make_hub_tokenizer(train_subwords(training,
                                           [&](const std::function<void(std::string_view)>& sink) {
                                             corpus([&](std::string_view text) {
                                               check_utf8(text);
                                               sink(text);
                                             });
                                           }),
                            ids);
}

std::unique_ptr<Tokenizer> load_hub_tokenizer(const std::filesystem::path& run_dir,
                                              const TokenizerFile& file) {
  const auto folder = run_dir / hub_folder;
  if (!file.files.empty() && !has_subdirectory(folder))
    throw CheckpointError(fmt::format("{}: missing", folder.string()));
  try {
    if (file.files.empty()) return std::make_unique<IdTokenizer>(file.vocab_size, file.special);
    return make_hub_tokenizer(read_saved_files(folder, file.files), file.special);
  } catch (const DataError& e) {
    throw CheckpointError(fmt::format("{}: the tokenizer cannot be used: {}", run_dir.string(), e.what()));
  }
}

}  // namespace zoo

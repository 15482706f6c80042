#pragma once
// Tokenizers of the Hugging Face Hub: a directory with tokenizer.json, or with the older files vocab.txt,
// vocab.json and merges.txt, spiece.model and so on.
//
//   const auto files = read_hub_files(directory, Follow::links);
//   const auto tokenizer = make_hub_tokenizer(files, hub_special_tokens(files));
//
// Ids and decoded text are those of tokenizers and transformers.

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/open_file.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

struct TokenizerFile;

/// The files that describe a tokenizer, by name: tokenizer.json, tokenizer_config.json, vocab.txt …
using HubFiles = std::map<std::string, std::string>;

/// The names that files of a tokenizer can have.
std::span<const std::string_view> hub_file_names();
/// Whether a file of this name can be a part of a tokenizer.
bool is_hub_file(std::string_view name);
/// Whether one of these files holds the vocabulary of a tokenizer.
bool has_vocabulary(const HubFiles& files);
/// Whether `dir` has a file that holds the vocabulary of a tokenizer, and is not a run.
bool has_hub_tokenizer(const std::filesystem::path& dir);
/// The tokenizer's files in a directory, and the model's config.json, which can name their class. Throws
/// DataError for one that cannot be read, or is too large.
HubFiles read_hub_files(const std::filesystem::path& dir, Follow follow);

/// The chat templates in the folder additional_chat_templates of a directory, by their paths in `dir`.
std::vector<std::string> chat_template_files(const std::filesystem::path& dir);
/// Adds these templates, which `read` reads, to tokenizer_config.json, which can have several, and
/// chat_template.jinja with them. Throws DataError.
void add_chat_templates(HubFiles& files, const std::vector<std::string>& names,
                        const std::function<std::string(const std::string& name)>& read);

/// What tokenizer_config.json, special_tokens_map.json and tokenizer.json call pad, unk, bos, eos, mask, cls
/// and sep. Throws DataError as make_hub_tokenizer() does.
SpecialTokens hub_special_tokens(const HubFiles& files);

/// The tokenizer that `files` describe. Of files that do not describe tokenizers, only config.json counts: it
/// says the class that tokenizer_config.json does not name. `special` says what the tokens mean. encode()
/// takes the text of special tokens for these tokens, as transformers does; decode() leaves them out. Throws
/// DataError: no tokenizer, damaged, an id of `special` outside the vocabulary, or of a kind that is not
/// supported (the message names what is not).
std::unique_ptr<Tokenizer> make_hub_tokenizer(HubFiles files, const SpecialTokens& special);

/// Trains the tokenizer of type bpe or wordpiece that `config` describes (tokenizers/subwords/). It is one of
/// the Hub whose frames the task decides. Throws DataError as make_tokenizer() does.
std::unique_ptr<Tokenizer> train_hub_tokenizer(const TokenizerConfig& config, SpecialTokenSet special,
                                               const TextReader& corpus);

/// Loads what save() wrote to a run: RUN/tokenizer.json, which is `file`, and RUN/hub/, or what stands for
/// the tokenizer of a model without one (tokenizers/id_tokenizer.h). Throws CheckpointError.
std::unique_ptr<Tokenizer> load_hub_tokenizer(const std::filesystem::path& run_dir,
                                              const TokenizerFile& file);

}  // namespace zoo

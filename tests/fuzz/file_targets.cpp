// Single files: tensors, tokenizers, configurations.

#include <algorithm>
#include <filesystem>
#include <memory>

#include <torch/types.h>

#include "base/error.h"
#include "comparison/comparison_config.h"
#include "data/images/coco_file.h"
#include "data/images/formats/idx_file.h"
#include "data/images/image_file.h"
#include "data/text/sentencepiece_tokenizer.h"
#include "io/config/config_file.h"
#include "io/files.h"
#include "io/safetensors.h"
#include "models/families/model_cost.h"
#include "tests/fuzz/targets.h"
#include "training/tasks/experiment.h"
#include "training/tasks/task_type.h"

namespace zoo::fuzz {
namespace {

namespace fs = std::filesystem;

/// Encodes and decodes texts of many kinds.
void use(const Tokenizer& tokenizer) {
  for (const std::string_view text :
       {"", " ", "the cat sat", "  two  blanks ",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "Ünïcödé ﬁ ① ½ 日本語 \xF0\x9F\xA6\x8A", "a\nb\tc\r\n", "<unk><s></s><pad><mask>",
        "\x01\xE2\x80\x8B\xEF\xBB\xBF"}) {
    TokenIds ids;
    try {
      ids = tokenizer.encode(text);
      if (!text.empty()) tokenizer.encode_continuation(text);
    } catch (const DataError&) {
      continue;  // a character that the vocabulary does not have
    }
    StreamDecoder stream(tokenizer);
    for (const int64_t id : ids) stream.push(id);
    stream.finish();
    tokenizer.decode(ids);
  }
  for (int64_t id = 0; id < std::min<int64_t>(tokenizer.vocab_size(), 300); ++id) {
    tokenizer.label(id);
    tokenizer.decode(TokenIds{id});
  }
}

void read_safetensors(const fs::path& path) {
  const SafetensorsFile file(path);
  file.n_elements();
  for (const auto& name : file.names()) file.tensor(name).sum();
}

/// What is dumped can be read again, and its cost can be counted.
void read_experiment_text(const std::string& text, const std::string& name) {
  const auto experiment = parse_experiment(text, name);
  const auto dumped = dump_config(experiment);
  try {
    parse_experiment(dumped, name);
  } catch (const Error& error) {
    throw std::runtime_error(std::string("its own dump is refused: ") + error.what());
  }
  if (const auto& type = task_type(experiment); type.purpose) {
    if (const auto purpose = type.purpose(experiment, 300)) parameter_count(experiment.model, *purpose);
  }
}

Seeds yaml_files_below(const fs::path& folder) {
  Seeds texts;
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  for (const auto& path : paths) texts.push_back(read_file(path));
  return texts;
}

}  // namespace

std::vector<Target> file_targets(const testing::TempDir& work, const fs::path& sources) {
  const auto in_configs = [&](const char* folder) {
    return (sources / "configs" / folder / "fuzzed.yaml").string();
  };
  Seeds configs, comparisons = yaml_files_below(sources / "configs/compare");
  for (const char* folder : {"bert", "classification", "gpt", "models", "translation", "vision"})
    for (auto& text : yaml_files_below(sources / "configs" / folder)) configs.push_back(std::move(text));

  fs::copy(sources / "configs", work / "configs",
           fs::copy_options::recursive);  // for the bases of comparisons

  std::vector<Target> targets;
  targets.push_back(
      {"safetensors", "tensors: every tensor of the file", mutate_safetensors,
       [&work](const std::string& input) { read_safetensors(work.write("fuzzed.safetensors", input)); }});
  targets.push_back({"sentencepiece", "a model of SentencePiece, used on some texts", mutate_protobuf,
                     [](const std::string& input) { use(SentencePieceTokenizer(input, {})); }});
  targets.push_back({"tokenizer", "tokenizer.json of a run, used on some texts", mutate_text,
                     [&work](const std::string& input) {
                       work.write("tokenizer/tokenizer.json", input);
                       use(*load_tokenizer(work / "tokenizer"));
                     }});
  targets.push_back({"image", "a PNG or JPEG file", mutate_bytes, [](const std::string& input) {
                       constexpr DecodingLimits limits{.pixels = 1 << 18, .bytes = 1 << 24};
                       for (const int64_t n_channels : {1, 3})
                         decode_image(input, "fuzzed", n_channels, limits);
                     }});
  targets.push_back(
      {"idx", "an IDX file, plain or compressed", mutate_bytes,
       [&work](const std::string& input) { read_idx(work.write("fuzzed-images-idx3", input), 3); }});
  targets.push_back({"coco", "a description of pictures and objects, in COCO's JSON", mutate_text,
                     [](const std::string& input) { parse_coco(input, "fuzzed"); }});
  targets.push_back(
      {"config", "a configuration, in YAML", mutate_text,
       [name = in_configs("gpt")](const std::string& input) { read_experiment_text(input, name); },
       std::move(configs)});
  targets.push_back({"comparison", "a comparison file, in YAML", mutate_text,
                     [&work](const std::string& input) {
                       load_comparison(work.write("configs/compare/fuzzed.yaml", input));
                     },
                     std::move(comparisons)});
  return targets;
}

}  // namespace zoo::fuzz

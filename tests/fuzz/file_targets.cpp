// Single files: tensors, tokenizers, configurations.

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <torch/types.h>

#include "base/error.h"
#include "comparison/planning/comparison_config.h"
#include "data/audio/log_mel.h"
#include "data/audio/recordings.h"
#include "data/images/annotated_image.h"
#include "data/images/augment.h"
#include "data/images/coco_file.h"
#include "data/images/idx_file.h"
#include "data/images/image_file.h"
#include "data/structures/formats.h"
#include "experiments/load_experiment.h"
#include "io/config/config_file.h"
#include "io/files.h"
#include "io/formats/pytorch_file.h"
#include "io/safetensors.h"
#include "models/families/model_cost.h"
#include "tasks/experiment.h"
#include "tasks/task_type.h"
#include "tests/fuzz/targets.h"
#include "tokenizers/hub_tokenizer.h"
#include "tokenizers/sentencepiece_tokenizer.h"

namespace zoo::fuzz {
namespace {

namespace fs = std::filesystem;
using std::string_literals::operator""s;

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

/// Reads the files of a tokenizer of the Hub, those of them that are not empty.
void use_hub_files(const std::string& input) {
  constexpr const char* names[] = {
      "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt",  "vocab.json",
      "merges.txt",     "tokenizer.model",       "gpt2.tiktoken",           "config.json"};
  const auto contents = split(input, std::size(names));
  HubFiles files;
  for (size_t i = 0; i < std::size(names); ++i) {
    if (!contents[i].empty()) files[names[i]] = contents[i];
  }
  const auto special = hub_special_tokens(files);
  const auto tokenizer = make_hub_tokenizer(std::move(files), special);
  tokenizer->frame();
  use(*tokenizer);
  for (const char* const text : {"the cat  sat on <s>", "é\u0301 東 \U0001F469\u200D"}) {
    try {
      tokenizer->encode_with_places(text);
    } catch (const DataError&) {
      continue;  // a model of SentencePiece, or a character that the vocabulary does not have
    }
  }
}

void read_safetensors(const fs::path& path) {
  const SafetensorsFile file(path);
  n_elements(file);
  for (const auto& name : file.names()) file.tensor(name).sum();
}

void read_pytorch(const fs::path& path) {
  const PytorchFile file(path);
  for (const auto& name : file.names()) file.tensor(name).sum();
  file.value_beside("model_args");
}

/// Decodes an image as training does, and brings it to the sizes that models read.
void read_image_bytes(const std::string& input) {
  constexpr DecodingLimits limits{.pixels = 1 << 20, .bytes = 1 << 26};
  constexpr int64_t size = 224, longest = 384;
  for (const int64_t n_channels : {1, 3}) {
    const Image image = decode_image(input, "fuzzed", n_channels, limits);
    fitted(image, {.size = size});
    resized_to_fit(image, size, {.max_size = longest});
  }
}

/// Reads a recording as training does, up to its spectrogram.
void read_recording_bytes(const fs::path& path) {
  AudioConfig config;
  config.max_seconds = 5;
  const LogMel log_mel(config);
  log_mel(read_samples(path, config));
}

/// Reads a structure, and writes it in both forms, of which mmCIF can be read again.
void read_structure_text(const std::string& input) {
  const auto structure = parse_structure(input, "fuzzed");
  for (const auto& chain : structure.models.front().chains) letters_of(chain);
  try {
    to_pdb(structure);
  } catch (const DataError&) {
    // Names and numbers that have too many characters.
  }
  const auto again = parse_structure(to_mmcif(structure), "written");
  if (again.models.size() != structure.models.size()) throw std::logic_error("models are lost");
}

/// Pixels in one row: as high as a model reads it, it would be 22 million pixels long.
Image line_of_pixels() {
  constexpr int64_t n = 100'000;
  return {.shape = {.channels = 1, .height = 1, .width = n}, .pixels = std::vector<uint8_t>(n, 7)};
}

/// Each scan takes the time of a whole image.
std::string with_many_scans(const std::string& progressive) {
  const size_t begin = progressive.find("\xFF\xDA");
  size_t end = begin + 2;
  while (progressive[end] != '\xFF' || progressive[end + 1] == '\0') ++end;  // the next marker
  std::string file = progressive.substr(0, end);
  for (int i = 0; i < 20'000; ++i) file += progressive.substr(begin, end - begin);
  return file + progressive.substr(end);
}

std::string many_categories() {
  std::string list;
  for (int i = 0; i < 2'000; ++i)
    list += fmt::format(R"({}{{"id": {}, "name": "{}"}})", i == 0 ? "" : ", ", i, i);
  return fmt::format(
      R"({{"images": [{{"id": 1, "file_name": "a", "width": 1, "height": 1}}], "categories": [{}]}})", list);
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
  for (const char* folder : {"bert", "classification", "gpt", "models", "speech", "translation", "vision"})
    for (auto& text : yaml_files_below(sources / "configs" / folder)) configs.push_back(std::move(text));

  fs::copy(sources / "configs", work / "configs",
           fs::copy_options::recursive);  // for the bases of comparisons

  std::vector<Target> targets;
  targets.push_back(
      {"safetensors", "tensors: every tensor of the file", mutate_safetensors,
       [&work](const std::string& input) { read_safetensors(work.write("fuzzed.safetensors", input)); }});
  targets.push_back({"pytorch", "a file of torch.save(): every tensor, and a value beside the weights",
                     mutate_bytes,
                     [&work](const std::string& input) { read_pytorch(work.write("fuzzed.pt", input)); }});
  targets.push_back({"sentencepiece", "a model of SentencePiece, used on some texts", mutate_protobuf,
                     [](const std::string& input) { use(SentencePieceTokenizer(input, {})); }});
  targets.push_back({"tokenizer", "tokenizer.json of a run, used on some texts", mutate_text,
                     [&work](const std::string& input) {
                       work.write("tokenizer/tokenizer.json", input);
                       use(*load_tokenizer(work / "tokenizer"));
                     }});
  targets.push_back({"hub", "files of a tokenizer of the Hub, used on some texts", mutate_files,
                     use_hub_files, hub_seeds()});
  targets.push_back({"png",
                     "a PNG file, brought to the size of a model",
                     mutate_png,
                     read_image_bytes,
                     {encode_png(line_of_pixels())}});
  targets.push_back({"jpeg",
                     "a JPEG file, likewise",
                     mutate_bytes,
                     read_image_bytes,
                     {with_many_scans(read_file(sources / "tests/fuzz/seeds/jpeg/progressive.jpg"))}});
  targets.push_back({"webp", "a WebP file, likewise", mutate_bytes, [](const std::string& input) {
                       if (reads_webp()) read_image_bytes(input);
                     }});
  for (const char* const format : {"wav", "flac"}) {
    targets.push_back(
        {format, "a recording, up to its spectrogram", mutate_bytes,
         [&work](const std::string& input) { read_recording_bytes(work.write("fuzzed-recording", input)); }});
  }
  targets.push_back({"idx",
                     "an IDX file, plain or compressed",
                     mutate_gzip,
                     [&work](const std::string& input) {
                       read_idx(work.write("fuzzed-images-idx3", input), 3, {.bytes = int64_t{1} << 26});
                     },
                     // Thousands of times larger than its file, and larger than the limit.
                     {gzipped("\0\0\x08\x03\0\0\x01\0\0\0\x04\0\0\0\x04\0"s + std::string(1 << 16, '\0'))}});
  targets.push_back({"coco",
                     "a description of pictures and objects, in COCO's JSON",
                     mutate_text,
                     [](const std::string& input) { parse_coco(input, "fuzzed"); },
                     {R"({"images": [], "annotations": {"id": 1}})", many_categories()}});
  targets.push_back({"pdb", "a structure as PDB", mutate_bytes, read_structure_text});
  targets.push_back({"mmcif", "a structure as mmCIF", mutate_bytes, read_structure_text});
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

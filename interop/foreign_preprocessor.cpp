#include "interop/foreign_preprocessor.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "interop/families/foreign_config.h"
#include "interop/foreign_files.h"
#include "interop/foreign_pictures.h"
#include "io/json_document.h"
#include "models/families/pairs/dual_encoder.h"
#include "models/families/recordings.h"
#include "models/families/wave_encoder.h"
#include "tasks/task_type.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using SmallFiles = std::map<std::string, std::string>;

constexpr const char* kFile = "preprocessor_config.json";
/// transformers 5 keeps the parts of a processor together.
constexpr const char* kProcessorFile = "processor_config.json";
/// The keys of every processor of recordings that change nothing here, or are about batches.
void ignore_batch_keys(ForeignConfig& config) {
  config.ignore({"return_attention_mask", "processor_class", "_processor_class", "return_tensors"});
}

/// The rate of WhisperFeatureExtractor, whose bands always end at 8 kHz.
constexpr int64_t kWhisperRate = 16000;

/// The object `part` of processor_config.json, or else what preprocessor_config.json says.
std::optional<ForeignConfig> read_processor(const fs::path& dir, const SmallFiles& files,
                                            const std::string& part) {
  if (const auto found = files.find(kProcessorFile); found != files.end()) {
    const auto path = (dir / kProcessorFile).string();
    ForeignConfig whole(path, parse_foreign_json(path, found->second));
    auto config = whole.object(part);
    whole.ignore({"processor_class", "tokenizer"});
    whole.finish();
    if (config) return config;
  }
  const auto found = files.find(kFile);
  if (found == files.end()) return std::nullopt;
  const auto path = (dir / kFile).string();
  return ForeignConfig(path, parse_foreign_json(path, found->second));
}

/// The frames of the longest recording.
double most_frames_of(const AudioConfig& audio) {
  return audio.max_seconds * static_cast<double>(audio.sample_rate) / static_cast<double>(audio.hop);
}

/// Wav2Vec2FeatureExtractor. What follows a recording changes nothing here, whether transformers gets a mask
/// (return_attention_mask) or not.
void read_sample_settings(ForeignConfig config, AudioConfig& audio) {
  config.require("feature_size", 1);
  audio.sample_rate = config.integer("sampling_rate", audio.sample_rate);
  audio.standardize = config.flag("do_normalize", true);
  config.require("padding_value", 0.0);
  config.require("padding_side", "right");
  config.require("feature_extractor_type", "Wav2Vec2FeatureExtractor");
  ignore_batch_keys(config);
  config.finish();
}

void read_spectrogram_settings(ForeignConfig config, const ModelConfig& model, AudioConfig& audio) {
  config.require("feature_size", audio.n_mels);
  config.require("sampling_rate", kWhisperRate);
  audio.n_fft = config.integer("n_fft", audio.n_fft);
  audio.hop = config.integer("hop_length", audio.hop);
  audio.max_seconds = config.number("chunk_length", audio.max_seconds);
  const double frames = most_frames_of(audio);
  if (const int64_t wanted = most_frames(model); std::llround(frames) != wanted) {
    config.fail(
        "chunk_length",
        fmt::format("recordings of this length have {:g} frames, and the model reads {}", frames, wanted));
  }
  config.require("padding_value", 0.0);
  config.require("padding_side", "right");
  config.require("dither", 0.0);
  config.require("feature_extractor_type", "WhisperFeatureExtractor");
  // They follow from the others: transformers computes the filters again, too.
  config.ignore({"n_samples", "nb_max_frames", "mel_filters", "do_normalize"});
  ignore_batch_keys(config);
  config.finish();
}

/// What processes the pictures of a model without a file: what its family has, with its own size.
nlohmann::json usual_processor(const Experiment& experiment) {
  const auto& model = experiment.model;
  const int64_t size = experiment.data.images.size;
  if (task_type(experiment).predicts == PredictionKind::objects) return nlohmann::json::object();
  if (!compares_pictures(model)) return {{"size", size}};
  const bool cuts = model.architecture.as<DualEncoderConfig>().scores == PairScores::softmax;
  if (!cuts)
    return {{"image_processor_type", "SiglipImageProcessor"}, {"size", {{"height", size}, {"width", size}}}};
  return {{"image_processor_type", "CLIPImageProcessor"}, {"size", size}, {"crop_size", size}};
}

}  // namespace

std::optional<PixelStatistics> read_preprocessor(const fs::path& dir, const SmallFiles& files,
                                                 Experiment& to) {
  const auto& type = task_type(to);
  if (reads_recordings(to.model)) {
    if (auto config = read_processor(dir, files, "feature_extractor")) {
      const auto place = config->place();
      if (reads_spectrograms(to.model))
        read_spectrogram_settings(*std::move(config), to.model, to.data.audio);
      else
        read_sample_settings(*std::move(config), to.data.audio);
      to = checked_experiment(to, place);
    }
    return std::nullopt;
  }
  if (type.predicts_from != PredictionInput::image_file) return std::nullopt;
  auto& images = to.data.images;
  auto found = read_processor(dir, files, "image_processor");
  auto config = found ? *std::move(found) : ForeignConfig((dir / kFile).string(), usual_processor(to));
  auto pixels = type.predicts == PredictionKind::objects ? read_detected_pictures(config, images)
                                                         : read_square_pictures(config, images);
  to = checked_experiment(to, config.place());
  return pixels;
}

namespace {

/// Numbers that went through a file and back.
bool are_close(const std::vector<double>& a, const std::vector<double>& b) {
  constexpr double close = 1e-9;
  return std::ranges::equal(a, b, [](double x, double y) { return std::abs(x - y) <= close; });
}

}  // namespace

bool prepares_pictures_alike(const SmallFiles& files, const Experiment& experiment,
                             const PixelStatistics& pixels) {
  const auto& ours = experiment.data.images;
  auto copy = experiment;
  auto& theirs = copy.data.images = {.size = ours.size, .channels = ours.channels};
  try {
    const auto read = read_preprocessor({}, files, copy);
    return read && are_close(read->mean, pixels.mean) && are_close(read->deviation, pixels.deviation) &&
           theirs.size == ours.size && theirs.fit == ours.fit && theirs.resize_to == ours.resize_to &&
           theirs.filter == ours.filter && theirs.transparency == ours.transparency &&
           theirs.longest_side() == ours.longest_side() && theirs.padding == ours.padding;
  } catch (const Error&) {
    return false;
  }
}

std::optional<std::string> preprocessor_of(const Experiment& experiment,
                                           const std::optional<PixelStatistics>& pixels) {
  if (pixels) return json_text(picture_processor_of(experiment, *pixels), 2) + "\n";
  if (!reads_recordings(experiment.model)) return std::nullopt;
  const auto& audio = experiment.data.audio;
  if (!reads_spectrograms(experiment.model)) {
    // With a norm over the moments of a recording, transformers' models are trained without masks.
    const auto norm = experiment.model.architecture.as<WaveEncoderConfig>().conv_norm;
    const nlohmann::ordered_json config = {{"feature_extractor_type", "Wav2Vec2FeatureExtractor"},
                                           {"feature_size", 1},
                                           {"sampling_rate", audio.sample_rate},
                                           {"do_normalize", audio.standardize},
                                           {"padding_side", "right"},
                                           {"padding_value", 0.0},
                                           {"return_attention_mask", norm == WaveNorm::each}};
    return json_text(config, 2) + "\n";
  }
  const auto refuse = [](std::string_view key, std::string_view wanted) {
    throw ConfigError(
        fmt::format("transformers makes other spectrograms: data.audio.{} is not {}", key, wanted));
  };
  if (audio.sample_rate != kWhisperRate) refuse("sample_rate", "16000");
  if (audio.normalization != SpectrogramNormalization::whisper) refuse("normalization", "whisper");
  if (audio.padding != RecordingPadding::longest) refuse("padding", "longest");
  if (audio.max_seconds != std::floor(audio.max_seconds)) refuse("max_seconds", "a whole number");
  const nlohmann::ordered_json config = {{"feature_extractor_type", "WhisperFeatureExtractor"},
                                         {"feature_size", audio.n_mels},
                                         {"sampling_rate", audio.sample_rate},
                                         {"n_fft", audio.n_fft},
                                         {"hop_length", audio.hop},
                                         {"chunk_length", std::llround(audio.max_seconds)},
                                         {"n_samples", audio.max_samples()},
                                         {"nb_max_frames", std::llround(most_frames_of(audio))},
                                         {"padding_side", "right"},
                                         {"padding_value", 0.0},
                                         {"return_attention_mask", false}};
  return json_text(config, 2) + "\n";
}

}  // namespace zoo

#include "interop/foreign_preprocessor.h"

#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "interop/foreign_families.h"
#include "interop/foreign_files.h"
#include "interop/rules/foreign_config.h"
#include "models/families/recordings.h"
#include "tasks/task_type.h"

namespace zoo {
namespace {

namespace fs = std::filesystem;
using SmallFiles = std::map<std::string, std::string>;

constexpr const char* kFile = "preprocessor_config.json";
/// The rate of WhisperFeatureExtractor, whose bands always end at 8 kHz.
constexpr int64_t kWhisperRate = 16000;

std::optional<ForeignConfig> read_file(const fs::path& dir, const SmallFiles& files) {
  const auto found = files.find(kFile);
  if (found == files.end()) return std::nullopt;
  const auto path = (dir / kFile).string();
  return ForeignConfig(path, parse_foreign_json(path, found->second));
}

void read_picture_sizes(std::optional<ForeignConfig> config, ImageConfig& images) {
  images.size = 800;
  images.max_size = 1333;
  if (!config) return;
  for (const std::string_view step : {"do_resize", "do_rescale", "do_normalize"}) config->require(step, true);
  constexpr int64_t bilinear = 2;
  config->require("resample", bilinear);
  const bool has_object = config->has("size") && config->json()["size"].is_object();
  if (has_object) {
    auto size = *config->object("size");
    images.size = size.integer("shortest_edge");
    images.max_size = size.optional_integer("longest_edge");
    size.finish();
  } else {  // older files
    images.size = config->integer("size", images.size);
    images.max_size = config->optional_integer("max_size").value_or(*images.max_size);
  }
}

/// The frames of the longest recording.
double most_frames_of(const AudioConfig& audio) {
  return audio.max_seconds * static_cast<double>(audio.sample_rate) / static_cast<double>(audio.hop);
}

void read_recording_settings(ForeignConfig config, const ModelConfig& model, AudioConfig& audio) {
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
  config.require("dither", 0.0);
}

}  // namespace

void read_preprocessor(const fs::path& dir, const SmallFiles& files, Experiment& to) {
  const bool finds_objects = task_type(to).finds_objects;
  if (!finds_objects && !reads_recordings(to.model)) return;
  auto config = read_file(dir, files);
  if (finds_objects) {
    read_picture_sizes(config, to.data.images);
  } else if (config) {
    read_recording_settings(*config, to.model, to.data.audio);
  }
  if (config) to = checked_experiment(to, config->place());
}

PixelStatistics read_pixels(const fs::path& dir, const SmallFiles& files, const Experiment& experiment) {
  const int64_t n_channels = experiment.data.images.channels;
  const auto n = static_cast<size_t>(n_channels);
  PixelStatistics pixels{.mean = std::vector(n, 0.5), .deviation = std::vector(n, 0.5)};
  if (task_type(experiment).finds_objects && n_channels == 3)
    pixels = {.mean = {0.485, 0.456, 0.406}, .deviation = {0.229, 0.224, 0.225}};
  const auto config = read_file(dir, files);
  if (!config) return pixels;
  try {
    pixels.mean = config->json().value("image_mean", pixels.mean);
    pixels.deviation = config->json().value("image_std", pixels.deviation);
  } catch (const nlohmann::json::exception&) {
    throw CheckpointError(
        fmt::format("{}: image_mean and image_std are not lists of numbers", config->place()));
  }
  if (!can_normalize(pixels, n_channels)) {
    throw CheckpointError(fmt::format(
        "{}: image_mean and image_std are not a mean and a positive deviation for each of {} channels",
        config->place(), n_channels));
  }
  return pixels;
}

std::optional<std::string> preprocessor_of(const Experiment& experiment) {
  if (!reads_recordings(experiment.model)) return std::nullopt;
  const auto& audio = experiment.data.audio;
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
  return config.dump(2) + "\n";
}

}  // namespace zoo

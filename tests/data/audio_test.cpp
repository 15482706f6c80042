// Files of recordings, their spectrograms, lists, and batches.

#include <cmath>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include "base/random.h"
#include "data/audio/log_mel.h"
#include "data/audio/recordings.h"
#include "data/audio/resample.h"
#include "data/audio/sound_file.h"
#include "io/files.h"
#include "tasks/audio/speech_batches.h"
#include "tests/data/support.h"
#include "tests/support/small_recordings.h"

namespace zoo::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::Pointwise;

/// The bytes of integers of this width.
std::string integers(const std::vector<int64_t>& values, size_t bytes) {
  std::string data;
  for (const int64_t value : values) data += little_endian(static_cast<uint64_t>(value)).substr(0, bytes);
  return data;
}

template <class Bits, class Float>
std::string floats(const std::vector<Float>& values) {
  std::string data;
  for (const Float value : values) data += little_endian(std::bit_cast<Bits>(value));
  return data;
}

class SoundFiles : public ::testing::Test {
 protected:
  std::vector<float> read(const std::string& bytes) {
    SoundFile file(dir_.write("a.wav", bytes));
    info_ = file.info();
    return file.read();
  }
  std::string problem(const std::string& bytes) {
    auto message = message_of<DataError>([&] { read(bytes); });
    const auto path = (dir_ / "a.wav").string() + ": ";
    EXPECT_THAT(message, ::testing::StartsWith(path));
    EXPECT_EQ(message.find('\n'), message.npos);
    return message.substr(std::min(path.size(), message.size()));
  }

  TempDir dir_;
  SoundInfo info_;
};

// The samples 0, 1/2, -1/2, -1 in every width.
TEST_F(SoundFiles, EveryWidthGivesTheSameSamples) {
  const std::vector<float> expected{0, 0.5, -0.5, -1};
  EXPECT_EQ(read(wav(WavCode::integers, 1, 8000, 8, integers({128, 192, 64, 0}, 1))), expected);
  EXPECT_EQ(read(wav(WavCode::integers, 1, 8000, 16, integers({0, 1 << 14, -(1 << 14), -(1 << 15)}, 2))),
            expected);
  EXPECT_EQ(read(wav(WavCode::integers, 1, 8000, 24, integers({0, 1 << 22, -(1 << 22), -(1 << 23)}, 3))),
            expected);
  const std::string widest = integers({0, 1 << 30, -(1 << 30), -(int64_t{1} << 31)}, 4);
  EXPECT_EQ(read(wav(WavCode::integers, 1, 8000, 32, widest)), expected);
  EXPECT_EQ(read(wav(WavCode::floats, 1, 8000, 32, floats<uint32_t>(expected))), expected);
  EXPECT_EQ(read(wav(WavCode::floats, 1, 8000, 64, floats<uint64_t>(std::vector<double>{0, 0.5, -0.5, -1}))),
            expected);
  EXPECT_EQ(read(wav(WavCode::extensible, 1, 8000, 16, integers({0, 1 << 14, -(1 << 14), -(1 << 15)}, 2))),
            expected);
  // ITU-T G.711: the loudest codes of A-law and mu-law are 32256 and 32124 of 32768.
  EXPECT_EQ(read(wav(WavCode::a_law, 1, 8000, 8, "\xAA"))[0], 32256.0F / 32768);
  EXPECT_EQ(read(wav(WavCode::mu_law, 1, 8000, 8, "\x80"))[0], 32124.0F / 32768);
}

TEST_F(SoundFiles, ChannelsAreMixed) {
  const auto samples =
      read(wav(WavCode::integers, 2, 44100, 16, integers({1 << 14, 0, -(1 << 14), 1 << 13}, 2)));
  EXPECT_THAT(samples, ElementsAre(0.25F, -0.125F));
  EXPECT_EQ(info_.n_channels, 2);
  EXPECT_EQ(info_.sample_rate, 44100);
  // More channels than are read at once.
  EXPECT_THAT(
      read(wav(WavCode::integers, 1000, 8000, 16, integers(std::vector<int64_t>(40'000, 1 << 14), 2))),
      Each(0.5F));
  EXPECT_EQ(info_.n_samples, 40);
}

// The seeds of the fuzzer: mono.flac and rf64.wav were made of mono.wav, stereo.flac of stereo.wav (24 bits).
TEST_F(SoundFiles, FlacAndRf64AreReadAsTheWavTheyWereMadeOf) {
  const auto seed = [&](const std::string& name) { return read(read_file("tests/fuzz/seeds/" + name)); };
  const auto mono = seed("wav/mono.wav"), stereo = seed("wav/stereo.wav");
  EXPECT_EQ(mono.size(), 240U);
  EXPECT_EQ(seed("flac/mono.flac"), mono);
  EXPECT_EQ(seed("wav/rf64.wav"), mono);
  EXPECT_EQ(seed("flac/stereo.flac"), stereo);
  EXPECT_EQ(info_.n_channels, 2);
}

TEST_F(SoundFiles, BadFilesGetOneLine) {
  const std::string good = wav(tone(440, 800, 8000), 8000);
  EXPECT_EQ(problem(""), "the file is empty");
  EXPECT_EQ(problem("hello"), "this is no WAV or FLAC file");
  EXPECT_EQ(problem(good.substr(0, 8) + "AVI " + good.substr(12)), "this is no WAV or FLAC file");
  EXPECT_THAT(problem(good.substr(0, 20)), HasSubstr("damaged: "));
  EXPECT_THAT(problem(wav(WavCode::integers, 1, 8000, 16, "")), HasSubstr("has no samples"));
  EXPECT_THAT(problem(wav(WavCode::integers, 1, 10, 16, "ab")), HasSubstr("has 10 samples per second"));
  EXPECT_EQ(problem(wav(WavCode::floats, 1, 8000, 32, floats<uint32_t>(std::vector<float>{0, NAN}))),
            "has samples that are not numbers");
  EXPECT_THAT(message_of<DataError>([&] { SoundFile(dir_ / "none.wav"); }), HasSubstr("cannot read"));
  EXPECT_THAT(message_of<DataError>([&] { SoundFile(dir_.path()); }), HasSubstr("cannot read"));
}

// What a recorder leaves that writes to a pipe: it does not know how long the recording will be.
TEST_F(SoundFiles, SizesOfStreamsDoNotDecideHowMuchIsRead) {
  const auto samples = tone(440, 800, 8000);
  const std::string good = wav(samples, 8000);
  constexpr size_t size_of_data = 40;
  for (const uint32_t size : {0xFFFFFFFFU, 0x7FFFFFFFU, 0x7FFFF000U, 0x80000000U}) {
    SCOPED_TRACE(size);
    EXPECT_EQ(read(std::string(good).replace(size_of_data, 4, little_endian(size))).size(), samples.size());
  }
}

TEST_F(SoundFiles, AFileThatIsCutIsRefused) {
  const std::string good = wav(tone(440, 800, 8000), 8000);
  const std::string wide = read_file("tests/fuzz/seeds/wav/rf64.wav");
  EXPECT_EQ(problem(good.substr(0, good.size() - 100)),
            fmt::format("damaged: its samples should end at byte {}, and the file has {} bytes; was it cut?",
                        good.size(), good.size() - 100));
  EXPECT_THAT(problem(wide.substr(0, wide.size() - 2)), HasSubstr("was it cut?"));
  EXPECT_THAT(problem(std::string(good).replace(40, 4, little_endian(100'000'000U))),
              HasSubstr("was it cut?"));
  // A chunk of an odd length before the data has a byte more than it says.
  const std::string note("LIST\x03\0\0\0abc\0", 12);
  EXPECT_EQ(read(good.substr(0, 36) + note + good.substr(36)).size(), 800U);
  EXPECT_THAT(problem(good.substr(0, 36) + note + good.substr(36, good.size() - 37)),
              HasSubstr("was it cut?"));
}

TEST(Resample, KeepsATone) {
  for (const auto& [from, to] : std::vector<std::pair<int, int>>{
           {8000, 16000}, {44100, 16000}, {192000, 16000}, {4000, 16000}, {48000, 8000}, {44101, 16000}}) {
    SCOPED_TRACE(fmt::format("{} to {}", from, to));
    const double hertz = 700;
    const auto result = resample(tone(hertz, from / 4, from), from, to);
    const auto expected = tone(hertz, std::ssize(result), to);
    EXPECT_EQ(std::ssize(result), resampled_length(from / 4, from, to));
    const size_t edge = 100;
    for (size_t i = edge; i + edge < result.size(); ++i) ASSERT_NEAR(result[i], expected[i], 2e-3) << i;
  }
}

TEST(Resample, RemovesWhatTheNewRateCannotHave) {
  const auto result = resample(tone(6000, 4000, 16000), 16000, 8000);
  for (size_t i = 100; i + 100 < result.size(); ++i) ASSERT_NEAR(result[i], 0, 2e-3);
}

TEST(Resample, OfTheSameRateChangesNothing) {
  const auto samples = tone(300, 100, 8000);
  EXPECT_EQ(resample(samples, 8000, 8000), samples);
  EXPECT_EQ(resampled_length(3, 16000, 8000), 2);
}

TEST(LogMel, ATonesEnergyIsInItsBand) {
  const AudioConfig config;
  const LogMel log_mel(config);
  const auto filters = mel_filters(config.n_mels, config.n_fft, config.sample_rate);
  const auto spectrogram = log_mel(tone(1000, 16000, 16000));
  ASSERT_EQ(spectrogram.sizes(), (std::vector<int64_t>{80, 100}));
  const auto loudest = spectrogram.select(1, 50).argmax().item<int64_t>();
  constexpr size_t bin_of_tone = 25;  // 1,000 Hz of 40 Hz each
  for (int64_t m = 0; m < config.n_mels; ++m) {
    EXPECT_LE(filters[static_cast<size_t>(m)][bin_of_tone],
              filters[static_cast<size_t>(loudest)][bin_of_tone]);
  }
}

TEST(LogMel, ShortRecordingsHaveAFrame) {
  const LogMel log_mel(AudioConfig{});
  for (const int64_t n : {1, 159, 160, 399, 400})
    EXPECT_EQ(log_mel(tone(1000, n, 16000)).size(1), std::max<int64_t>(1, n / 160)) << n;
}

TEST(LogMel, BandsOfARecordingAreStandardised) {
  AudioConfig config;
  config.normalization = SpectrogramNormalization::recording;
  const LogMel log_mel(config);
  CounterRandom random({3});
  std::vector<float> noise;
  for (int i = 0; i < 16000; ++i) noise.push_back(static_cast<float>(random.uniform() - 0.5));
  const auto spectrogram = log_mel(noise).to(torch::kDouble);
  EXPECT_LT(spectrogram.mean(1).abs().max().item<double>(), 1e-6);
  EXPECT_LT((spectrogram.var(1, false) - 1).abs().max().item<double>(), 1e-3);
}

TEST(SpecAugment, HidesBandsAndFramesUpToTheirWidths) {
  const SpecAugmentConfig options{
      .frequency_masks = 1, .frequency_width = 5, .time_masks = 1, .time_width = 50, .time_share = 0.1};
  int64_t most_bands = 0, most_frames = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    CounterRandom random({seed});
    auto spectrogram = torch::arange(20 * 100, torch::kFloat).view({20, 100}).contiguous();
    const auto before = spectrogram.clone();
    const auto mean = before.mean();
    hide_parts(spectrogram, options, random);
    const auto hidden = spectrogram != before;
    EXPECT_TRUE(((spectrogram - mean).abs() < 1e-3).logical_or(hidden.logical_not()).all().item<bool>());
    most_bands = std::max(most_bands, hidden.all(1).sum().item<int64_t>());
    most_frames = std::max(most_frames, hidden.all(0).sum().item<int64_t>());
  }
  EXPECT_EQ(most_bands, 5);
  EXPECT_EQ(most_frames, 10);
}

/// Options for batches of `size` recordings.
BatchOptions batches_of(int64_t size, BatchOptions::Order order = BatchOptions::Order::shuffled) {
  BatchOptions options;
  options.batch_size = size;
  options.seed = 3;
  options.order = order;
  options.bucketing = BatchOptions::Bucketing::none;
  return options;
}

class SpeechData : public ::testing::Test {
 protected:
  SpeechData() : root_("ZOO_DATA", (dir_ / "data").string()) {
    write_recordings(dir_, "data/");
    config_.train = {ConfigPath("recordings.tsv")};
    config_.audio.sample_rate = 8000;
    config_.audio.n_fft = 200, config_.audio.hop = 80, config_.audio.n_mels = 12;
  }

  std::string problem(const std::string& list) {
    dir_.write("data/list.tsv", list);
    config_.train = {ConfigPath("list.tsv")};
    config_.valid = {ConfigPath("recordings.tsv")};
    return message_of<DataError>([&] { read_recordings(config_, Split::train); });
  }

  /// Batches of all recordings, whose transcripts are their lengths.
  std::unique_ptr<BatchSource> batches(const BatchOptions& options = batches_of(4),
                                       TranscriptLayout layout = TranscriptLayout::ctc) const {
    auto recordings = read_recordings(config_, Split::train);
    std::vector<TokenIds> texts;
    for (const auto& recording : recordings) texts.emplace_back(recording.text.size() / 4, 2);
    return speech_batches(std::move(recordings), std::move(texts), config_.audio, layout,
                          {.pad = 0, .bos = 1, .eos = 3}, options);
  }

  TempDir dir_;
  ScopedEnvironment root_;
  DataConfig config_;
};

TEST_F(SpeechData, AListHasFilesTextsAndSpeakers) {
  const auto train = read_recordings(config_, Split::train), valid = read_recordings(config_, Split::valid);
  EXPECT_EQ(train.size(), 54U);
  EXPECT_EQ(valid.size(), 6U);
  EXPECT_THAT(train.front().text, ::testing::AnyOf(HasSubstr("low"), HasSubstr("high")));
  EXPECT_THAT(train.front().speaker, ::testing::AnyOf("ann", "bob"));
  EXPECT_EQ(train.front().sample_rate, 8000);
  EXPECT_EQ(std::ssize(read_samples(train.front().file, config_.audio)), train.front().n_samples);
  EXPECT_EQ(listed_recordings(config_).take(Split::valid).front().text, valid.front().text);
}

TEST_F(SpeechData, BadListsGetOneLine) {
  EXPECT_THAT(problem("audio\ttext\n../x.wav\tlow\n"),
              HasSubstr("list.tsv:2: '../x.wav' is no path of a file in the directory of this list"));
  EXPECT_THAT(problem("audio\ttext\n/etc/passwd\tlow\n"), HasSubstr("is no path of a file in the directory"));
  EXPECT_THAT(problem("audio\ttext\nsounds/1.wav\t \n"), HasSubstr("list.tsv:2: no text"));
  EXPECT_THAT(problem("file\ttext\nsounds/1.wav\tlow\n"), HasSubstr("audio"));
  EXPECT_THAT(problem("audio\ttext\nsounds/none.wav\tlow\n"), HasSubstr("cannot read"));
  EXPECT_THAT(problem("audio\ttext\nsounds/none.wav\tlow\nsounds/1.wav\tlow\nsounds/no.wav\tlow\n"),
              HasSubstr("2 of 3 recordings cannot be read: "));
  config_.train = {ConfigPath("sounds/1.wav")};
  EXPECT_THAT(
      message_of<DataError>([&] { read_recordings(config_, Split::train); }),
      HasSubstr("recordings are read from a list (NAME.tsv) with the columns audio and sentence or text"));
}

// 24 hours in a file of 44 bytes and a hole: nothing of it is read.
TEST_F(SpeechData, ADayIsRefusedBeforeItIsRead) {
  const auto path = dir_.write("data/day.wav", wav(WavCode::integers, 1, 8000, 16, ""));
  constexpr uint32_t bytes = 24 * 3600 * 8000 * 2;
  std::string header = wav(WavCode::integers, 1, 8000, 16, "").replace(40, 4, little_endian(bytes));
  header.replace(4, 4, little_endian(bytes + 36));
  dir_.write("data/day.wav", header);
  std::filesystem::resize_file(path, 44 + uint64_t{bytes});
  EXPECT_THAT(problem("audio\ttext\nday.wav\tlow\n"),
              HasSubstr("day.wav: is 86400.0 s long, longer than 30 s (data.audio.max_seconds)"));
}

TEST_F(SpeechData, BatchesHaveEvenFramesAndTranscripts) {
  const auto source = batches(batches_of(4, BatchOptions::Order::sequential));
  EXPECT_EQ(source->n_batches(0), 14);
  const auto recordings = read_recordings(config_, Split::train);
  const auto batch = source->batch(0, 2);
  const auto& spectrograms = batch.field(fields::kSpectrograms);
  const auto& frames = batch.field(fields::kFrames);
  EXPECT_EQ(batch.n_rows(), 4);
  EXPECT_EQ(spectrograms.size(1), 12);
  EXPECT_EQ(spectrograms.size(2) % 2, 0);
  int64_t n_tokens = 0;
  for (int64_t b = 0; b < 4; ++b) {
    const auto& recording = recordings[static_cast<size_t>(8 + b)];
    EXPECT_EQ(batch.field(fields::kRecordingNumbers)[b].item<int64_t>(), 8 + b);
    const int64_t n = recording.n_samples / 80;
    EXPECT_EQ(frames[b].item<int64_t>(), n);
    const auto alone = LogMel(config_.audio)(read_samples(recording.file, config_.audio));
    EXPECT_TRUE(torch::equal(spectrograms[b].narrow(1, 0, n), alone));
    EXPECT_EQ(spectrograms[b].narrow(1, n, spectrograms.size(2) - n).abs().sum().item<double>(), 0);
    const int64_t tokens = (batch.field(fields::kTranscripts)[b] >= 0).sum().item<int64_t>();
    EXPECT_EQ(tokens, std::ssize(recording.text) / 4);
    n_tokens += tokens;
  }
  EXPECT_EQ(batch.tokens, n_tokens);
  std::vector<std::vector<float>> samples;
  for (size_t i = 8; i < 12; ++i) samples.push_back(read_samples(recordings[i].file, config_.audio));
  EXPECT_TRUE(
      torch::equal(batch_of_recordings(samples, config_.audio).field(fields::kSpectrograms), spectrograms));
}

TEST_F(SpeechData, ADecoderReadsTheStartAndTheText) {
  const auto batch = batches(batches_of(4), TranscriptLayout::decoder)->batch(0, 0);
  const auto lengths = batch.decoder.row_lengths();
  int64_t at = 0;
  for (int64_t b = 0; b < batch.n_rows(); ++b) {
    const int64_t n = lengths[static_cast<size_t>(b)];
    EXPECT_EQ(batch.decoder.ids[b][0].item<int64_t>(), 1);
    EXPECT_EQ(batch.targets[at + n - 1].item<int64_t>(), 3);
    at += n;
  }
  EXPECT_EQ(batch.tokens, at);
  EXPECT_EQ(batch.n_targets(), at);
}

TEST_F(SpeechData, PaddingToTheLongestIsSilence) {
  config_.audio.padding = RecordingPadding::longest;
  config_.audio.max_seconds = 2;
  const auto batch = batches()->batch(0, 0);
  EXPECT_EQ(batch.field(fields::kSpectrograms).size(2), 200);
  EXPECT_FALSE(batch.fields.contains(fields::kFrames));
  const auto silence = batch.field(fields::kSpectrograms)[0].narrow(1, 190, 10);
  EXPECT_TRUE((silence == silence.min()).all().item<bool>());
}

// Changes depend on the seed, the epoch and the recording only: not on other batches, the size of a batch, or
// the share of a process.
TEST_F(SpeechData, ChangesDependOnSeedEpochAndRecordingOnly) {
  config_.audio.augment = {.speed = 0.1, .shift = 0.05, .gain = 6, .spec_augment = SpecAugmentConfig{}};
  const auto four = batches_of(4);
  const auto batch = batches(four)->batch(1, 2);
  const auto source = batches(four);
  source->batch(0, 0);
  EXPECT_TRUE(
      torch::equal(source->batch(1, 2).field(fields::kSpectrograms), batch.field(fields::kSpectrograms)));
  const auto second = batches(four);
  second->use_share(1, 2);
  const auto share = second->batch(1, 2);
  for (const char* const name : {fields::kFrames, fields::kTranscripts, fields::kRecordingNumbers})
    EXPECT_TRUE(torch::equal(share.field(name), batch.field(name))) << name;
  const auto& whole = batch.field(fields::kSpectrograms);
  EXPECT_TRUE(torch::equal(share.field(fields::kSpectrograms).narrow(0, 2, 2), whole.narrow(0, 2, 2)));
  const auto two = batches(batches_of(2))->batch(1, 4);
  const auto& narrow = two.field(fields::kSpectrograms);
  for (int64_t b = 0; b < 2; ++b) {
    const int64_t n = two.field(fields::kFrames)[b].item<int64_t>();
    EXPECT_EQ(n, batch.field(fields::kFrames)[b].item<int64_t>());
    EXPECT_TRUE(torch::equal(narrow[b].narrow(1, 0, n), whole[b].narrow(1, 0, n)));
  }
  // Another epoch changes the same recording in another way.
  const auto number = batch.field(fields::kRecordingNumbers)[0].item<int64_t>();
  std::set<int64_t> lengths;
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    for (int64_t i = 0; i < source->n_batches(epoch); ++i) {
      const auto other = source->batch(epoch, i);
      for (int64_t b = 0; b < 4; ++b)
        if (other.field(fields::kRecordingNumbers)[b].item<int64_t>() == number)
          lengths.insert(other.field(fields::kFrames)[b].item<int64_t>());
    }
  }
  EXPECT_GT(lengths.size(), 1U);
}

}  // namespace
}  // namespace zoo::testing

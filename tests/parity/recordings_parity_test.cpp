// Spectrograms against transformers, resampling against torchaudio's formula, error rates against jiwer.

#include "data/audio/log_mel.h"
#include "data/audio/resample.h"
#include "tasks/audio/speech_batches.h"
#include "tasks/metrics/speech_metrics.h"
#include "tests/parity/reference.h"

namespace zoo::testing {
namespace {

constexpr double kSpectrogramTolerance = 1e-4;

class RecordingsParity : public ReferenceTest {
 protected:
  RecordingsParity() : ReferenceTest("reference_recordings.py") {}

  static std::vector<float> samples_of(const torch::Tensor& tensor) {
    return {tensor.const_data_ptr<float>(), tensor.const_data_ptr<float>() + tensor.numel()};
  }
  static std::vector<std::string> spoken_lines(const torch::Tensor& bytes) {
    const auto* const begin = reinterpret_cast<const char*>(bytes.const_data_ptr<uint8_t>());
    std::istringstream text(std::string(begin, static_cast<size_t>(bytes.numel())));
    std::vector<std::string> result;
    for (std::string line; std::getline(text, line, '\0');) result.push_back(line);
    return result;
  }
};

TEST_F(RecordingsParity, LogMelOfWhisper) {
  for (const int64_t n_mels : {80, 128}) {
    const ReferenceCase reference(file(fmt::format("log_mel_{}", n_mels)));
    AudioConfig config;
    config.n_mels = n_mels;
    const auto filters = mel_filters(n_mels, config.n_fft, config.sample_rate);
    const auto expected_filters = reference.output("filters").to(torch::kDouble).contiguous();
    ASSERT_EQ(expected_filters.size(0), n_mels);
    for (int64_t m = 0; m < n_mels; ++m) {
      for (int64_t k = 0; k < expected_filters.size(1); ++k) {
        ASSERT_NEAR(filters[static_cast<size_t>(m)][static_cast<size_t>(k)],
                    expected_filters[m][k].item<double>(), 1e-9);
      }
    }
    for (const auto padding : {RecordingPadding::batch, RecordingPadding::longest}) {
      config.padding = padding;
      for (const auto& name : reference.names("input/")) {
        SCOPED_TRACE(fmt::format("{} {} {}", n_mels, name_of(padding), name));
        const std::vector<std::vector<float>> recordings{samples_of(reference.get("input/" + name))};
        const auto expected = reference.output(fmt::format("{}/{}", name_of(padding), name));
        const auto actual = batch_of_recordings(recordings, config).field(fields::kSpectrograms)[0];
        const int64_t N = expected.size(1);
        ASSERT_EQ(actual.size(1), N + N % 2);
        EXPECT_LE((actual.narrow(1, 0, N) - expected).abs().max().item<double>(), kSpectrogramTolerance);
      }
    }
  }
}

TEST_F(RecordingsParity, ResamplingOfTorchaudio) {
  const ReferenceCase reference(file("resampling"));
  for (const auto& name : reference.names("input/")) {
    SCOPED_TRACE(name);
    const auto dash = name.find('-');
    const int64_t from = std::stoll(name.substr(0, dash)), to = std::stoll(name.substr(dash + 1));
    const auto actual = resample(samples_of(reference.get("input/" + name)), from, to);
    reference.expect_output(name, torch::tensor(actual), 1e-6);
  }
}

TEST_F(RecordingsParity, ErrorRatesOfJiwer) {
  const ReferenceCase reference(file("error_rates"));
  const auto references = spoken_lines(reference.get("input/references")),
             outputs = spoken_lines(reference.get("input/outputs"));
  const auto words = reference.output("words"), characters = reference.output("characters"),
             corpus = reference.output("corpus");
  ASSERT_EQ(references.size(), 400U);
  ASSERT_EQ(outputs.size(), references.size());
  EditCount all_words, all_characters;
  for (size_t i = 0; i < references.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    const auto w = word_edits(references[i], outputs[i]), c = character_edits(references[i], outputs[i]);
    EXPECT_EQ(w.edits, words[row][0].item<int64_t>()) << references[i] << " / " << outputs[i];
    EXPECT_EQ(w.reference, words[row][1].item<int64_t>()) << references[i];
    EXPECT_EQ(c.edits, characters[row][0].item<int64_t>()) << references[i] << " / " << outputs[i];
    EXPECT_EQ(c.reference, characters[row][1].item<int64_t>()) << references[i];
    all_words += w;
    all_characters += c;
  }
  EXPECT_NEAR(all_words.rate(), corpus[0].item<double>(), 1e-12);
  EXPECT_NEAR(all_characters.rate(), corpus[1].item<double>(), 1e-12);
}

}  // namespace
}  // namespace zoo::testing

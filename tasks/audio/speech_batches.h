#pragma once
// Batches of recordings and their transcripts.

#include <memory>
#include <span>
#include <vector>

#include "data/audio/log_mel.h"
#include "data/audio/recordings.h"
#include "data/batch_source.h"
#include "models/families/recordings.h"
#include "tokenizers/tokenizer.h"

namespace zoo {

namespace fields {
/// (B) int64: the numbers of the recordings in their data set.
inline constexpr const char* kRecordingNumbers = "recording_numbers";
}  // namespace fields

/// How a model gets transcripts.
enum class TranscriptLayout {
  decoder,  // Batch::decoder, targets and positions, as add_teacher_forcing() makes them
  ctc,      // the field kTranscripts
};

/// Batches of recordings, whose transcripts are `transcripts`, one for each. They have the fields
///   spectrograms (B, M, N) float   N is even; padded with zeros on the right
///   frames (B) int64               unless options.padding is longest: then all N frames are read
/// or, as `input` says,
///   samples (B, N) float           padded with zeros on the right
///   sample_counts (B) int64
/// and
///   recording_numbers (B) int64
/// and the transcripts as `layout` says. Batch::tokens counts the tokens of the transcripts, for a decoder
/// with eos. In shuffled order the recordings are changed at random as config.augment says; the changes
/// depend on (seed, epoch, recording) only. Batches of similar length have recordings of similar length. With
/// options.batch_tokens a recording counts as one token for two frames, whatever the input is. Throws
/// DataError if the vocabulary lacks the special tokens that a decoder needs.
std::unique_ptr<BatchSource> speech_batches(std::vector<Recording> recordings,
                                            std::vector<TokenIds> transcripts, const AudioConfig& config,
                                            TranscriptLayout layout, const SpecialTokens& special,
                                            const BatchOptions& options,
                                            RecordingInput input = RecordingInput::spectrogram);

/// Recordings (samples as read_samples() gives them, unchanged) as such batches have them, without
/// transcripts.
Batch batch_of_recordings(std::span<const std::vector<float>> recordings, const AudioConfig& config,
                          RecordingInput input = RecordingInput::spectrogram);

/// The samples of a recording with the mean 0 and the deviation 1, as Wav2Vec2FeatureExtractor of
/// transformers has it with do_normalize.
std::vector<float> standardized(std::vector<float> samples);

}  // namespace zoo

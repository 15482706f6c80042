#pragma once
// Where a model looks in a recording.

#include <string>

#include "analysis/attention_maps.h"

namespace zoo {

/// The report of a trained model that writes down the recording `file`, WAV or FLAC. Its text is the name of
/// the file, its target what the model writes. Its source tokens are the vectors of the encoder, named by the
/// time at which each begins ("0.04 s"); its target tokens are those of a decoder. With CTC the predictions
/// are the likeliest tokens of each vector, of which the blank is "∅". Throws UsageError if the run reads no
/// recordings or a layer of it has no maps, DataError if the file cannot be read.
AttentionReport recording_attention_report(const Run& run, const std::string& file);

}  // namespace zoo

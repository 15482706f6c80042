#pragma once
// Writes down what is said in recordings, with a model of the task speech_recognition.

#include <string>
#include <vector>

#include "generation/generation_config.h"
#include "models/model.h"
#include "tasks/task.h"

namespace zoo {

/// Whether the model of an experiment scores the tokens of each moment of a recording (HeadKind::ctc). If
/// not, it has a decoder that writes.
bool uses_ctc(const Experiment& experiment);

/// What the model says that was said in each recording of a batch (tasks/audio/speech_batches.h), one line of
/// UTF-8 each. With options.beam > 1 the best hypothesis of a beam search, else the likeliest token at each
/// place. The other keys of `generation:` hold for a decoder, except that nothing is drawn at random. Throws
/// CheckpointError if the model's outputs are NaN.
std::vector<std::string> transcribe(Model& model, const Task& task, const Batch& recordings,
                                    const GenerationConfig& options);

/// `options` for a decoder that writes what is said after options.start_tokens: nothing is drawn at random,
/// and the texts have no more tokens than those of the data.
GenerationConfig writing_options(const Task& task, GenerationConfig options);

}  // namespace zoo

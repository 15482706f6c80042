#pragma once
// The library's tasks. Each is defined in a file of its own, in a folder above this one.

#include "tasks/task_type.h"

namespace zoo {

/// Next-token prediction over a stream of text, with a decoder, or with an encoder-decoder whose encoder
/// reads the first part of each window.
TaskType language_modeling();
/// Prediction of hidden tokens with an encoder (Devlin et al. 2019).
TaskType masked_language_modeling();
/// Translation and other tasks that turn one line into another, with an encoder-decoder or a decoder.
TaskType text_to_text();
/// Classification of texts: with an encoder at its class token, with a decoder at its last token, or with an
/// encoder-decoder that writes the name of the class.
TaskType text_classification();
/// A class for each word or character of a text, with an encoder or a decoder.
TaskType token_classification();
/// Prediction of the marked tokens of each text with a decoder: associative recall, induction.
TaskType marked_tokens();
/// Questions with choices, answered by the likelihood of each choice.
TaskType choices();
/// No task: models without a head, for the vectors and attention maps of texts, or of images.
TaskType text_features();
TaskType image_features();
/// Classification of images with a vit.
TaskType image_classification();
/// Which texts fit a picture, with a dual_encoder.
TaskType image_text_similarity();
/// Detection of objects in pictures with a detr.
TaskType object_detection();
/// What is said in recordings, with a speech_encoder, wave_encoder or whisper.
TaskType speech_recognition();
/// Structures of proteins from their sequences, with a fold_flow, fold_pairs or esmfold.
TaskType structure_prediction();

}  // namespace zoo

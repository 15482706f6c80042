#pragma once
// The routes, by what they are about.

#include <vector>

#include "serving/api/route.h"

namespace zoo {

/// /v1/completions, /v1/chat/completions
std::vector<Route> text_routes();
/// /v1/responses
std::vector<Route> response_routes();
/// /v1/embeddings
std::vector<Route> vector_routes();
/// /v1/audio/transcriptions
std::vector<Route> audio_routes();
/// /predict, /v1/rerank, /fill
std::vector<Route> prediction_routes();
/// /translate, /attention
std::vector<Route> attention_routes();
/// /lens, /attribute, /ablate, /patch
std::vector<Route> cause_routes();
/// /slices
std::vector<Route> slice_routes();
/// /fold
std::vector<Route> fold_routes();
/// What /openapi.json says.
HttpResponse describe_api(const ApiOptions& options);
/// /tokenize, /detokenize, /tokenizer_info
std::vector<Route> tokenizer_routes();
/// /, /health, /v1/models, /metrics, /openapi.json
std::vector<Route> service_routes();

}  // namespace zoo

// /v1/audio/transcriptions: what is said in a recording.

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/error.h"
#include "base/text.h"
#include "data/audio/recordings.h"
#include "serving/api/api_error.h"
#include "serving/api/recordings.h"
#include "serving/api/routes.h"
#include "serving/http/form.h"
#include "tasks/audio/speech_batches.h"
#include "tasks/audio/transcription.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

/// The parts of a form as the fields of a request. Every function throws ApiError.
class FormFields {
 public:
  explicit FormFields(const HttpRequest& request) {
    try {
      parts_ = read_form(request.body, request.header("content-type"));
    } catch (const DataError& error) {
      throw ApiError(400, error.what());
    }
  }

  std::optional<std::string> text(const std::string& name) {
    const auto* const part = find(name);
    if (!part) return std::nullopt;
    if (part->is_file || find_invalid_utf8(part->content)) fail(name, "must be a text");
    return std::string(part->content);
  }
  std::string required_text(const std::string& name) {
    auto value = text(name);
    if (!value) fail(name, "is missing");
    return *std::move(value);
  }
  std::string required_file(const std::string& name) {
    const auto* const part = find(name);
    if (!part) fail(name, "is missing");
    if (!part->is_file) fail(name, "must be a file");
    return std::string(part->content);
  }
  void refuse_others() const {
    for (const auto& part : parts_) {
      if (std::ranges::find(known_, part.name) != known_.end()) continue;
      const auto near = nearest(part.name, known_);
      fail(excerpt(part.name), fmt::format("is not known here{}", near ? ": is " + *near + " meant?" : ""));
    }
  }
  [[noreturn]] static void fail(const std::string& name, const std::string& problem) {
    throw ApiError(400, fmt::format("{} {}", name, problem), name);
  }

 private:
  const FormPart* find(const std::string& name) {
    known_.push_back(name);
    const auto found = std::ranges::find(parts_, name, &FormPart::name);
    return found == parts_.end() ? nullptr : &*found;
  }

  std::vector<FormPart> parts_;
  std::vector<std::string> known_;
};

enum class AnswerForm { json, text };

struct TranscriptionCall {
  std::string model;
  std::string recording;  // bytes
  SoundInfo info = {};
  std::optional<std::string> language = {};
  AnswerForm form = AnswerForm::json;
};

AnswerForm read_answer_form(FormFields& fields) {
  const auto name = fields.text("response_format").value_or("json");
  if (name == "text") return AnswerForm::text;
  if (name != "json") FormFields::fail("response_format", "must be json or text: transcripts have no times");
  return AnswerForm::json;
}

void check_temperature(FormFields& fields) {
  const auto text = fields.text("temperature");
  if (!text) return;
  double value = -1;
  const auto* const end = text->data() + text->size();
  const auto read = std::from_chars(text->data(), end, value);
  if (read.ec != std::errc() || read.ptr != end || value != 0)
    FormFields::fail("temperature", "must be 0: transcripts are not drawn at random");
}

TranscriptionCall read_call(const HttpRequest& request, const ApiLimits& limits) {
  FormFields fields(request);
  TranscriptionCall call{.model = fields.required_text("model"),
                         .recording = fields.required_file("file"),
                         .language = fields.text("language"),
                         .form = read_answer_form(fields)};
  check_temperature(fields);
  if (fields.text("stream").value_or("false") != "false")
    FormFields::fail("stream", "must be false: a transcript comes whole");
  fields.refuse_others();
  call.info = check_recording(call.recording, "file", limits);
  return call;
}

/// Whisper's name of the token for a language: <|de|>.
bool is_language_token(std::string_view label) {
  constexpr size_t shortest = 6, longest = 7;
  if (label.size() < shortest || label.size() > longest) return false;
  if (!label.starts_with("<|") || !label.ends_with("|>")) return false;
  return std::ranges::all_of(label.substr(2, label.size() - 4), [](char c) { return c >= 'a' && c <= 'z'; });
}

/// The tokens that stand before an output, with that of `language` in the place of the model's own.
TokenIds start_in_language(const ServedModel& model, TokenIds start, const std::string& language) {
  const auto& tokenizer = model.tokenizer();
  const auto own =
      std::ranges::find_if(start, [&](int64_t id) { return is_language_token(tokenizer.label(id)); });
  if (own == start.end())
    FormFields::fail("language", fmt::format("has no effect on the model {}: leave it out", model.card().id));
  const auto wanted = fmt::format("<|{}|>", language);
  for (int64_t id = 0; is_language_token(wanted) && id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.label(id) != wanted) continue;
    *own = id;
    return start;
  }
  FormFields::fail("language", fmt::format("'{}' is none of the model {}: write it as de", excerpt(language),
                                           model.card().id));
}

CountedAnswer transcription(const ServedModel& model, const TranscriptionCall& call) {
  auto& task = model.run().task();
  const auto& experiment = task.experiment();
  auto options = experiment.generation;
  if (call.language) options.start_tokens = start_in_language(model, options.start_tokens, *call.language);
  const std::vector<std::vector<float>> samples = {
      with_recording(call.recording, "file",
                     [&](const std::string& path) { return read_samples(path, experiment.data.audio); })};
  const auto text =
      transcribe(model.model(), task, batch_of_recordings(samples, experiment.data.audio), options).front();
  if (call.form == AnswerForm::text)
    return {.response = HttpResponse{.content_type = "text/plain; charset=utf-8", .body = text + "\n"}};
  return {.document = {{"text", text}, {"usage", {{"type", "duration"}, {"seconds", call.info.seconds()}}}}};
}

void transcribe_recording(const ApiContext& context, const ApiCall& call) {
  auto asked = read_call(call.request, context.options.limits);
  const auto model = asked.model;
  answer_with_model(
      context, call, model, Ability::transcribe,
      [asked = std::move(asked)](const ServedModel& served) { return transcription(served, asked); });
}

}  // namespace

std::vector<Route> audio_routes() {
  return {{.method = "POST",
           .path = "/v1/audio/transcriptions",
           .answer = transcribe_recording,
           .body = RequestBody::form}};
}

}  // namespace zoo

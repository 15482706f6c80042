// /v1/audio/transcriptions and /v1/audio/translations: what is said in a recording.

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/text.h"
#include "data/audio/recordings.h"
#include "serving/api/api_error.h"
#include "serving/api/recordings.h"
#include "serving/api/routes.h"
#include "serving/http/form.h"
#include "tasks/audio/listener.h"

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

enum class AnswerForm { json, text, verbose_json, srt, vtt };
constexpr auto config_names(AnswerForm) {
  return std::to_array<std::string_view>({"json", "text", "verbose_json", "srt", "vtt"});
}

struct TranscriptionCall {
  std::string model;
  std::string recording;  // bytes
  SoundInfo info = {};
  std::optional<std::string> language = {};
  std::optional<SpeechTask> task = {};
  AnswerForm form = AnswerForm::json;

  SpeechOptions options() const {
    const bool has_times = form != AnswerForm::json && form != AnswerForm::text;
    return {
        .language = language, .task = task, .times = has_times ? SpokenTimes::told : SpokenTimes::left_out};
  }
};

AnswerForm read_answer_form(FormFields& fields) {
  const auto name = fields.text("response_format").value_or("json");
  const auto form = enumerator_named<AnswerForm>(name);
  if (!form)
    FormFields::fail("response_format",
                     fmt::format("must be one of {}", fmt::join(config_names(AnswerForm{}), ", ")));
  return *form;
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

/// Throws ApiError for options that the model cannot follow.
Listener listener_of(const ServedModel& model, const SpeechOptions& options) try {
  return {model.model(), model.run().task(), options};
} catch (const UsageError& error) {
  throw ApiError(400, error.what(), options.language ? "language" : "response_format");
}

CountedAnswer answer_of(const Transcript& transcript, const TranscriptionCall& call) {
  const auto as_file = [](std::string type, std::string body) {
    return CountedAnswer{.response = HttpResponse{.content_type = std::move(type), .body = std::move(body)}};
  };
  const auto seconds = call.info.seconds();
  const auto& segments = transcript.segments;
  switch (call.form) {
    case AnswerForm::text:
      return as_file("text/plain; charset=utf-8", transcript.text + "\n");
    case AnswerForm::srt:
      return as_file("text/plain; charset=utf-8", to_srt(segments.value()));
    case AnswerForm::vtt:
      return as_file("text/vtt; charset=utf-8", to_vtt(segments.value()));
    case AnswerForm::json:
      return {
          .document = {{"text", transcript.text}, {"usage", {{"type", "duration"}, {"seconds", seconds}}}}};
    case AnswerForm::verbose_json:
      break;
  }
  auto list = Json::array();
  for (const auto& [begin, end, text] : segments.value())
    list.push_back({{"id", list.size()}, {"start", begin}, {"end", end}, {"text", text}});
  return {.document = {{"task", name_of(call.task.value_or(SpeechTask::transcribe))},
                       {"language", transcript.language ? Json(*transcript.language) : Json()},
                       {"duration", seconds},
                       {"text", transcript.text},
                       {"segments", std::move(list)}}};
}

/// The work for a request: one window of the recording after the other.
struct Transcribing {
  TranscriptionCall call;
  std::optional<Listener> listener = {};
  std::optional<Listener::Hearing> hearing = {};

  ModelAnswer next(const ServedModel& model) {
    if (!hearing) {
      listener.emplace(listener_of(model, call.options()));
      auto audio = model.run().task().experiment().data.audio;
      audio.max_seconds = listener->max_seconds();
      hearing = with_recording(call.recording, "file", [&](const std::string& path) {
        return listener->begin(read_samples(path, audio));
      });
    }
    if (!listener->go_on(*hearing)) return std::nullopt;
    return answer_of(*hearing->transcript, call);
  }
};

void hear(const ApiContext& context, const ApiCall& call, std::optional<SpeechTask> task) {
  auto asked = read_call(call.request, context.options.limits);
  asked.task = task;
  const auto model = asked.model;
  answer_with_model(context, call, model, Ability::transcribe,
                    [work = Transcribing{std::move(asked)}](const ServedModel& served) mutable {
                      return work.next(served);
                    });
}

void transcribe_recording(const ApiContext& context, const ApiCall& call) {
  hear(context, call, std::nullopt);
}

void translate_recording(const ApiContext& context, const ApiCall& call) {
  hear(context, call, SpeechTask::translate);
}

}  // namespace

std::vector<Route> audio_routes() {
  return {{.method = "POST",
           .path = "/v1/audio/transcriptions",
           .answer = transcribe_recording,
           .body = RequestBody::form},
          {.method = "POST",
           .path = "/v1/audio/translations",
           .answer = translate_recording,
           .body = RequestBody::form}};
}

}  // namespace zoo

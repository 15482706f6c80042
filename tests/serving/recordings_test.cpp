// Recordings in requests: /v1/audio/transcriptions and /predict.

#include "data/audio/recordings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/audio/sound_file.h"
#include "io/files.h"
#include "tasks/audio/speech_batches.h"
#include "tasks/audio/transcription.h"
#include "tasks/task_type.h"
#include "tests/serving/api_server.h"
#include "tokenizers/subwords/specification.h"

namespace zoo {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;
using testing::Answer;
using testing::ApiServer;
using testing::HttpClient;
using testing::tone;
using testing::wav;

/// How loud a recording is.
class Loudness final : public Task {
 public:
  Loudness(const Experiment& experiment, std::unique_ptr<Task> inner)
      : Task(experiment, inner->vocabulary()), inner_(std::move(inner)) {}

  ModelPurpose purpose() const override { return inner_->purpose(); }
  std::vector<Prediction> predict(Model&, const std::vector<std::string>& inputs,
                                  const PredictOptions&) override {
    std::vector<Prediction> predictions;
    for (const auto& input : inputs) {
      double most = 0;
      for (const float sample : read_samples(input, experiment().data.audio))
        most = std::max(most, static_cast<double>(sample));
      PredictedLabels answer{.labels = {{"loud", most}, {"quiet", 1 - most}}};
      if (most < 0.5) std::swap(answer.labels[0], answer.labels[1]);
      predictions.push_back({.input = input, .answer = std::move(answer)});
    }
    return predictions;
  }

 private:
  std::unique_ptr<BatchSource> open(Split) override { throw UsageError("has no batches"); }
  std::unique_ptr<Task> inner_;
};

void register_loudness() {
  if (task_types().find("loudness")) return;
  TaskType type = task_types().at("speech_recognition");
  type.name = "loudness";
  type.predicts = PredictionKind::labels;
  type.make = [make = type.make](const Experiment& experiment, Vocabulary vocabulary) {
    return std::make_unique<Loudness>(experiment, make(experiment, std::move(vocabulary)));
  };
  task_types().add(std::move(type));
}

struct Field {
  std::string name, content;
  bool is_file = false;
};

std::string form(const std::vector<Field>& fields) {
  std::string body;
  for (const auto& [name, content, is_file] : fields) {
    body += "--xyz\r\nContent-Disposition: form-data; name=\"" + name + "\"" +
            (is_file ? "; filename=\"a.wav\"\r\nContent-Type: audio/wav" : "") + "\r\n\r\n" + content +
            "\r\n";
  }
  return body + "--xyz--\r\n";
}

class Recordings : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    register_loudness();
    runs_ = std::make_unique<testing::SmallRuns>();
    ServiceOptions options;
    for (const auto& path :
         {runs_->listener(), runs_->scribe(), runs_->listener("loudness", "ear"), runs_->writer()})
      options.models.push_back({.id = path.filename().string(), .path = path});
    service_ = std::make_unique<Service>(std::move(options));
  }
  static void TearDownTestSuite() {
    service_.reset();
    runs_.reset();
  }

  static std::string sound_file(int i) {
    return (runs_->dir() / ("heard/sounds/" + std::to_string(i) + ".wav")).string();
  }
  static std::string sound(int i) { return read_file(sound_file(i)); }
  static Field file(const std::string& bytes) { return {.name = "file", .content = bytes, .is_file = true}; }
  static std::string uri(const std::string& bytes) { return "data:audio/wav;base64," + to_base64(bytes); }

  static Answer post(uint16_t port, const std::string& body, const std::string& headers = "",
                     const std::string& type = "multipart/form-data; boundary=xyz",
                     const std::string& path = "/v1/audio/transcriptions") {
    HttpClient client(port);
    client.send(fmt::format("POST {} HTTP/1.1\r\n{}Content-Type: {}\r\n{}Content-Length: {}\r\n\r\n", path,
                            headers.find("Host: ") == headers.npos ? "Host: localhost\r\n" : "", type,
                            headers, body.size()));
    client.send(body);
    return client.read_answer();
  }
  Answer transcribe(const std::vector<Field>& fields) const { return post(server_.port(), form(fields)); }
  /// What is wrong with a request, and that its status is 400 and its key `param`; "" = none.
  std::string problem(const std::vector<Field>& fields, const std::string& param) const {
    const auto answer = transcribe(fields);
    EXPECT_EQ(answer.status, 400) << answer.body;
    EXPECT_EQ(answer.json()["error"]["param"], param.empty() ? Json(nullptr) : Json(param)) << answer.body;
    EXPECT_THAT(answer.error(), AllOf(Not(HasSubstr("/proc")), Not(HasSubstr("\n"))));
    return answer.error();
  }
  Answer predict(const std::string& model, const Json& recordings) const {
    return HttpClient(server_.port()).post("/predict", {{"model", model}, {"recordings", recordings}});
  }
  /// What the library writes for a file.
  static std::string transcript(const std::string& model, const std::string& file) {
    const auto run = Run::open(runs_->dir() / model);
    return run.task().predict(run.model(), {file}).front().transcript();
  }

  static inline std::unique_ptr<testing::SmallRuns> runs_;
  static inline std::unique_ptr<Service> service_;
  ApiServer server_{*service_};
};

TEST_F(Recordings, AreWrittenDownAsByTheLibrary) {
  for (const std::string model : {"listener", "scribe"}) {
    for (const int i : {0, 1}) {
      const auto expected = transcript(model, sound_file(i));
      ASSERT_FALSE(expected.empty()) << "the test shows nothing";
      const auto answer = transcribe({{"model", model}, file(sound(i))});
      ASSERT_EQ(answer.status, 200) << answer.body;
      EXPECT_EQ(answer.json()["text"], expected);
      EXPECT_EQ(answer.json()["usage"]["type"], "duration");
      EXPECT_EQ(answer.json()["usage"]["seconds"], SoundFile(sound_file(i)).info().seconds());
      const auto text = transcribe({file(sound(i)), {"response_format", "text"}, {"model", model}});
      EXPECT_EQ(text.body, expected + "\n");
      EXPECT_THAT(text.head, HasSubstr("Content-Type: text/plain; charset=utf-8\r\n"));
    }
    EXPECT_NE(transcript(model, sound_file(0)), transcript(model, sound_file(1)))
        << "the recordings must matter";
  }
  const auto usual = transcribe({{"model", "listener"}, file(sound(0))}).body;
  EXPECT_EQ(transcribe({{"model", "listener"},
                        file(sound(0)),
                        {"response_format", "json"},
                        {"temperature", "0.0"},
                        {"stream", "false"}})
                .body,
            usual);
}

TEST_F(Recordings, AreWrittenDownInALanguage) {
  const auto run = Run::open(runs_->dir() / "scribe");
  const auto& audio = run.experiment().data.audio;
  const std::vector<std::vector<float>> samples = {read_samples(sound_file(0), audio)};
  auto options = run.experiment().generation;
  ASSERT_EQ(run.tokenizer().label(options.start_tokens.at(0)), "<|en|>");
  const auto in_english =
      zoo::transcribe(run.model(), run.task(), batch_of_recordings(samples, audio), options);
  ++options.start_tokens[0];
  const auto in_german =
      zoo::transcribe(run.model(), run.task(), batch_of_recordings(samples, audio), options);
  ASSERT_NE(in_english, in_german) << "the test shows nothing";
  const auto in_language = [&](const char* language) {
    return transcribe({{"model", "scribe"}, file(sound(0)), {"language", language}}).json()["text"];
  };
  EXPECT_EQ(in_language("de"), in_german.front());
  EXPECT_EQ(in_language("en"), in_english.front());
  for (const char* const none : {"fr", "german", "", "D", "s>|<"}) {
    EXPECT_THAT(problem({{"model", "scribe"}, file(sound(0)), {"language", none}}, "language"),
                HasSubstr("is no language of this model: it knows de, en"));
  }
  EXPECT_THAT(problem({{"model", "listener"}, file(sound(0)), {"language", "en"}}, "language"),
              HasSubstr("are for models with a decoder, such as Whisper: leave them out"));
}

TEST_F(Recordings, BadFilesGetOneLine) {
  const auto with = [&](const std::string& bytes) {
    const auto message = problem({{"model", "listener"}, file(bytes)}, "file");
    const auto predicted = predict("listener", uri(bytes));
    EXPECT_EQ(predicted.status, 400);
    EXPECT_EQ(predicted.error(), message);
    EXPECT_EQ(predicted.json()["error"]["param"], "recordings");
    return message;
  };
  EXPECT_EQ(with("ID3\4 an MP3"), "the recording: this is no WAV or FLAC file");
  EXPECT_EQ(with(""), "the recording: the file is empty");
  EXPECT_THAT(with(sound(0).substr(0, 500)), HasSubstr("the recording: damaged: "));
  EXPECT_THAT(with("fLaC" + std::string(50, 'x')), HasSubstr("the recording: damaged: "));
  EXPECT_EQ(with(wav(tone(400, 20'000, 8000), 8000)),
            "the recording: is 2.5 s long, longer than 2 s (data.audio.max_seconds)");
  EXPECT_EQ(transcribe({{"model", "listener"}, file(wav(tone(400, 16'000, 8000), 8000))}).status, 200)
      << "two seconds are not too long";
}

TEST_F(Recordings, RequestsThatAreWrongGetOneLine) {
  const Field model{"model", "listener"}, recording = file(sound(0));
  EXPECT_EQ(problem({model}, "file"), "file is missing");
  EXPECT_EQ(problem({recording}, "model"), "model is missing");
  EXPECT_EQ(problem({model, {"file", sound(0)}}, "file"), "file must be a file");
  EXPECT_EQ(problem({{.name = "model", .content = "listener", .is_file = true}, recording}, "model"),
            "model must be a text");
  EXPECT_EQ(problem({{"model", "\xFF"}, recording}, "model"), "model must be a text");
  for (const char* const form : {"", "JSON"}) {
    EXPECT_EQ(problem({model, recording, {"response_format", form}}, "response_format"),
              "response_format must be one of json, text, verbose_json, srt, vtt");
  }
  for (const char* const form : {"verbose_json", "srt", "vtt"}) {
    EXPECT_THAT(problem({{"model", "scribe"}, recording, {"response_format", form}}, "response_format"),
                HasSubstr("has no tokens for times"));
  }
  for (const char* const number : {"0.5", "-1", "", "0x", "nan", "zero"}) {
    EXPECT_EQ(problem({model, recording, {"temperature", number}}, "temperature"),
              "temperature must be 0: transcripts are not drawn at random");
  }
  EXPECT_THAT(problem({model, recording, {"stream", "true"}}, "stream"), HasSubstr("must be false"));
  EXPECT_EQ(problem({model, recording, {"langauge", "de"}}, "langauge"),
            "langauge is not known here: is language meant?");
  EXPECT_THAT(problem({model, recording, {"prompt", "Zoo"}}, "prompt"), HasSubstr("is not known here"));
  EXPECT_THAT(problem({{"model", "writer"}, recording}, ""),
              HasSubstr("the model writer (task language_modeling) cannot do transcribe"));
  EXPECT_THAT(problem({{"model", "ear"}, recording}, ""),
              HasSubstr("cannot do transcribe: it can do predict_recording"));
  EXPECT_EQ(transcribe({{"model", "none"}, recording}).status, 404);
  EXPECT_THAT(post(server_.port(), form({model, recording}) + "more").error(),
              HasSubstr("the form (multipart/form-data): something else than a part or the end"));
}

TEST_F(Recordings, AreLimited) {
  const auto bytes = sound(0), other = wav(testing::WavCode::integers, 2, 8000, 16, std::string(400, '\0'));
  const auto n = SoundFile(sound_file(0)).info().n_samples;
  ApiServer narrow(*service_, {.limits = {.most_recordings = 2, .most_recording_samples = n}});
  const auto of = [&](const std::string& content) {
    return post(narrow.port(), form({{"model", "listener"}, file(content)}));
  };
  EXPECT_EQ(of(bytes).status, 200);
  ApiServer narrower(*service_, {.limits = {.most_recording_samples = n - 1}});
  const auto refused = post(narrower.port(), form({{"model", "listener"}, file(bytes)}));
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.error(),
            fmt::format("the recording has {} samples in 1 channels, and may have {} in all", n, n - 1));
  // Of both channels.
  ApiServer stereo(*service_, {.limits = {.most_recording_samples = 199}});
  EXPECT_THAT(post(stereo.port(), form({{"model", "listener"}, file(other)})).error(),
              HasSubstr("100 samples in 2 channels"));
  const auto three =
      HttpClient(narrow.port())
          .post("/predict", {{"model", "listener"}, {"recordings", {uri(bytes), uri(bytes), uri(bytes)}}});
  EXPECT_EQ(three.error(), "recordings has 3 texts, and may have 2");
  ApiServer small(*service_, {}, {.body_bytes = 1000});
  EXPECT_EQ(post(small.port(), form({{"model", "listener"}, file(bytes)})).status, 413);
}

// A browser sends a form of any page without asking the server before.
TEST_F(Recordings, AreNotTakenFromPagesOfOtherSites) {
  const auto body = form({{"model", "listener"}, file(sound(0))});
  const auto status = [&](const std::string& headers) { return post(server_.port(), body, headers).status; };
  for (const char* const headers :
       {"Origin: http://evil.example\r\n", "Origin: null\r\n", "Origin: http://localhost:3000\r\n",
        "Origin: http://localhost.evil.example\r\n", "Origin: localhost\r\n", "Origin: file://localhost\r\n",
        "Origin: http://evil.example\r\nSec-Fetch-Site: cross-site\r\n",
        "Origin: http://localhost:3000\r\nSec-Fetch-Site: same-site\r\n",
        "Origin: http://localhost\r\nOrigin: http://evil.example\r\n",
        "Host: localhost:8080\r\nOrigin: http://localhost\r\n"})
    EXPECT_EQ(status(headers), 403) << headers;
  EXPECT_EQ(post(server_.port(), body, "Origin: http://evil.example\r\n").error(),
            "a page of 'http://evil.example' asks, which is another site than this server");
  for (const char* const headers :
       {"", "Origin: http://localhost\r\n", "Origin: https://LOCALHOST\r\n",
        "Host: 127.0.0.1:8080\r\nOrigin: http://127.0.0.1:8080\r\nSec-Fetch-Site: same-origin\r\n",
        // Through a proxy that has another name.
        "Host: 127.0.0.1:8080\r\nOrigin: https://zoo.example\r\nSec-Fetch-Site: same-origin\r\n"})
    EXPECT_EQ(status(headers), 200) << headers;
}

TEST_F(Recordings, FormsAndJsonAreNotTakenForEachOther) {
  const auto body = form({{"model", "listener"}, file(sound(0))});
  const auto as_json = post(server_.port(), body, "", "application/json");
  EXPECT_EQ(as_json.status, 415);
  EXPECT_EQ(as_json.error(), "send a form with the header Content-Type: multipart/form-data");
  EXPECT_EQ(post(server_.port(), body, "", "multipart/mixed; boundary=xyz").status, 415);
  const auto as_form = post(server_.port(), body, "", "multipart/form-data; boundary=xyz", "/predict");
  EXPECT_EQ(as_form.status, 415);
  EXPECT_EQ(as_form.error(), "send JSON with the header Content-Type: application/json");
  ApiServer locked(*service_, {.api_key = "secret"});
  EXPECT_EQ(post(locked.port(), body).status, 401);
  EXPECT_EQ(post(locked.port(), body, "Authorization: Bearer secret\r\n").status, 200);
  EXPECT_EQ(post(server_.port(), body, "Host: evil.example\r\nOrigin: http://evil.example\r\n").status, 403);
}

TEST_F(Recordings, ArePredictedFrom) {
  const auto loud = uri(wav(tone(400, 800, 8000, 0.75), 8000)),
             quiet = uri(wav(tone(400, 800, 8000, 0.25), 8000));
  const auto answer = predict("ear", {loud, quiet, loud.substr(loud.find(',') + 1)});
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto found = answer.json()["predictions"];
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0]["labels"][0]["label"], "loud");
  EXPECT_NEAR(found[0]["labels"][0]["probability"], 0.75, 0.01);
  EXPECT_EQ(found[1]["labels"][0]["label"], "quiet");
  EXPECT_EQ(found[2], found[0]);
  EXPECT_FALSE(found[0].contains("input"));
  EXPECT_FALSE(answer.json().contains("usage"));
  const auto text = predict("listener", uri(sound(1))).json()["predictions"];
  EXPECT_EQ(text, Json::array({{{"text", transcript("listener", sound_file(1))}}}));
  EXPECT_EQ(predict("ear", "data:audio/wav,abc").error(),
            "a recording is written as data:audio/wav;base64,… or as base64 alone");
  EXPECT_EQ(predict("ear", "a").error(), "a recording is not base64, with its padding");
  EXPECT_EQ(predict("ear", Json::array()).error(),
            "give one of texts, pairs, images and recordings, with at least one entry");
  EXPECT_EQ(HttpClient(server_.port())
                .post("/predict", {{"model", "ear"}, {"recordings", loud}, {"texts", "abc"}})
                .status,
            400);
  EXPECT_THAT(predict("writer", loud).error(), HasSubstr("cannot do predict_recording"));
}

TEST_F(Recordings, ModelsSayWhatTheyRead) {
  const auto listener = service_->card("listener"), scribe = service_->card("scribe");
  EXPECT_THAT(listener.can, ElementsAre(Ability::transcribe, Ability::predict_recording));
  EXPECT_EQ(scribe.can, listener.can);
  EXPECT_THAT(service_->card("ear").can, ElementsAre(Ability::predict_recording));
  HttpClient client(server_.port());
  const auto about = client.get("/v1/models/scribe").json()["zoo"];
  EXPECT_EQ(about["can"], Json({"transcribe", "predict_recording"}));
  EXPECT_EQ(about["max_seconds"], 2);
  EXPECT_EQ(about["max_length"], nullptr);
  EXPECT_FALSE(client.get("/v1/models/writer").json()["zoo"].contains("max_seconds"));
  EXPECT_THAT(client.post("/v1/completions", {{"model", "scribe"}, {"prompt", "abc"}}).error(),
              HasSubstr("cannot do completions"));
  EXPECT_THAT(client.post("/tokenize", {{"model", "scribe"}, {"text", "abc"}}).error(),
              HasSubstr("reads no texts"));
  EXPECT_THAT(client.post("/attention", {{"model", "scribe"}, {"text", "abc"}}).error(),
              HasSubstr("cannot do attention"));
}

}  // namespace
}  // namespace zoo

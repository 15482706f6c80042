// /lens, /attribute, /ablate and /patch over HTTP.

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analysis/causes/reports_json.h"
#include "checkpoints/run.h"
#include "tests/serving/api_server.h"
#include "tests/support/errors.h"

namespace zoo {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;
using testing::ApiTest;
using testing::HttpClient;

class CauseRoutes : public ApiTest {
 protected:
  testing::Answer post(const std::string& path, const Json& body) const {
    return HttpClient(server_.port()).post(path, body);
  }
  Json said(const std::string& path, const Json& body) const {
    const auto answer = post(path, body);
    EXPECT_EQ(answer.status, 200) << path << ' ' << body << '\n' << answer.body;
    return answer.json();
  }
  std::string problem(const std::string& path, const Json& body) const {
    const auto answer = post(path, body);
    EXPECT_EQ(answer.status, 400) << path << ' ' << body << '\n' << answer.body;
    return answer.error();
  }
};

/// Whether two documents are equal, where numbers may differ in the last digits.
void expect_equal(const Json& found, const Json& expected, const std::string& place) {
  if (expected.is_number_float()) {
    EXPECT_NEAR(found.get<double>(), expected.get<double>(), 1e-5) << place;
  } else if (expected.is_structured()) {
    ASSERT_EQ(found.size(), expected.size()) << place;
    for (const auto& [key, value] : expected.items()) {
      if (expected.is_array())
        expect_equal(found[std::stoul(key)], value, place + "/" + key);
      else
        expect_equal(found.at(key), value, place + "/" + key);
    }
  } else {
    EXPECT_EQ(found, expected) << place;
  }
}

/// The JSON of the command line for the run of a model.
template <class Report>
Json document(Report report, const std::string& model, int64_t n_tokens) {
  report.name = model;
  auto json = Json::parse(to_json(report));
  json["usage"] = {{"prompt_tokens", n_tokens}, {"total_tokens", n_tokens}};
  return json;
}

TEST_F(CauseRoutes, SayWhatTheCommandsSay) {
  const auto run = Run::open(runs_->dir() / "writer");
  const auto ask_run = [&](const std::string& text) { return ask(run, {.text = text}); };
  {
    auto report = attribution_report(run.model(), ask_run("abcd"), {.steps = 300});
    expect_equal(said("/attribute", {{"model", "writer"}, {"text", "abcd"}, {"steps", 300}}),
                 document(std::move(report), "writer", 4), "attribute");
  }
  {
    auto report = patch_report(run.model(), ask_run("abcd"), ask_run("abed"), {.answer = 1, .against = 2});
    expect_equal(
        said(
            "/patch",
            {{"model", "writer"}, {"clean", "abcd"}, {"corrupt", "abed"}, {"answer", "b"}, {"against", "c"}}),
        document(std::move(report), "writer", 8), "patch");
  }
  const auto lens = said("/lens", {{"model", "writer"}, {"text", "abcd"}, {"position", 2}});
  EXPECT_EQ(lens["depths"].size(), 3U);
  EXPECT_EQ(lens["contributions"]["place"], 2);
  auto report = lens_report(run.model(), ask_run("abcd"));
  report.name = "writer";
  const auto expected = Json::parse(to_json(report, std::nullopt));
  expect_equal(lens["depths"], expected["depths"], "lens");

  const auto ablation = said("/ablate", {{"model", "writer"}, {"text", "abcd"}, {"by", "mean"}});
  const auto batch = batch_of_question(run, ask_run("abcd"), std::nullopt);
  EXPECT_EQ(batch.targets.numel(), 3);
  Ablation ablated(run.model(), {batch}, AblationBy::mean);
  EXPECT_NEAR(ablation["loss"], ablated.whole().loss(), 1e-5);
  ASSERT_EQ(ablation["ablations"].size(), 2U * (2 + 2));
  EXPECT_EQ(ablation["ablations"][1]["parts"], Json({"layers.0.attention.heads.1"}));
  EXPECT_NEAR(ablation["ablations"][1]["loss"], ablated.without({ablated_part("0.1")}).loss(), 1e-5);
}

TEST_F(CauseRoutes, ReadWhatEachModelReads) {
  const auto filler = said("/attribute", {{"model", "filler"}, {"text", "ab<mask>d"}, {"baseline", "mask"}});
  EXPECT_EQ(filler["place"], 3) << "behind the token before the text";
  EXPECT_EQ(said("/ablate", {{"model", "filler"}, {"text", "ab<mask>d"}, {"answer", "c"}})["targets"], 1);
  const auto translated = said(
      "/attribute", {{"model", "translator"}, {"text", "abc"}, {"target", "cba"}, {"by", "gradient_input"}});
  EXPECT_EQ(translated["decoder"].size(), 4U);
  const auto classified = said("/ablate", {{"model", "classifier"}, {"text", "abc"}, {"answer", "red"}});
  EXPECT_EQ(classified["targets"], 1);
  const auto own = said("/ablate", {{"model", "classifier"}, {"text", "abc"}});
  EXPECT_EQ(own["accuracy"], 1) << "its own answer is the right one";
  EXPECT_EQ(said("/lens", {{"model", "classifier"}, {"text", "abc"}})["places"].size(), 1U);
}

TEST_F(CauseRoutes, QuoteWhatWasSent) {
  for (const char* const path : {"/lens", "/attention"}) {
    const auto refused = post(path, {{"model", "writer"}, {"image", "no picture"}});
    EXPECT_EQ(refused.json()["error"]["param"], "image") << refused.body;
  }
  EXPECT_THAT(problem("/lens", {{"model", "writer"}, {"text", "abcd"}, {"answer", "a--b"}}),
              HasSubstr("answer: “a--b” is"));
  EXPECT_THAT(
      problem("/patch", {{"model", "writer"}, {"clean", "abcd"}, {"corrupt", "abed"}, {"position", 9}}),
      AllOf(HasSubstr("position"), Not(HasSubstr("--"))));
}

TEST_F(CauseRoutes, DrawWhatIsWanted) {
  const Json body = {{"model", "writer"}, {"text", "abcd"}, {"view", true}};
  EXPECT_EQ(said("/lens", body)["view"]["grids"][0]["rows"], Json({"2", "1", "0"}));
  EXPECT_EQ(said("/attribute", body)["view"]["texts"][0]["tokens"], Json({"a", "b", "c", "d"}));
  EXPECT_EQ(said("/ablate", body)["view"]["kind"], "Ablation");
  EXPECT_FALSE(said("/lens", {{"model", "writer"}, {"text", "abcd"}}).contains("view"));
}

TEST_F(CauseRoutes, ReadThroughATrainedLens) {
  const auto path = runs_->dir() / "writer";
  const auto run = Run::open(path);
  auto lens = untrained_lens(run.model());
  for (auto& map : lens) map.bias.uniform_(-1, 1);
  const testing::TempDir dir;
  save_lens(dir / "lens.safetensors", lens, run.model());
  Service service({.models = {{.id = "writer", .path = path, .lens = dir / "lens.safetensors"}}});
  const testing::ApiServer server(service);
  const auto said = [&](const Json& more) {
    Json body = {{"model", "writer"}, {"text", "abcd"}, {"view", true}};
    body.update(more);
    const auto answer = HttpClient(server.port()).post("/lens", body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.json();
  };
  const auto trained = said({{"lens", "trained"}}), plain = said(Json::object());
  EXPECT_EQ(trained["lens"], "trained");
  EXPECT_EQ(trained["view"]["kind"], "Trained lens");
  EXPECT_EQ(plain["lens"], "plain");
  const auto expected = lens_report(run.model(), ask(run, {.text = "abcd"}), {.lens = lens});
  for (const size_t depth : {0, 1})
    EXPECT_NEAR(trained["depths"][depth]["cells"][2]["divergence"], expected.depths[depth][2].divergence,
                1e-5);
  EXPECT_NE(plain["depths"][0], trained["depths"][0]);
  EXPECT_TRUE(service.models()[0].card.can.contains(Ability::trained_lens));

  const auto filler = Run::open(runs_->filler());
  EXPECT_THAT(
      testing::message_of<CheckpointError>([&] { load_lens(dir / "lens.safetensors", filler.model()); }),
      HasSubstr("lens of a model with"));
}

TEST_F(CauseRoutes, RefuseInOneLine) {
  const auto with = [](Json more) {
    Json body = {{"model", "writer"}, {"text", "abcd"}};
    body.update(more);
    return body;
  };
  EXPECT_EQ(problem("/lens", with({{"position", 4}})),
            "position: 4 is not a place of this input: it has the places 0 to 3");
  EXPECT_EQ(problem("/attribute", with({{"position", 4}})),
            "position: 4 is not a place of this input: it has the places 0 to 3");
  EXPECT_THAT(problem("/lens", with({{"answer", "abc"}})), HasSubstr("answer: “abc” is 3 tokens"));
  EXPECT_THAT(problem("/lens", with({{"image", "x"}})), HasSubstr("give one of text and image"));
  EXPECT_THAT(problem("/attribute", with({{"by", "magic"}})),
              HasSubstr("by must be one of integrated_gradients, gradient_input"));
  EXPECT_THAT(problem("/attribute", with({{"by", "gradient_input"}, {"steps", 3}})),
              HasSubstr("steps is for by: integrated_gradients"));
  EXPECT_THAT(problem("/attribute", with({{"steps", 501}})), HasSubstr("steps"));
  EXPECT_THAT(problem("/ablate", with({{"by", "resample"}})), HasSubstr("by must be one of zero, mean"));
  EXPECT_THAT(problem("/ablate", {{"model", "filler"}, {"text", "abcd"}}), HasSubstr("write <mask>"));
  EXPECT_THAT(problem("/lens", with({{"text", std::string(257, 'a')}})), HasSubstr("has 257 tokens"));
  EXPECT_THAT(problem("/lens", with({{"more", 1}})), HasSubstr("more"));
  EXPECT_THAT(problem("/lens", with({{"lens", "tuned"}})), HasSubstr("lens must be one of plain, trained"));
  EXPECT_THAT(problem("/lens", with({{"lens", "trained"}})), HasSubstr("cannot do trained_lens"));
  const testing::SmallRuns runs;
  Service service({.models = {{.id = "ranker", .path = runs.ranker()}}});
  const testing::ApiServer server(service);
  const auto answer = HttpClient(server.port()).post("/lens", {{"model", "ranker"}, {"text", "abcd"}});
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.error(), HasSubstr("predict one token or class at each place"));
  const Json patch = {{"model", "writer"}, {"clean", "abcd"}, {"corrupt", "ab"}};
  EXPECT_THAT(problem("/patch", patch), HasSubstr("has 4 tokens and the corrupted one 2"));
  EXPECT_THAT(problem("/patch", {{"model", "writer"}, {"clean", "abcd"}, {"corrupt", "abcd"}}),
              HasSubstr("name two outputs with answer and against"));
}

// Long work is done in parts, so that others have their turns, and there is a limit to it.
TEST_F(CauseRoutes, HaveALimit) {
  const std::string text(200, 'a');
  auto other = text;
  other[3] = 'b';
  const Json body = {
      {"model", "writer"}, {"clean", text}, {"corrupt", other}, {"answer", "b"}, {"against", "c"}};
  EXPECT_THAT(problem("/patch", body), HasSubstr("passes over 200 tokens, and at most 655 are done here"));
}

}  // namespace
}  // namespace zoo

// Ctrl-C in conversations on a terminal.

#include <string>

#include <gtest/gtest.h>

#include "apps/use/chat.h"
#include "checkpoints/run.h"
#include "tests/cli/support.h"
#include "tests/cli/terminal.h"
#include "tests/serving/small_runs.h"

namespace zoo {
namespace {

using testing::SmallRuns;
using testing::TerminalSession;

constexpr int kInterrupted = 130;

/// A model that would write for minutes.
class LongAnswers : public ::testing::Test {
 protected:
  LongAnswers() { runs_.talker(); }

  static constexpr const char* kEndless =
      " --min-new-tokens 90000 --max-new-tokens 90000 --temperature 1 --device cpu";
  static constexpr size_t kWhole = 40'000;  // bytes: less than an answer has that nobody ends

  SmallRuns runs_;
};

TEST_F(LongAnswers, CtrlCEndsAnAnswerAndThenTheProgram) {
  TerminalSession session(runs_.dir(), std::string("generate talker --chat") + kEndless);
  session.wait_for("\n> ");
  for (int message = 0; message < 2; ++message) {
    session.type("abc\n");
    session.wait_for_bytes(20);
    session.type("\x03");
    EXPECT_LT(session.wait_for("\n> ").size(), kWhole);
  }
  session.type("/clear\n");
  session.wait_for("> ");
  session.type("\x03");
  const auto outcome = session.finish();
  EXPECT_EQ(outcome.code, kInterrupted);
  EXPECT_EQ(outcome.out.find("zoo: "), std::string::npos) << outcome.out;
}

// The next message follows on what was written of the answer.
TEST_F(LongAnswers, TheConversationKeepsWhatWasWritten) {
  const auto run = Run::open(runs_.dir() / "talker");
  const GenerationConfig generation{
      .max_new_tokens = 200, .temperature = 1, .seed = 5, .min_new_tokens = 200};
  Chat chat(run, generation, {});
  ::testing::internal::CaptureStdout();
  int n_pieces = 0;
  chat.answer("abc", 0, [&] { return ++n_pieces >= 6; });
  auto written = ::testing::internal::GetCapturedStdout();
  ASSERT_EQ(n_pieces, 6);
  ASSERT_EQ(written.back(), '\n');
  written.pop_back();
  EXPECT_EQ(run.tokenizer().decode(chat.answer_at_once("de").prompt_ids), "abc" + written + "de>");
}

TEST_F(LongAnswers, CtrlCEndsATextThatGoesOnFromATypedOne) {
  TerminalSession session(runs_.dir(), std::string("generate talker") + kEndless);
  session.wait_for("\n> ");
  session.type("abc\n");
  session.wait_for_bytes(20);
  session.type("\x03");
  EXPECT_LT(session.wait_for("\n> ").size(), kWhole);
  session.type("\x03");
  EXPECT_EQ(session.finish().code, kInterrupted);
}

}  // namespace
}  // namespace zoo

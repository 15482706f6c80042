#include "text/chat_template.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "io/files.h"
#include "tests/support/errors.h"
#include "tests/support/temp_dir.h"

namespace zoo {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::message_of;
using testing::TempDir;

// Tokens: letters and signs by byte, and two special ones.
constexpr const char* tokenizer_json = R"({"added_tokens": [{"id": 7, "content": "<e>", "special": true},
  {"id": 8, "content": "<u>", "special": true}], "normalizer": null, "post_processor": null,
  "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
  "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "merges": [],
  "vocab": {"a": 0, "<": 1, "e": 2, ">": 3, "u": 4, "h": 5, "i": 6}}})";

Conversation said(const std::string& text) {
  return {{"messages", {{{"role", "user"}, {"content", text}}}}, {"add_generation_prompt", true}};
}

class ChatTemplates : public ::testing::Test {
 protected:
  void write(const std::string& chat_template) {
    write_file_atomically(dir_ / "tokenizer.json", tokenizer_json);
    const nlohmann::json config = {{"eos_token", "<e>"}, {"chat_template", chat_template}};
    write_file_atomically(dir_ / "tokenizer_config.json", config.dump());
  }
  TokenIds ids(const std::string& text, MarksInMessages marks = MarksInMessages::text) const {
    return read_chat_template(dir_.path()).encode(*open_tokenizer(dir_.path()), said(text), {}, marks);
  }

  TempDir dir_;
};

TEST_F(ChatTemplates, SpecialTokensInMessagesAreText) {
  write("{% for m in messages %}<u>{{ m.content }}{{ eos_token }}{% endfor %}");
  EXPECT_THAT(ids("hi"), ElementsAre(8, 5, 6, 7));
  EXPECT_THAT(ids("<e>"), ElementsAre(8, 1, 2, 3, 7));
  EXPECT_THAT(ids("<u><e>"), ElementsAre(8, 1, 4, 3, 1, 2, 3, 7));
  EXPECT_THAT(ids("<e>", MarksInMessages::tokens), ElementsAre(8, 7, 7));
  // Parts of a special token in the message and the template do not make one, where the message has it whole.
  EXPECT_THAT(ids("a<e>a"), ElementsAre(8, 0, 1, 2, 3, 0, 7));
}

TEST_F(ChatTemplates, SaysIfATemplateDoesMoreWithSpecialTokens) {
  write("{% for m in messages %}{{ m.content | length }}{{ m.content }}{% endfor %}");
  EXPECT_THAT(message_of<DataError>([&] { ids("<e>"); }), HasSubstr("the text of a special token"));
}

TEST_F(ChatTemplates, AFileCountsMoreThanTheConfiguration) {
  write("a");
  write_file_atomically(dir_ / "chat_template.jinja", "hi{{ eos_token }}");
  EXPECT_EQ(read_chat_template(dir_.path()).render(said("")).text, "hi<e>");
}

TEST_F(ChatTemplates, ToolsHaveATemplateOfTheirOwn) {
  write("a");
  const nlohmann::json config = {
      {"chat_template",
       {{{"name", "default"}, {"template", "a"}}, {{"name", "tool_use"}, {"template", "h"}}}}};
  write_file_atomically(dir_ / "tokenizer_config.json", config.dump());
  const auto chat = read_chat_template(dir_.path());
  auto conversation = said("");
  EXPECT_EQ(chat.render(conversation).text, "a");
  conversation["tools"] = nlohmann::ordered_json::array();
  EXPECT_EQ(chat.render(conversation).text, "h");
}

// As in transformers: chat_template.jinja is the usual one beside them, and tokenizer_config.json counts no
// more.
TEST_F(ChatTemplates, AreAlsoInAFolder) {
  write("a");
  std::filesystem::create_directory(dir_ / "additional_chat_templates");
  write_file_atomically(dir_ / "additional_chat_templates/tool_use.jinja", "{{ \"h\" }}");
  auto conversation = said("");
  EXPECT_THAT(message_of<DataError>([&] { read_chat_template(dir_.path()).render(conversation); }),
              HasSubstr("template"));
  write_file_atomically(dir_ / "chat_template.jinja", "i");
  const auto chat = read_chat_template(dir_.path());
  EXPECT_EQ(chat.render(conversation).text, "i");
  conversation["tools"] = nlohmann::ordered_json::array();
  EXPECT_EQ(chat.render(conversation).text, "h");
  // A run has them, too.
  const TempDir run;
  open_tokenizer(dir_.path())->save(run.path());
  write_file_atomically(run / "config.yaml", "");
  EXPECT_EQ(read_chat_template(run.path()).render(conversation).text, "h");
}

TEST_F(ChatTemplates, OfWhichTheNamesAreKeys) {
  write("a");
  write_file_atomically(dir_ / "tokenizer_config.json",
                        R"({"chat_template": {"default": "a", "tool_use": "h"}})");
  EXPECT_EQ(read_chat_template(dir_.path()).render(said("")).text, "a");
}

TEST_F(ChatTemplates, ThatWereNotDownloadedAreNamed) {
  write("a");
  write_file_atomically(dir_ / "chat_template.jinja", "version https://git-lfs.github.com/spec/v1\noid x\n");
  EXPECT_THAT(message_of<DataError>([&] { read_chat_template(dir_.path()); }),
              AllOf(HasSubstr("chat_template.jinja"), HasSubstr("Git LFS")));
}

TEST_F(ChatTemplates, ErrorsAreOneLine) {
  write("{{ raise_exception('roles\nmust alternate') }}");
  EXPECT_EQ(message_of<DataError>([&] { ids("hi"); }), "the chat template: line 1: roles\\nmust alternate");
  EXPECT_THAT(message_of<DataError>([&] { read_chat_template(dir_.path()).render({{"messages", 1}}); }),
              HasSubstr("\"messages\""));
  write_file_atomically(dir_ / "tokenizer_config.json", "{}");
  EXPECT_THAT(message_of<DataError>([&] { read_chat_template(dir_.path()); }),
              HasSubstr("there is no chat template"));
}

// Without {% generation %}: what follows the beginning of the assistant's turn, up to the end of the turn.
TEST_F(ChatTemplates, AnswersAreFoundInTemplatesThatDoNotMarkThem) {
  const auto answers = [&](const Conversation& conversation) {
    const auto encoded =
        read_chat_template(dir_.path()).encode_answers(*open_tokenizer(dir_.path()), conversation);
    return std::pair(encoded.ids, encoded.answers);
  };
  const Conversation conversation = {{"messages",
                                      {{{"role", "user"}, {"content", "hi"}},
                                       {{"role", "assistant"}, {"content", "<e>a"}},
                                       {{"role", "user"}, {"content", "u"}},
                                       {{"role", "assistant"}, {"content", "a"}}}}};
  write(
      "{% for m in messages %}{{ '<u>' if m.role == 'user' else 'hh' }}{{ m.content }}{{ eos_token }}"
      "{% endfor %}{{ 'hh' if add_generation_prompt }}");
  const auto [ids, places] = answers(conversation);
  EXPECT_THAT(ids, ElementsAre(8, 5, 6, 7, 5, 5, 1, 2, 3, 0, 7, 8, 4, 7, 5, 5, 0, 7));
  EXPECT_THAT(places, ElementsAre(6, 11, 16, 18));
  // A template that marks them.
  write(
      "{% for m in messages %}{% if m.role == 'user' %}<u>{{ m.content }}{% else %}h{% generation %}{{ "
      "m.content }}"
      "{{ eos_token }}{% endgeneration %}{% endif %}{% endfor %}");
  EXPECT_THAT(answers(conversation).second, ElementsAre(4, 9, 12, 14));
  // Earlier answers are cut.
  write(
      "{% for m in messages %}{{ m.content[:1] if not loop.last else m.content }}{{ eos_token }}{% endfor "
      "%}");
  EXPECT_THAT(message_of<DataError>([&] { answers(conversation); }),
              HasSubstr("writes a turn in another way"));
}

}  // namespace
}  // namespace zoo

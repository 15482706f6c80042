// Bodies of the type multipart/form-data.

#include "serving/http/form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/support/errors.h"

namespace zoo {
namespace {

using ::testing::HasSubstr;
using testing::message_of;

constexpr const char* kType = "multipart/form-data; boundary=xyz";

std::string problem(const std::string& body, const std::string& type = kType, const FormLimits& limits = {}) {
  return message_of<DataError>([&] { read_form(body, type, limits); });
}

/// A part with these headers.
std::string part(const std::string& headers, const std::string& content) {
  return "--xyz\r\n" + headers + "\r\n\r\n" + content + "\r\n";
}
std::string field(const std::string& name, const std::string& content) {
  return part("Content-Disposition: form-data; name=\"" + name + "\"", content);
}

TEST(Form, HasTheBytesOfItsParts) {
  const std::string bytes = std::string("RIFF\0\xFF\r\n--xy\r\n--\r\n\n", 19);
  const auto body = field("model", "listener") +
                    part(
                        "content-type: audio/wav\r\nX-Unknown: a:b\r\n"
                        "CONTENT-DISPOSITION: form-data; filename=\"C:\\a%22b;.wav\"; NAME=file",
                        bytes) +
                    field("empty", "") + "--xyz--\r\n";
  const auto parts = read_form(body, kType);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].name, "model");
  EXPECT_EQ(parts[0].content, "listener");
  EXPECT_FALSE(parts[0].is_file);
  EXPECT_EQ(parts[1].name, "file");
  EXPECT_EQ(parts[1].content, bytes);
  EXPECT_TRUE(parts[1].is_file);
  EXPECT_EQ(parts[2].content, "");
  EXPECT_EQ(read_form(field("a", "b") + "--xyz--", kType).size(), 1U) << "the last line break may be missing";
}

TEST(Form, TheHeaderNamesItsTypeAndItsBoundary) {
  for (const char* const type :
       {"multipart/form-data", "Multipart/Form-Data ; boundary=x", "multipart/form-data;"})
    EXPECT_TRUE(is_form(type)) << type;
  for (const char* const type : {"", " ", "application/json", "multipart/form-data, application/json",
                                 "multipart/form-datax", "multipart/mixed; boundary=multipart/form-data"})
    EXPECT_FALSE(is_form(type)) << type;
  const auto body = field("a", "b") + "--xyz--";
  for (const char* const type :
       {"multipart/form-data;boundary=xyz", "multipart/form-data; charset=utf-8; BOUNDARY=\"xyz\";"})
    EXPECT_EQ(read_form(body, type).size(), 1U) << type;
  for (const char* const type :
       {"multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=\"\"",
        "multipart/form-data; boundary=\"xyz ", "multipart/form-data; boundary=\"xyz \"",
        "multipart/form-data; boundary=xyz; boundary=xyz", "multipart/form-data; boundary=xyz, text/plain",
        "multipart/form-data; boundary=xy\xC3\xA9", "multipart/form-data boundary=xyz",
        "multipart/form-data; boundary = xyz"})
    EXPECT_THAT(problem(body, type), HasSubstr("the form (multipart/form-data): ")) << type;
  const std::string longest(70, 'b');
  const auto with = [&](const std::string& boundary) {
    return "--" + boundary + "\r\nContent-Disposition: form-data; name=a\r\n\r\nb\r\n--" + boundary + "--";
  };
  EXPECT_EQ(read_form(with(longest), "multipart/form-data; boundary=" + longest).size(), 1U);
  EXPECT_THAT(problem(with(longest + "b"), "multipart/form-data; boundary=" + longest + "b"),
              HasSubstr("is none"));
}

TEST(Form, WhatCouldBeReadInTwoWaysIsRefused) {
  const std::string end = "--xyz--\r\n", good = field("a", "b");
  ASSERT_EQ(read_form(good + end, kType).size(), 1U);
  const std::pair<std::string, const char*> cases[] = {
      {"", "does not begin with its boundary"},
      {"\r\n" + good + end, "does not begin with its boundary"},
      {"a preamble\r\n" + good + end, "does not begin with its boundary"},
      {"--xyz--\r\n", "it has no parts"},
      {good + end + "\r\n", "something else than a part or the end"},
      {good + end + good + end, "something else than a part or the end"},
      {good + "--xyz-", "something else than a part or the end"},
      {good + "--xyz \r\n" + good.substr(7) + end, "something else than a part or the end"},
      {good + "--xyzw\r\n" + end, "something else than a part or the end"},
      {"--xyz\n" + good.substr(7) + end, "something else than a part or the end"},
      {good, "the part a does not end: was it cut?"},
      {good.substr(0, good.size() - 2), "the part a does not end: was it cut?"},
      {good.substr(0, 30), "do not end within"},
      {good + good + end, "two parts that are called a"},
      {part("Content-Type: text/plain", "b") + end, "no Content-Disposition"},
      {"--xyz\r\n\r\nb\r\n" + end, "no Content-Disposition"},
      {part("Content-Disposition: form-data; name=a\r\nContent-Disposition: form-data; name=b", "") + end,
       "Content-Disposition twice"},
      {part("Content-Disposition: form-data; name=a\r\nContent-Type: a/b\r\ncontent-type: a/c", "") + end,
       "Content-Type twice"},
      {part("Content-Disposition: form-data; name=a; name=b", "") + end, "says name twice"},
      {part("Content-Disposition: form-data; name=a; filename=b; FILENAME=c", "") + end,
       "says filename twice"},
      {part("Content-Disposition: form-data; name=a; name*=utf-8''b", "") + end, "name and name*"},
      {part("Content-Disposition: attachment; name=a", "") + end, "another Content-Disposition"},
      {part("Content-Disposition: form-data", "") + end, "another Content-Disposition"},
      {part("Content-Disposition: form-data; name=\"\"", "") + end, "another Content-Disposition"},
      {part("Content-Disposition: form-data; name=" + std::string(257, 'n'), "") + end,
       "another Content-Disposition"},
      {part("Content-Disposition: form-data; name=\"a\\\"; filename=\"b\"", "") + end,
       "a backslash before a quote"},
      {part("Content-Disposition: form-data; name=\"a", "") + end, "a quote that does not end"},
      {part("Content-Disposition: form-data; name=\"a\" filename=b", "") + end, "in another way"},
      {part("Content-Disposition: form-data;\r\n name=a", "") + end, "another Content-Disposition"},
      {part("Content-Disposition: form-data; name=a;\r\n filename=b", "") + end, "a header that is none"},
      {part("Content-Disposition : form-data; name=a", "") + end, "a header that is none"},
      {part("X: a\nContent-Disposition: form-data; name=b\r\nContent-Disposition: form-data; name=a", "") +
           end,
       "a control character"},
      {part("Content-Disposition: form-data; name=\"a\rb\"", "") + end, "a control character"},
      {part("Content-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: base64", "Yg==") + end,
       "the coding 'base64'"},
      {part("Content-Disposition: form-data; name=a\r\nContent-Type: multipart/mixed; boundary=b", "") + end,
       "parts of its own"},
      {"--xyz\r\nContent-Disposition: form-data; name=a\r\n\r\n--xyz\r\n" + good + end,
       "a boundary follows the headers"}};
  for (const auto& [body, message] : cases) EXPECT_THAT(problem(body), HasSubstr(message)) << body;
}

TEST(Form, HasLimits) {
  std::string body;
  for (int i = 0; i < 32; ++i) body += field("f" + std::to_string(i), "");
  EXPECT_EQ(read_form(body + "--xyz--", kType).size(), 32U);
  EXPECT_THAT(problem(body + field("more", "") + "--xyz--"), HasSubstr("more than 32 parts"));
  const std::string disposition = "Content-Disposition: form-data; name=a\r\nX: ";
  const auto headers_of = [&](size_t n) {
    return part(disposition + std::string(n + 2 - disposition.size(), 'x'), "") + "--xyz--";
  };
  EXPECT_EQ(read_form(headers_of(4096), kType).size(), 1U);
  EXPECT_THAT(problem(headers_of(4097)), HasSubstr("do not end within 4096 bytes"));
  EXPECT_THAT(problem("--xyz\r\n" + std::string(100'000, 'x')), HasSubstr("do not end within 4096 bytes"));
}

}  // namespace
}  // namespace zoo

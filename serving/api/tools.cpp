#include "serving/api/tools.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/error.h"
#include "data/text_files.h"
#include "generation/constraints/json_schema.h"
#include "generation/constraints/regular_expression.h"
#include "io/json_document.h"
#include "serving/api/json_form.h"

namespace zoo {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMostTools = 128, kMostNameBytes = 64;
constexpr std::string_view kOpen = "<tool_call>", kClose = "</tool_call>";
constexpr std::string_view kCalls = "[TOOL_CALLS]", kId = "[CALL_ID]", kArguments = "[ARGS]";
constexpr std::string_view kBlanks = " \t\r\n";

/// The key of a call's arguments.
const char* arguments_key(CallFormat format) {
  return format == CallFormat::object ? "parameters" : "arguments";
}

std::string read_name(RequestFields& function) {
  auto name = function.required_text("name");
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  };
  if (name.empty() || name.size() > kMostNameBytes || !std::ranges::all_of(name, is_plain))
    function.fail("name", fmt::format("must have 1 to {} letters, digits, _, - and .", kMostNameBytes));
  return name;
}

/// What stands beside the type of a tool or of a choice, or in an object of its own.
template <class Read>
void read_function(const Json& value, const std::string& place, ChatApi api, const Read& read) {
  RequestFields fields(value, place);
  if (fields.required_text("type") != "function") fields.fail("type", "must be function");
  if (api == ChatApi::responses) {
    read(fields);
  } else {
    RequestFields function(fields.required("function"), place + ".function");
    read(function);
    function.refuse_others();
  }
  fields.refuse_others();
}

void read_tool(const Json& tool, ChatApi api, ToolOffer& offer) {
  read_function(tool, "tools", api, [&](RequestFields& function) {
    auto name = read_name(function);
    if (std::ranges::find(offer.callable, name) != offer.callable.end())
      function.fail("name", fmt::format("is that of two tools: {}", name));
    Json shown{{"name", name}};
    if (const auto text = function.text("description")) shown["description"] = *text;
    if (const auto* const parameters = function.find("parameters")) {
      if (!parameters->is_object()) function.fail("parameters", "must be a JSON schema");
      shown["parameters"] = *parameters;
    }
    function.flag("strict", false);
    offer.callable.push_back(std::move(name));
    offer.tools.push_back(
        api == ChatApi::completions ? tool : Json{{"type", "function"}, {"function", std::move(shown)}});
  });
}

void read_choice(RequestFields& fields, ChatApi api, ToolOffer& offer) {
  const auto* const choice = fields.find("tool_choice");
  if (!choice) return;
  if (*choice == "none") {
    offer.choice = ToolChoice::none;
  } else if (*choice == "required") {
    offer.choice = ToolChoice::required;
  } else if (choice->is_object()) {
    read_function(*choice, "tool_choice", api, [&](RequestFields& function) {
      const auto name = function.required_text("name");
      if (std::ranges::find(offer.callable, name) == offer.callable.end())
        function.fail("name", "is not one of the tools");
      offer.choice = ToolChoice::required;
      offer.callable = {name};
    });
  } else if (*choice != "auto") {
    fields.fail("tool_choice",
                fmt::format("must be none, auto, required, or {{\"type\": \"function\", {}}}",
                            api == ChatApi::responses ? "\"name\": …" : "\"function\": {\"name\": …}"));
  }
  if (offer.choice == ToolChoice::required && offer.callable.empty())
    fields.fail("tool_choice", "needs tools");
}

/// Calls `visit` with the name and the schema of the arguments of each tool that may be called.
template <class Visit>
void for_each_callable(const ToolOffer& offer, const Visit& visit) {
  for (const auto& tool : offer.tools) {
    const auto& function = tool["function"];
    const auto name = function["name"].get<std::string>();
    if (std::ranges::find(offer.callable, name) == offer.callable.end()) continue;
    const bool has_parameters = function.contains("parameters") && !function["parameters"].is_null();
    visit(name, has_parameters ? function["parameters"] : Json{{"type", "object"}});
  }
}

enum class IfUnsupported { refuse, any_object };

Expression arguments_expression(const Json& schema, IfUnsupported if_unsupported) {
  try {
    return parse_json_schema(json_text(schema));
  } catch (const DataError& error) {
    if (if_unsupported == IfUnsupported::refuse) throw UsageError(fmt::format("tools: {}", error.what()));
    return parse_regular_expression(any_json_object());
  }
}

/// One call, without the mark before it.
Expression call_expression(const ToolOffer& offer, CallFormat format, IfUnsupported if_unsupported) {
  std::vector<Expression> ways;
  for_each_callable(offer, [&](const std::string& name, const Json& schema) {
    auto arguments = arguments_expression(schema, if_unsupported);
    if (format == CallFormat::named) {
      auto id = Expression::sequence({Expression::text(kId), parse_regular_expression("[a-zA-Z0-9]{9}")});
      ways.push_back(Expression::sequence({Expression::text(name), Expression::optional(std::move(id)),
                                           Expression::text(kArguments), std::move(arguments)}));
    } else {
      const auto before = fmt::format(R"({{"name": "{}", "{}": )", name, arguments_key(format));
      ways.push_back(
          Expression::sequence({Expression::text(before), std::move(arguments), Expression::text("}")}));
    }
  });
  return Expression::alternatives(std::move(ways));
}

/// `first`: a call, and behind it as many as there may be, each after `between`.
Expression several(Expression first, std::string_view between, const ToolOffer& offer) {
  if (offer.most == CallCount::one) return first;
  auto next = Expression::sequence({Expression::text(between), first});
  return Expression::sequence(
      {std::move(first), Expression::repeated(std::move(next), 0, Expression::kNoLimit)});
}

/// The calls of an answer, with the mark before them.
Expression texts_of_calls(const ToolOffer& offer, CallFormat format) {
  auto call = call_expression(offer, format, IfUnsupported::any_object);
  const auto line = [] { return Expression::optional(Expression::text("\n")); };
  switch (format) {
    case CallFormat::tags:
      return Expression::sequence(
          {Expression::text(kOpen), line(), std::move(call), line(), Expression::text(kClose)});
    case CallFormat::object:
      break;
    case CallFormat::list:
      return Expression::sequence({Expression::text(kCalls), Expression::text("["),
                                   several(std::move(call), ", ", offer), Expression::text("]")});
    case CallFormat::named:
      return Expression::sequence({Expression::text(kCalls), several(std::move(call), kCalls, offer)});
  }
  return call;
}

/// Tells forms of calls from each other.
std::string name_of_form(const ToolOffer& offer, CallFormat format) {
  return json_text(Json{static_cast<int>(format), static_cast<int>(offer.choice),
                        static_cast<int>(offer.most), offer.callable, offer.tools});
}

/// A schema within another one, at `place`: its references lead to places within itself.
void move_references(Json& schema, const std::string& place) {
  for (auto& [key, value] : schema.items()) {
    if (key == "$ref" && value.is_string() && value.get<std::string>().starts_with('#')) {
      value = "#" + place + value.get<std::string>().substr(1);
    } else if (value.is_structured()) {
      move_references(value, place);
    }
  }
}

}  // namespace

std::optional<CallFormat> call_format(const ChatTemplate& chat_template) {
  // Its name and its argument are texts that no template has. Mistral's template wants an id of nine letters.
  const Json call{{"id", "abcdefghi"},
                  {"type", "function"},
                  {"function", {{"name", "zqxname"}, {"arguments", {{"zqxkey", 1}}}}}};
  const Json user{{"role", "user"}, {"content", "?"}};
  const Conversation conversation{
      {"messages", {user, {{"role", "assistant"}, {"content", ""}, {"tool_calls", Json::array({call})}}}}};
  std::string text;
  try {
    text = chat_template.render(conversation).text;
  } catch (const DataError&) {
    return std::nullopt;  // it refuses calls
  }
  const size_t at = text.find("zqxname");
  if (at == text.npos || text.find("zqxkey") == text.npos) return std::nullopt;
  const auto before = std::string_view(text).substr(0, at), after = std::string_view(text).substr(at);
  const auto ends_in = [&](std::string_view open, std::string_view key) {
    const size_t begin = before.rfind(open);
    if (begin == before.npos) return false;
    const auto between = before.substr(begin + open.size());
    return between.find("\"name\"") != between.npos && between.size() < 64 && after.find(key) != after.npos;
  };
  if (ends_in(kOpen, "\"arguments\"")) return CallFormat::tags;
  if (ends_in(kCalls, "\"arguments\"")) return CallFormat::list;
  constexpr std::string_view name = "zqxname";
  const auto behind = after.substr(name.size());
  if (before.ends_with(kCalls) && (behind.starts_with(kArguments) || behind.starts_with(kId)))
    return CallFormat::named;
  if (ends_in("{", "\"parameters\"")) return CallFormat::object;
  return std::nullopt;
}

ToolOffer read_tools(RequestFields& fields, ChatApi api) {
  ToolOffer offer;
  const auto* const tools = fields.find("tools");
  if (tools && (!tools->is_array() || tools->size() > kMostTools))
    fields.fail("tools", fmt::format("must be a list of at most {} tools", kMostTools));
  if (tools && !tools->empty()) {
    for (const auto& tool : *tools) read_tool(tool, api, offer);
    offer.choice = ToolChoice::automatic;
  }
  read_choice(fields, api, offer);
  if (!fields.flag("parallel_tool_calls", true)) offer.most = CallCount::one;
  return offer;
}

ShownTokens shown_marks(const Tokenizer& tokenizer, CallFormat format) {
  ShownTokens shown;
  const bool is_tags = format == CallFormat::tags;
  if (format == CallFormat::object) return shown;
  const auto marks = is_tags ? std::vector{kOpen, kClose} : std::vector{kCalls, kId, kArguments};
  for (const auto mark : marks) {
    try {
      const auto ids = tokenizer.encode(mark);
      if (ids.size() == 1 && tokenizer.label(ids.front()) == mark && tokenizer.decode(ids).empty())
        shown.push_back({.id = ids.front(), .text = std::string(mark)});
    } catch (const DataError&) {  // it lacks these characters
    }
  }
  return shown;
}

RequiredCall required_call(const ToolOffer& offer, CallFormat format) {
  if (format == CallFormat::named) {
    const auto texts = [offer, format] {
      return several(call_expression(offer, format, IfUnsupported::refuse), kCalls, offer);
    };
    return {
        .beginning = std::string(kCalls),
        .form = PartForm{.then = PartForm::Then::end, .texts = texts, .name = name_of_form(offer, format)}};
  }
  const bool is_list = format == CallFormat::list;
  auto ways = Json::array();
  for_each_callable(offer, [&](const std::string& name, Json parameters) {
    const auto* const key = arguments_key(format);
    move_references(parameters,
                    fmt::format("{}/anyOf/{}/properties/{}", is_list ? "/items" : "", ways.size(), key));
    ways.push_back({{"type", "object"},
                    {"properties", {{"name", {{"const", name}}}, {key, std::move(parameters)}}},
                    {"required", {"name", key}}});
  });
  Json schema{{"anyOf", std::move(ways)}};
  if (is_list) {
    schema = {{"type", "array"}, {"items", std::move(schema)}, {"minItems", 1}};
    if (offer.most == CallCount::one) schema["maxItems"] = 1;
  }
  const char* const beginning = is_list ? "[TOOL_CALLS]" : format == CallFormat::tags ? "<tool_call>\n" : "";
  return {.beginning = beginning, .schema = json_text(schema)};
}

PartForm form_of_calls(const ToolOffer& offer, CallFormat format) {
  PartForm form{
      .mark = std::string(kCalls), .then = PartForm::Then::end, .name = name_of_form(offer, format)};
  if (format == CallFormat::tags) {
    form.mark = kOpen;
    form.then = PartForm::Then::free_text;
  } else if (format == CallFormat::object) {
    form.mark = R"({"name": ")";
    form.begins = PartForm::Begins::at_start;
  }
  form.texts = [offer, format] { return texts_of_calls(offer, format); };
  return form;
}

Json read_arguments(const std::string& text) {
  auto parsed = ordered_json_or_null(text);
  // What a model wrote need not be JSON: the template gets the text.
  return parsed.is_object() ? parsed : Json(text);
}

Json tool_call_json(const std::string& id, const std::string& name, const std::string& arguments) {
  return {{"id", id},
          {"type", "function"},
          {"function", {{"name", name}, {"arguments", read_arguments(arguments)}}}};
}

CallReader::CallReader(CallFormat format, const ToolOffer& offer)
    : format_(format), most_(offer.most), callable_(offer.callable) {
  if (offer.choice != ToolChoice::required) return;
  // The mark of a required call is not part of the answer.
  if (format == CallFormat::tags) format_ = CallFormat::object;
  if (format == CallFormat::named) held_ = kCalls;
}

/// Adds a call; false if it is none of a tool.
bool CallReader::add_call(const std::string& name, const Json& arguments, Found& found) {
  if (std::ranges::find(callable_, name) == callable_.end() || !arguments.is_object()) return false;
  found.calls.push_back({.name = name, .arguments = shown_json(arguments)});
  return true;
}

/// Adds the calls of a JSON text; false if it is none of calls.
bool CallReader::add_calls(std::string_view text, Found& found) {
  auto document = ordered_json_or_null(text);
  if (document.is_object()) document = Json::array({std::move(document)});
  if (!document.is_array() || document.empty()) return false;
  Found added;
  for (const auto& call : document) {
    if (!call.is_object() || !call.contains("name") || !call["name"].is_string()) return false;
    const auto arguments = call.contains("arguments") ? call.find("arguments") : call.find("parameters");
    if (arguments == call.end() || !add_call(call["name"].get<std::string>(), *arguments, added))
      return false;
  }
  std::ranges::move(added.calls, std::back_inserter(found.calls));
  return true;
}

/// The same for name[ARGS]{…}.
bool CallReader::add_named_call(std::string_view text, Found& found) {
  const size_t arguments = text.find(kArguments);
  if (arguments == text.npos) return false;
  const auto name = text.substr(0, std::min(arguments, text.find(kId)));
  return add_call(std::string(name), ordered_json_or_null(text.substr(arguments + kArguments.size())), found);
}

/// Reads the calls that begin held_, as far as they are complete.
void CallReader::add_named_calls(Rest rest, Found& found) {
  while (!held_.empty()) {
    // A mark may also stand in a text of the arguments: the call before a mark must be complete.
    size_t end = kCalls.size();
    bool is_call = false;
    do {
      end = held_.find(kCalls, end);
      if (end == held_.npos && rest == Rest::follows) return;
      const size_t n = std::min(end, held_.size()) - kCalls.size();
      is_call = add_named_call(std::string_view(held_).substr(kCalls.size(), n), found);
      if (end != held_.npos && !is_call) ++end;
    } while (end != held_.npos && !is_call);
    if (!is_call) found.text += held_;
    held_.erase(0, end);
  }
}

void CallReader::read_object(Rest rest, Found& found) {
  const size_t first = held_.find_first_not_of(kBlanks);
  is_text_ = is_text_ || (first != held_.npos && held_[first] != '{');
  if (!is_text_ && rest == Rest::follows) return;
  if (is_text_ || !add_calls(held_, found)) found.text = held_;
  held_.clear();
}

/// Of formats whose calls are the last of an answer, behind a mark.
void CallReader::read_marked(Rest rest, Found& found) {
  if (const size_t mark = is_marked_ ? 0 : held_.find(kCalls); mark != held_.npos) {
    if (!is_marked_) found.text += without_blanks_at_end(std::string_view(held_).substr(0, mark));
    held_.erase(0, mark);
    is_marked_ = true;
  }
  if (is_marked_ && format_ == CallFormat::named) return add_named_calls(rest, found);
  const size_t first = held_.find_first_not_of(kBlanks);
  is_text_ = is_text_ || format_ == CallFormat::named || (first != held_.npos && held_[first] != '[');
  const bool may_be_calls = is_marked_ || !is_text_;
  if (may_be_calls && rest == Rest::follows) return;
  if (may_be_calls) {
    const auto list = std::string_view(held_).substr(is_marked_ ? kCalls.size() : 0);
    if (!add_calls(list, found)) found.text += held_;
    return held_.clear();
  }
  auto sure = std::string_view(held_);
  if (rest == Rest::follows) {
    // The end may be the beginning of a mark, or a blank before one.
    size_t n = std::min(held_.size(), kCalls.size() - 1);
    while (n > 0 && !held_.ends_with(kCalls.substr(0, n))) --n;
    sure.remove_suffix(n);
    sure = without_blanks_at_end(sure);
  }
  found.text += sure;
  held_.erase(0, sure.size());
}

void CallReader::read_tags(Rest rest, Found& found) {
  for (;;) {
    const size_t open = held_.find(kOpen);
    if (open == held_.npos) break;
    const size_t close = held_.find(kClose, open);
    if (close == held_.npos && rest == Rest::follows) break;
    // At the end, the model may have left the closing tag out.
    const size_t from = open + kOpen.size(), end = std::min(close, held_.size());
    const size_t after = std::min(close == held_.npos ? end : end + kClose.size(), held_.size());
    const auto before = std::string_view(held_).substr(0, open);
    const bool is_call = add_calls(std::string_view(held_).substr(from, end - from), found);
    // Blanks between calls and before the first one belong to the format.
    found.text += is_call ? without_blanks_at_end(before) : before;
    if (!is_call) found.text += held_.substr(open, after - open);
    held_.erase(0, after);
  }
  const size_t open = held_.find(kOpen);
  auto sure = std::string_view(held_).substr(0, open);
  if (rest == Rest::follows) {
    // The end may be the beginning of a tag, or a blank before one.
    size_t n = open == held_.npos ? std::min(held_.size(), kOpen.size() - 1) : 0;
    while (n > 0 && !held_.ends_with(kOpen.substr(0, n))) --n;
    sure.remove_suffix(n);
  }
  if (rest == Rest::follows || n_calls_ > 0 || !found.calls.empty()) sure = without_blanks_at_end(sure);
  found.text += sure;
  held_.erase(0, sure.size());
}

CallReader::Found CallReader::read(std::string_view piece, Rest rest) {
  Found found;
  held_ += piece;
  switch (format_) {
    case CallFormat::tags:
      read_tags(rest, found);
      break;
    case CallFormat::object:
      read_object(rest, found);
      break;
    case CallFormat::list:
    case CallFormat::named:
      read_marked(rest, found);
      break;
  }
  if (most_ == CallCount::one && n_calls_ + found.calls.size() > 1) found.calls.resize(1 - n_calls_);
  n_calls_ += found.calls.size();
  return found;
}

}  // namespace zoo

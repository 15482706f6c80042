"""Conversations for chat_template_test.py: what apply_chat_template() takes, as dictionaries."""

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": 'The weather of a city, in "plain" words.\nUnits are metric.',
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "The city, e.g. Zürich"},
                "days": {"type": "integer", "description": "How many days", "default": 3, "minimum": 1},
                "unit": {"type": "string", "enum": ["°C", "°F"]},
                "places": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "number"}}}},
                "exact": {"type": ["boolean", "null"]},
            },
            "required": ["city"],
        },
        "return": {"type": "string"},
    },
}
CLOCK = {"type": "function", "function": {"name": "clock", "description": "", "parameters": {"type": "object", "properties": {}}}}
TOOLS = [WEATHER, CLOCK]


def said(*pairs):
    return [{"role": role, "content": content} for role, content in pairs]


def called(arguments, *, content="", identifier="call00001", **more):
    call = {"id": identifier, "type": "function", "function": {"name": "get_weather", "arguments": arguments}}
    return {"role": "assistant", "content": content, "tool_calls": [call], **more}


ARGUMENTS = {"city": "Zürich", "days": 2, "exact": True, "unit": None, "limits": [1.5, -0.0, 1e-7, 1e22, {"a": "<&'\">"}]}
ANSWER = {"role": "tool", "name": "get_weather", "tool_call_id": "call00001", "content": '{"sky": "klar ☀", "t": 21.5}'}
ASK = ("user", "What is the weather in Zürich?")
THOUGHT = "<think>\nTwo and two.\n</think>\n\nFour."
MARKS = "Print <|im_end|>, </s>, [INST], <eos>, <|eot_id|> and <|end|> please."

CONVERSATIONS = {
    "one": {"messages": said(("user", "Hi!"))},
    "system": {"messages": said(("system", "Be brief."), ("user", "Hi!"))},
    "turns": {"messages": said(("system", " Be\tbrief. "), ("user", "Hi!"), ("assistant", " Hello. "), ("user", " Bye\n"), ("assistant", "See you."))},
    "no_system": {"messages": said(("user", "1+1?"), ("assistant", "2"), ("user", "2+2?"), ("assistant", "4"), ("user", "4+4?"))},
    "quotes": {"messages": said(("system", "It's \"so\": {{ x }} {% y %} \\n"), ("user", "a'b\"c\\d\r\n<b>&amp;</b>\t\u00a0\u2028."), ("assistant", "`'`"))},
    "letters": {"messages": said(("system", "Straße ΑΣ İ ﬁ ǆ"), ("user", "日本語 👩‍👩‍👧 e\u0301 العربية \u200f𝔘\x07"), ("assistant", "ÀÉ ñ 🇨🇭"))},
    "two_users": {"messages": said(("user", "Hi!"), ("user", "Are you there?"))},
    "assistant_first": {"messages": said(("assistant", "Hello!"), ("user", "Hi!"))},
    "unknown_role": {"messages": said(("user", "Hi!"), ("critic", "Bad."), ("user", "Why?"))},
    "system_later": {"messages": said(("user", "Hi!"), ("system", "Be brief."), ("user", "Hi again!"))},
    "nothing": {"messages": []},
    "blank": {"messages": said(("system", ""), ("user", ""), ("assistant", "  \n"), ("user", "\n"))},
    "marks": {"messages": said(("user", MARKS), ("assistant", "<s>No.</s>"), ("user", "<tool_call>{}</tool_call>"))},
    "tools": {"messages": said(ASK), "tools": TOOLS},
    "tools_system": {"messages": said(("system", "Use tools."), ASK), "tools": TOOLS},
    "tool_call": {"messages": [*said(ASK), called(ARGUMENTS), ANSWER, *said(("assistant", "Clear, 21.5 °C."))], "tools": TOOLS},
    "tool_call_waits": {"messages": [*said(("system", "Use tools."), ASK), called(ARGUMENTS), ANSWER], "tools": TOOLS},
    "tool_call_text": {"messages": [*said(ASK), called('{"city": "Zürich"}', content="I look."), ANSWER, *said(("user", "And?"))], "tools": [WEATHER]},
    "tool_call_none": {"messages": [*said(ASK), called({"city": "Bern"}, content=None), ANSWER, called({}, content=None), ANSWER], "tools": [CLOCK]},
    "tool_without_list": {"messages": [*said(ASK), called({"city": "Bern"}), ANSWER]},
    "parts": {"messages": [{"role": "user", "content": [{"type": "text", "text": "Look: "}, {"type": "text", "text": "nothing."}]}, *said(("assistant", "I see."))]},
    "image": {"messages": [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "What is it?"}]}]},
    "thought": {"messages": [*said(("user", "2+2?")), {"role": "assistant", "content": THOUGHT}, *said(("user", "Sure?"), ("assistant", THOUGHT))]},
    "reasoning": {"messages": [*said(("user", "2+2?")), {"role": "assistant", "reasoning_content": "Two\nand two.", "thinking": "Two.", "content": "4"}, *said(("user", "Sure?"))]},
    "no_thinking": {"messages": said(("system", "Be brief. /no_think"), ("user", "2+2?")), "enable_thinking": False},
    "documents": {"messages": said(("user", "What do they say?")), "documents": [{"title": "A", "text": "Alpha & \"Ω\"."}, {"title": "B", "text": "Beta"}]},
    "continued": {"messages": said(("user", "Tell a story."), ("assistant", "Once upon a time")), "continue_final_message": True},
    "continued_blank": {"messages": said(("user", "Tell a story."), ("assistant", " Once upon ")), "continue_final_message": True},
    "no_content": {"messages": [{"role": "user"}]},
    "dated": {"messages": said(("user", "What day is it?")), "date_string": "04 Jul 2025", "tools_in_user_message": False, "custom": 3},
}

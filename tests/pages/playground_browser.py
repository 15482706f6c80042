#!/usr/bin/env python3
"""Uses the page of `zoo serve` in a headless Chromium as a person would, before a server without models
(playground_double.py) whose answers are known.

    playground_browser.py PAGE.html

PAGE.html.policy is the page's Content-Security-Policy. Fails where a view shows something else than the server said, where a
link does not restore a view, where a key does not lead somewhere, where text of a model becomes markup, where the page
logs an error or asks another server, and where something does not fit into a window or on paper. Without a Chromium the
exit code is 77, or 1 if ZOO_REQUIRE_REFERENCES is set.
"""

import base64
import json
import math
import struct
import sys
import tempfile
import zlib
from pathlib import Path
from urllib.parse import parse_qs, urlencode

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from causes_browser import check_bars, check_cells, check_keys, check_pictures, check_texts  # noqa: E402
from chromium import check, check_pages  # noqa: E402
from playground_double import HEADS, LAYERS, MARKUP, WORDS, Double, samples_of  # noqa: E402

VIEW = "[...document.querySelectorAll('.view')].find(view => !view.hidden)"
PIECES = f"[...{VIEW}.querySelectorAll('.piece')]"
PROBLEM = f"[...{VIEW}.querySelectorAll('.problem')].filter(node => !node.hidden).map(node => node.textContent).join()"
SAMPLES = {
    "text": {"model": "gpt", "prompt": "It was\nin the", "max_tokens": 12, "seed": 3},
    "compare": {"model": "gpt", "model2": "gpt-large", "prompt": "It was", "max_tokens": 9, "seed": 1},
    "chat": {"system": "Be kind.", "seed": 4, "messages": json.dumps([["u", "Hello"], ["a", "Hi!\n```\ncode\n```"]])},
    "fill": {"text": "It was a <mask> and <mask> day."},
    "translate": {"text": "Ein Hund im Schnee\nDas Haus ist alt"},
    "classify": {"model": "names", "text": "Anna met Peter"},
    "picture": {"model": "canvases", "least": 0.2},
    "recordings": {"model": "listener"},
    "structure": {"model": "sure-folder", "sequence": "MKTAYIAKQR"},
    "attention": {"model": "de-en", "text": "Ein Hund im Schnee", "target": "a dog in snow", "map": "cross-0-1", "token": 2},
}  # fmt: skip
# What the view of causes shows, in each of its ways.
CAUSES = [
    {"model": "gpt", "text": "It was so late that I", "show": "lens", "position": 2},
    {"model": "de-en", "text": "Ein Hund im Schnee", "target": "a dog in snow", "show": "attribute", "answer": "dog"},
    {"model": "bert", "text": "It was <mask> late", "show": "ablate", "without": "mean"},
    {"model": "gpt-large", "text": "It was so late", "show": "lens", "lens": "trained"},
    {"model": "gpt", "text": "Anna saw Tim and", "corrupt": "Tim saw Anna and", "show": "patch"},
]


def picture(width=28, height=28):
    """A PNG of grey steps."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes((9 * x + 5 * y) % 256 for x in range(width)) for y in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def sound(seconds=0.5, rate=8000, height=0.5):
    """A WAV file of a tone of 400 hertz."""
    samples = [round(32767 * height * math.sin(2 * math.pi * 400 * t / rate)) for t in range(int(seconds * rate))]
    data = struct.pack(f"<{len(samples)}h", *samples)
    form = struct.pack("<HHIIHH", 1, 1, rate, 2 * rate, 2, 16)
    chunks = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(chunks)) + chunks


SAMPLES["recordings"]["recording"] = "data:audio/wav;base64," + base64.b64encode(sound()).decode()
SAMPLES["picture"]["picture"] = "data:image/png;base64," + base64.b64encode(picture(40, 28)).decode()
CAUSES.append({"model": "fashion", "show": "attribute", "picture": SAMPLES["picture"]["picture"]})
EVERY_SAMPLE = [*SAMPLES.items(), *(("causes", values) for values in CAUSES)]


def address_of(view, values=None):
    return f"/#{view}" + (f"?{urlencode(values)}" if values else "")


def open_view(page, server, view, values=None, **window):
    page.open_from(server.address, address_of(view, values), **window)
    page.wait_for(VIEW, f"the view {view}")


def wait_until_done(page, what):
    page.wait_for(f"![...{VIEW}.querySelectorAll('.run button')].some(b => b.textContent === 'Stop' && !b.hidden)", what)


def texts(page, selector, within=VIEW):
    return page.run(f"[...{within}.querySelectorAll({json.dumps(selector)})].map(node => node.textContent)")


def shown_tokens(page):
    """The text of each token, without the signs for the ends of lines."""
    return page.run(f"""{PIECES}.map(node => [...node.childNodes].filter(part => part.className !== 'mark')
        .map(part => part.textContent).join(''))""")


def hash_values(page):
    return {name: values[0] for name, values in parse_qs(page.run("location.hash").partition("?")[2]).items()}


def last(server, path):
    """The body of the last request to a path."""
    return [body for each, body in server.requests if each == path][-1]


def expected_tokens(server, body):
    """What the server answers to this completion: (text, probability)."""
    answer = []
    for event in server.completion(body):
        for choice in event["choices"]:
            answer += zip(choice["logprobs"]["tokens"], choice["logprobs"]["token_logprobs"])
    return [(text, None if log is None else math.exp(log)) for text, log in answer]


# ---- Text -----------------------------------------------------------------------------------------------------------------


def check_text(page, server):
    """A prompt is typed, sent and continued by keys alone. Colours and labels tell the probabilities."""
    open_view(page, server, "text")
    check(
        texts(page, "select:first-of-type option") == ["gpt", "gpt-large", "slow", "chat"],
        "the choice of models is another one",
    )
    page.tab_to("textarea[name=prompt]")
    page.type("It was\nin the")
    page.press("Enter", ctrl=True)
    page.wait_for(f"{PIECES}.length > 20", "the continuation")
    wait_until_done(page, "the continuation")
    body = last(server, "/v1/completions")
    check(body["model"] == "gpt" and body["prompt"] == "It was\nin the" and body["stream"] and body["echo"], f"it asked {body}")
    expected = expected_tokens(server, body)
    check(shown_tokens(page) == [text for text, _ in expected], f"it shows {shown_tokens(page)}, not {expected}")
    labels = page.run(f"{PIECES}.map(node => node.getAttribute('aria-label'))")
    for label, (text, probability) in zip(labels, expected):
        told = label.rpartition(", ")[2]
        if probability is None:
            check("not known" in told, f"{text!r} is told as {label}")
        else:
            value = float(told.removesuffix(" %").removeprefix("< ")) / 100
            check(math.isclose(value, probability, rel_tol=0.05), f"{text!r} of {probability} is told as {label}")
    check_colours(page, expected)
    given = page.run(f"{PIECES}.map(node => node.classList.contains('given'))")
    check(given == [i < 5 for i in range(len(expected))], f"given: {given}")
    heard = "document.querySelector('[aria-live=polite].heard')"
    page.wait_for(f"{heard}.textContent !== ''", "the announcement")
    said = page.run(f"{heard}.textContent")
    check(said and said in "".join(text for text, _ in expected), f"the announcement is {said!r}")
    summary = texts(page, ".summary")[0]
    check("60 tokens" in summary and "perplexity" in summary, f"the summary is {summary}")
    logs = [math.log(p) for _, p in expected[5:]]
    told = float(summary.rpartition(" ")[2])
    check(math.isclose(told, math.exp(-sum(logs) / len(logs)), rel_tol=0.006), f"the summary is {summary}")
    check_link(page, server, "text", shown_tokens)  # also with the seed that the page has drawn


def check_colours(page, expected):
    """The less likely a token, the stronger its colour, which is darker on a bright page."""
    brightness = page.run(f"""{PIECES}.map(node => {{
        const [r, g, b] = getComputedStyle(node).backgroundColor.match(/[0-9.]+/g).map(Number);
        return 0.3 * r + 0.6 * g + 0.1 * b;
    }})""")
    known = sorted((probability, light) for (_, probability), light in zip(expected, brightness) if probability is not None)
    check(all(a[1] <= b[1] + 1e-6 for a, b in zip(known, known[1:])), f"probabilities and brightness: {known}")
    check(known[0][1] < known[-1][1] - 60, f"the colours are too much alike: {known[0]}, {known[-1]}")


def check_alternatives(page, server):
    """Alternatives appear under the pointer and at the focus. One is chosen by a click and one by keys, and the model goes on
    from there; the link keeps it."""
    open_view(page, server, "text", SAMPLES["text"])
    wait_until_done(page, "the continuation")
    before, body = shown_tokens(page), last(server, "/v1/completions")
    box = f"{VIEW}.querySelector('.alternatives')"
    x, y = page.run(
        f"(({{left, top, width, height}}) => [left + width / 2, top + height / 2])({PIECES}[7].getClientRects()[0])"
    )
    page.move_to(x, y)
    page.wait_for(f"!{box}.hidden", "alternatives under the pointer")
    choices = texts(page, ".alternatives li")
    place = [
        (top, token)
        for event in server.completion(body)
        for choice in event["choices"]
        for top, token in zip(choice["logprobs"]["top"], choice["logprobs"]["token_ids"])
    ][7]
    expected = [(each["token"].replace("\n", "⏎"), math.exp(each["logprob"])) for each in place[0]]
    check(
        len(choices) == 8
        and all(
            text.startswith(name) and (p < 0.005 or f"{p:.2f}" in text or p > 0.99)
            for text, (name, p) in zip(choices, expected)
        ),
        f"the alternatives are {choices}, not {expected}",
    )
    right = [each["token"].replace("\n", "⏎") for each in place[0] if each["id"] == place[1]]
    check(
        [text.rstrip("0123456789.< ") for text in texts(page, ".alternatives .right")] == right,
        "the token that stands there is not marked",
    )
    ids = page.run(f"[...{box}.querySelectorAll('button')].map(b => b.getAttribute('aria-label'))")
    check(all("go on from here" in label for label in ids), f"the alternatives are {ids}")
    check(
        page.run(f"(({{left, right}}) => left >= 0 && right <= innerWidth)({box}.getBoundingClientRect())"),
        "they are out of sight",
    )
    index = next(i for i, text in enumerate(choices) if not text.startswith(("<", before[7].replace("\n", "⏎"))))
    page.run(f"{box}.querySelectorAll('button')[{index}].click()")
    wait_until_done(page, "the continuation of an alternative")
    again = last(server, "/v1/completions")
    check(isinstance(again["prompt"], list) and len(again["prompt"]) == 8, f"it goes on from {again['prompt']}")
    after = shown_tokens(page)
    check(after[:7] == before[:7] and after[7] != before[7], f"{before} became {after}")
    check(again["seed"] == body["seed"] == 3, "the seed has changed")
    # By keys: from the first token to the third, into its alternatives, down to the second one.
    page.run("document.activeElement.blur()")
    page.run(f"{VIEW}.querySelector('.run button').focus()")
    page.tab_to(".piece")
    page.press("Home")
    for key in ("ArrowRight", "ArrowRight", "Enter"):
        page.press(key)
    check(page.run("document.activeElement.closest('.alternatives') !== null"), "Enter does not lead to the alternatives")
    page.press("Escape")
    check(page.run(f"document.activeElement === {PIECES}[2]"), "Escape does not lead back to the token")
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.press(key)
    wait_until_done(page, "the continuation of an alternative that keys chose")
    check(page.run(f"document.activeElement === {PIECES}[2]"), "the focus does not follow the chosen token")
    ids = last(server, "/v1/completions")["prompt"]
    check(len(ids) == 3 and ids[:2] == again["prompt"][:2], f"keys went on from {ids}")
    check(hash_values(page)["ids"] == ".".join(map(str, ids)), f"the address is {page.run('location.hash')}")
    check_link(page, server, "text", shown_tokens)


def check_again(page, server):
    """“Write more” goes on from the end. The button writes another text if nothing has changed, from the prompt as it stands."""
    open_view(page, server, "text", SAMPLES["text"])
    wait_until_done(page, "the continuation")
    before = shown_tokens(page)
    page.run(f"[...{VIEW}.querySelectorAll('button')].find(button => button.textContent === 'Write more').click()")
    page.wait_for(f"{PIECES}.length === {len(before) + 12}", "more")
    wait_until_done(page, "more")
    check(shown_tokens(page)[: len(before)] == before, "what was written before has changed")
    page.run(f"{VIEW}.querySelector('form').requestSubmit()")
    page.wait_for(f"{PIECES}.length === {len(before)}", "another text")
    wait_until_done(page, "another text")
    body = last(server, "/v1/completions")
    check(body["prompt"] == SAMPLES["text"]["prompt"] and body["seed"] != 3, f"it asked {body}")
    check("ids" not in hash_values(page), "the address still has the tokens of the last text")


def check_settings(page, server):
    open_view(
        page, server, "text", {"prompt": "It was", "seed": 5, "temperature": 0, "max_tokens": 3, "top_k": 7, "stop": "\\n"}
    )
    wait_until_done(page, "the continuation")
    body = last(server, "/v1/completions")
    wanted = {"seed": 5, "temperature": 0, "max_tokens": 3, "top_k": 7, "stop": "\n"}
    check({name: body.get(name) for name in wanted} == wanted and "top_p" not in body, f"it asked {body}")
    page.run(f"[...{VIEW}.querySelectorAll('button')].find(button => button.textContent === 'another').click()")
    page.run(f"{VIEW}.querySelector('[name=temperature]').value = '5'")
    n = len(server.requests)
    page.run(f"{VIEW}.querySelector('form').requestSubmit()")
    page.settle()
    check(len(server.requests) == n, "a temperature of 5 was sent")
    check(page.run("document.activeElement.name") == "temperature", "the wrong setting is not shown")
    page.run(f"{VIEW}.querySelector('[name=temperature]').value = ''")
    page.run(f"{VIEW}.querySelector('form').requestSubmit()")
    page.wait_for(f"!{VIEW}.querySelector('[aria-busy]')", "another seed")
    wait_until_done(page, "another seed")
    body = last(server, "/v1/completions")
    check(len(server.requests) == n + 1 and body["seed"] != 5 and "temperature" not in body, f"it asked {body}")
    open_view(page, server, "text", {"prompt": "It was a cold day", "max_tokens": 0})
    wait_until_done(page, "the probabilities of a text")
    check("".join(shown_tokens(page)) == "It was a cold day", f"it shows {shown_tokens(page)}")


def check_stop(page, server):
    """Stop and Escape end a stream, and the server notices."""
    for stop in ("button", "Escape"):
        server.cancelled.clear()
        open_view(page, server, "text", {"model": "slow", "prompt": "It was", "max_tokens": 600})
        page.wait_for(f"{PIECES}.length >= 4", "the first tokens")
        if stop == "button":
            page.run(f"[...{VIEW}.querySelectorAll('button')].find(button => button.textContent === 'Stop').click()")
        else:
            page.press("Escape")
        page.wait_for(f"{VIEW}.querySelector('.state').textContent === 'Stopped.'", f"the end by {stop}")
        check(server.cancelled.wait(10), f"the server writes on after {stop}")
        check(page.run(PROBLEM) == "" and "not finished" in texts(page, ".summary")[0], f"{stop} looks like a failure")


def check_errors(page, server):
    """An error is one line where it happened. The page works on after it."""
    for prompt, message in (
        ("fail: no & <b>way</b>", "the text is refused: no & <b>way</b>"),
        ("break: off", "The server ended the answer in its middle."),
        ("error: it", "the model is too hot"),
    ):
        open_view(page, server, "text", {"prompt": prompt})
        page.wait_for(PROBLEM, "an error")
        shown = page.run(PROBLEM)
        check(shown.replace("  ", " ") == message, f"the error is {shown!r}")
        check(page.run(f"{VIEW}.querySelector('.problem').getAttribute('role')") == "alert", "the error is not announced")
    check(all("status of 400" in problem for problem in page.problems), f"{page.problems}")
    page.problems.clear()
    page.run(f"{VIEW}.querySelector('textarea').value = 'It was'")
    page.run(f"{VIEW}.querySelector('form').requestSubmit()")
    page.wait_for(f"{PIECES}.length === 62", "the continuation after an error")
    check(page.run(PROBLEM) == "", "the error stays")


def check_slices(page, server):
    """Where the models differ on the prompt; what the first one says is the second one's baseline."""
    asked = [body for path, body in server.requests if path == "/slices"]
    check([(body["model"], "baseline" in body) for body in asked] == [("gpt", False), ("gpt-large", True)], f"it asked {asked}")
    rows = [[text.strip() for text in row] for row in
            page.run(f"[...{VIEW}.querySelectorAll('.slices tr')].map(row => [...row.cells].map(cell => cell.textContent))")]
    check(rows == [
        ["slice", "share of the bytes", "gpt", "gpt-large", "against the baseline"],
        ["Seen before or new"],
        ["new words", "25.0 %", "2.000", "2.000", "better -0.500, p = 0.010"],
        ["Kind of character"],
        ["digits", "12.5 %", "2.000", "2.000", "–"],
    ], f"the slices are {rows}")


def check_compare(page, server):
    open_view(page, server, "compare", SAMPLES["compare"])
    wait_until_done(page, "the comparison")
    bodies = [body for path, body in server.requests if path == "/v1/completions"][-2:]
    check(sorted(body["model"] for body in bodies) == ["gpt", "gpt-large"], f"it asked {bodies}")
    check(texts(page, ".result h2") == ["gpt", "gpt-large", "Where they differ"], "the sides have no names")
    check_slices(page, server)
    tokens = shown_tokens(page)
    check(len(tokens) == 22 and tokens[:2] == tokens[11:13], f"it shows {tokens}")
    page.run(f"{PIECES}[13].click()")
    page.run(f"[...{VIEW}.querySelectorAll('.alternatives')][1].querySelectorAll('button')[3].click()")
    wait_until_done(page, "one side that goes on")
    body = last(server, "/v1/completions")
    check(body["model"] == "gpt-large" and len(body["prompt"]) == 3, f"it asked {body}")
    check(shown_tokens(page)[:11] == tokens[:11], "the other side has changed")
    check(
        set(hash_values(page)) >= {"model", "model2", "prompt", "seed", "ids2"}, f"the address is {page.run('location.hash')}"
    )
    check_link(page, server, "compare", shown_tokens)


# ---- The other views ------------------------------------------------------------------------------------------------------


def check_chat(page, server):
    """A conversation by keys alone: a system prompt, a message, the answer, another one."""
    open_view(page, server, "chat")
    page.tab_to("textarea[name=system]")
    page.type("Be brief.")
    page.tab_to("textarea[name=message]")
    page.type("Hello <b>there</b>")
    page.press("Enter")
    page.wait_for(f"{VIEW}.querySelectorAll('.message').length === 2", "the answer")
    wait_until_done(page, "the answer")
    said = texts(page, ".said")
    check(said[0] == "Hello <b>there</b>", f"the message is {said[0]!r}")
    check(MARKUP in said[1] and "system: Be brief." in said[1] and "```" not in said[1], f"the answer is {said[1]!r}")
    check(texts(page, ".said pre")[0] in [f"code {i}\n    `{MARKUP}`" for i in (0, 1)], f"the code is {texts(page, '.said pre')}")
    check(texts(page, ".said p code") == [f"a {MARKUP}", "b`c"], f"code in the text is {texts(page, '.said p code')}")
    body = last(server, "/v1/chat/completions")
    check(
        body["messages"] == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello <b>there</b>"}],
        f"it asked {body}",
    )
    check("top_k" not in body and "min_p" not in body, f"a chat has only OpenAI's settings: {body}")
    check(page.run("document.activeElement.name") == "message", "the focus left the message")
    check("41 tokens" in texts(page, ".state")[0], f"the state is {texts(page, '.state')}")
    page.type("And now?")
    page.press("Enter")
    page.wait_for(f"{VIEW}.querySelectorAll('.message').length === 4", "the second answer")
    wait_until_done(page, "the second answer")
    check(
        [m["role"] for m in last(server, "/v1/chat/completions")["messages"]] == ["system", "user", "assistant", "user"],
        "the conversation was not sent",
    )
    page.run(f"[...{VIEW}.querySelectorAll('button')].find(button => button.textContent === 'Answer again').click()")
    wait_until_done(page, "another answer")
    check(len(texts(page, ".message")) == 4, "another answer is not in the place of the last one")
    check_link(page, server, "chat", lambda page: texts(page, ".said"))
    page.run(f"{VIEW}.querySelector('[name=message]').value = 'slow: tell me'")
    page.run(f"document.getElementById({VIEW}.querySelector('form').id).requestSubmit()")
    page.wait_for(f"{VIEW}.querySelector('.message:last-child .said').textContent.length > 9", "the beginning of an answer")
    page.press("Escape")
    page.wait_for(f"{VIEW}.querySelector('.state').textContent === 'Stopped.'", "the end by Escape")
    check(len(texts(page, ".said")[-1]) < 60, "the answer went on")
    page.run(f"[...{VIEW}.querySelectorAll('button')].find(button => button.textContent === 'New chat').click()")
    check(texts(page, ".message") == [] and "messages" not in hash_values(page), "the old chat is still there")


def check_fill(page, server):
    open_view(page, server, "fill")
    page.tab_to("textarea[name=text]")
    page.type("It was a ")
    page.tab_to("button.small")
    page.press("Enter")
    page.type(" day.")
    page.press("Enter", ctrl=True)
    page.wait_for(f"{VIEW}.querySelector('.likeliest')", "candidates")
    check(
        last(server, "/fill") == {"model": "bert", "text": "It was a <mask> day.", "top": 5},
        f"it asked {last(server, '/fill')}",
    )
    names = [text.rstrip("0123456789.") for text in texts(page, ".likeliest li")]
    check(names == ["cold", "long", MARKUP, "sunny", "dark"], f"the candidates are {names}")
    check(texts(page, ".whole") == ["It was a cold day."], f"the filled text is {texts(page, '.whole')}")
    check_link(page, server, "fill", lambda page: texts(page, ".likeliest li"))
    page.tab_to(".likeliest button")
    page.press("Enter")
    check(page.run(f"{VIEW}.querySelector('[name=text]').value") == "It was a cold day.", "the candidate is not in the text")
    open_view(page, server, "fill", SAMPLES["fill"])
    page.wait_for(f"{VIEW}.querySelectorAll('.likeliest').length === 2", "candidates of two masks")


def check_translate(page, server):
    open_view(page, server, "translate", SAMPLES["translate"])
    page.wait_for(f"{VIEW}.querySelectorAll('.lines svg').length === 2", "translations")
    body = last(server, "/translate")
    check(
        body["texts"] == ["Ein Hund im Schnee", "Das Haus ist alt"] and body["beam"] == 4 and body["alignment"],
        f"it asked {body}",
    )
    check(texts(page, ".answer") == ["EIN HUND IM SCHNEE", "DAS HAUS IST ALT"], f"it shows {texts(page, '.answer')}")
    why = page.run(f"(({{textContent, title}}) => [textContent, title])({VIEW}.querySelector('abbr'))")
    check(
        why[0] == "the best aligned of 2" and "layer 0: 0.300, layer 1: 0.125" in why[1] and any("of layer 1, the" in text for text in texts(page, ".result p")),
        f"the layer is explained by {why}",
    )
    sides = page.run(
        f"[...{VIEW}.querySelector('.lines').querySelectorAll('.side')].map(side => [...side.children].map(end => end.textContent))"
    )
    check(
        sides == [["␣<s>"[1:], "EIN", "HUND", "IM", "SCHNEE"], ["Ein", "Hund", "im", "Schnee", "</s>"]],
        f"the sides are {sides}",
    )
    page.tab_to(".lines .end")
    page.press("ArrowDown")
    readout = texts(page, ".readout")[0]
    check(readout.startswith("EIN → Hund 0.80"), f"the alignment is told as {readout}")
    page.run(f"{VIEW}.querySelector('[name=show]').value = 'map'")
    page.run(f"{VIEW}.querySelector('[name=show]').dispatchEvent(new Event('change'))")
    page.settle()
    check(
        page.run(
            f"{VIEW}.querySelector('.plot canvas').checkVisibility() && !{VIEW}.querySelector('.lines').checkVisibility()"
        ),
        "the alignment is not shown as a map",
    )
    page.run(f"{VIEW}.querySelector('details').open = true")
    numbers = page.run(
        f"[...{VIEW}.querySelector('table').tBodies[0].rows].map(row => [...row.querySelectorAll('td')].map(td => td.textContent))"
    )
    check(numbers[1][1] == "0.800" and numbers[1][0] == "0.050" and len(numbers) == 5, f"the numbers are {numbers}")
    check_link(
        page,
        server,
        "translate",
        lambda page: [*texts(page, ".answer"), page.run(f"{VIEW}.querySelector('[name=show]').value")],
    )


def check_classify(page, server):
    open_view(page, server, "classify")
    page.tab_to("textarea[name=text]")
    page.type("a moving film")
    page.press("Enter", ctrl=True)
    page.wait_for(f"{VIEW}.querySelector('.bar-row')", "labels")
    check(texts(page, ".bar-row") == ["good0.70", "bad0.30"], f"the labels are {texts(page, '.bar-row')}")
    page.tab_to("textarea[name=second]")
    page.type("a long film")
    page.press("Enter", ctrl=True)
    page.wait_for(f"{VIEW}.querySelector('.bar-row').textContent.startsWith('same')", "labels of a pair")
    check(last(server, "/predict")["pairs"] == [["a moving film", "a long film"]], f"it asked {last(server, '/predict')}")
    open_view(page, server, "classify", SAMPLES["classify"])
    page.wait_for(f"{VIEW}.querySelector('.word')", "labels of words")
    check(texts(page, ".word:not(.none)") == ["AnnaPER", "PeterPER"], f"the words are {texts(page, '.word')}")
    check_link(page, server, "classify", lambda page: texts(page, ".word"))


def check_picture(page, server):
    open_view(page, server, "picture")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "picture.png"
        file.write_bytes(picture())
        page.choose_file("input[type=file]", file)
        page.wait_for(f"{VIEW}.querySelector('.bar-row') && {VIEW}.querySelector('[name=from]').checkVisibility()", "classes")
    check(texts(page, ".bar-row") == ["Bag0.80", "Coat0.20"], f"the classes are {texts(page, '.bar-row')}")
    check(last(server, "/predict")["images"][0].startswith("data:image/png;base64,"), "the picture was not sent")
    check(last(server, "/attention")["model"] == "fashion", "it was not asked where it looked")
    check(
        page.run(f"{VIEW}.querySelector('[name=from]').selectedOptions[0].text") == "class",
        "the class token does not come first",
    )
    stage = f"{VIEW}.querySelector('.stage:not(.plain)')"
    page.run(f"{stage}.focus()")
    page.press("ArrowRight")
    page.press("ArrowRight")
    readout = texts(page, ".readout")[0]
    check(readout.startswith("row 0 column 1 → "), f"two steps lead to {readout}")
    # The numbers of the server: the mean over the heads of the last layer, without the class token.
    maps = server.attention(last(server, "/attention"))["maps"][0]["layers"][LAYERS - 1]
    mean = [sum(head[2][s] for head in maps) / HEADS for s in range(1, 17)]
    check(f"{100 * max(mean):.1f} %" in readout, f"the largest weight of {mean} is told as {readout}")
    check_link(page, server, "picture", lambda page: [*texts(page, ".bar-row"), *texts(page, ".readout")])
    check_dropped_pictures(page, server)
    open_view(page, server, "picture", SAMPLES["picture"])
    page.wait_for(
        f"{VIEW}.querySelectorAll('.box').length === 4 && {VIEW}.querySelector('[name=from]').checkVisibility()", "objects"
    )
    box, image = page.run(f"""[{VIEW}.querySelector('.box'), {VIEW}.querySelector('img')].map(node => {{
        const {{x, y, width, height}} = node.getBoundingClientRect();
        return [x, y, width, height];
    }})""")
    wanted = [image[0] + image[2] / 4, image[1] + image[3] / 4, image[2] / 2, image[3] / 2]
    check(all(abs(a - b) < 1.5 for a, b in zip(box, wanted)), f"the box is at {box}, not {wanted}")
    check(
        page.run(f"{VIEW}.querySelector('[name=from]').selectedOptions[0].text").startswith("query 1"),
        "the object does not look",
    )
    check_labels_of_boxes(page)
    page.run(f"{VIEW}.querySelector('[name=least]').value = '0.5'")
    page.run(f"{VIEW}.querySelector('[name=least]').dispatchEvent(new Event('input'))")
    check(texts(page, ".label") == ["Sneaker 0.93"], f"the objects are {texts(page, '.label')}")


def check_labels_of_boxes(page):
    """No label covers another one, all are on the picture, and the pointer or the focus on a box or on its line marks both."""
    stage, *labels = page.run(f"""[{VIEW}.querySelector('.stage.plain'), ...{VIEW}.querySelectorAll('.label')].map(node => {{
        const {{left, top, right, bottom}} = node.getBoundingClientRect();
        return [left, top, right, bottom];
    }})""")
    for i, (left, top, right, bottom) in enumerate(labels):
        inside = left >= stage[0] - 1 and top >= stage[1] - 1 and right <= stage[2] + 1 and bottom <= stage[3] + 1
        check(inside, f"label {i} at {labels[i]} is not on the picture at {stage}")
        for other in labels[:i]:
            apart = left >= other[2] - 1 or right <= other[0] + 1 or top >= other[3] - 1 or bottom <= other[1] + 1
            check(apart, f"label {i} at {labels[i]} covers the one at {other}")
    marked = f"[...{VIEW}.querySelectorAll('.on')].map(node => node.getAttribute('aria-label') ?? node.textContent)"
    both = ["Bag 0.31", "Bag 0.31", "Bag0.31"]
    for selector in (".box", ".label", ".bar-row"):
        x, y = page.run(f"""(({{left, top}}) => [left + 4, top + 4])
            ({VIEW}.querySelectorAll('{selector}')[1].getBoundingClientRect())""")
        page.move_to(x, y)
        check(page.run(marked) == both, f"the pointer on {selector} marks {page.run(marked)}")
        page.move_to(1, 1)
        check(page.run(marked) == [], f"after the pointer {page.run(marked)} is marked")
        if selector == ".label":
            continue  # not for keys
        page.tab_to(selector)
        page.press("Tab")
        check(page.run(marked) == both, f"the focus on {selector} marks {page.run(marked)}")
        page.run("document.activeElement.blur()")


def check_dropped_pictures(page, server):
    """A picture that is dropped or pasted is looked at like one that was chosen."""
    file = f"new File([Uint8Array.from({list(picture(20, 20))})], 'a.png', {{type: 'image/png'}})"
    for event in (
        "{FORM}.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}))",
        "dispatchEvent(new ClipboardEvent('paste', {clipboardData: data}))",
    ):
        open_view(page, server, "picture")
        action = event.replace("{FORM}", f"{VIEW}.querySelector('form')")
        page.run(f"{{ const data = new DataTransfer(); data.items.add({file}); {action}; }}")
        page.wait_for(f"{VIEW}.querySelector('.bar-row')", f"the classes after {event}")
        check(page.run(f"{VIEW}.querySelector('img').naturalWidth") == 20, "another picture is shown")


def check_recordings(page, server):
    """A recording is chosen, dropped, or comes from the microphone; its wave and what the model says of it are shown."""
    open_view(page, server, "recordings")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "tone.wav"
        file.write_bytes(sound())
        page.choose_file("input[name=recording]", file)
        page.wait_for(f"{VIEW}.querySelector('.transcript')", "the transcript")
        check(texts(page, ".transcript") == [f"0.50 seconds of {MARKUP}"], f"the transcript is {texts(page, '.transcript')}")
        asked = last(server, "/v1/audio/transcriptions")
        check(asked == {"model": "listener", "file": sound()}, f"it asked {str(asked)[:200]}")
        check("tone.wav · 0.50 s" in texts(page, ".result p.quiet"), f"the recording is told as {texts(page, '.result p')}")
        label = page.run(f"{VIEW}.querySelector('.wave').getAttribute('aria-label')")
        check(label.startswith("Waveform, the loudest at "), f"the wave is told as {label}")
        blue = page.run(f"""(canvas => [...canvas.getContext('2d').getImageData(0, 36, canvas.width, 1).data]
            .filter((_, i) => i % 4 === 2 && i > 0).filter(value => value > 200).length / canvas.width)
            ({VIEW}.querySelector('.wave'))""")
        check(blue > 0.9, f"the wave covers {blue} of its middle")
        page.wait_for(f"{VIEW}.querySelector('audio').duration === 0.5", "the sound to play")
        check_link(page, server, "recordings", lambda page: texts(page, ".transcript"))
        check_bad_recordings(page, server, Path(folder))
    check_dropped_recordings(page, server)
    open_view(page, server, "recordings")
    page.run(f"{VIEW}.querySelector('.example').click()")
    page.wait_for(f"{VIEW}.querySelector('.transcript')", "the transcript of an example")
    rate, samples = samples_of(last(server, "/v1/audio/transcriptions")["file"])
    check((rate, len(samples)) == (8000, 9600), f"an example has {len(samples)} samples, {rate} a second")
    check(16300 < max(samples) < 16400 and -16400 < min(samples) < -16300, f"an example is up to {max(samples)} loud")
    check_microphone(page, server)


def check_structure(page, server):
    """A sequence is folded; its structure, letters and distances are shown, and the model's confidence if it has one."""
    open_view(page, server, "structure", {"model": "folder"})
    page.run(f"{VIEW}.querySelector('[name=sequence]').value = 'MKTAYIAKQR'")
    page.run(f"{VIEW}.querySelector('form').requestSubmit()")
    page.wait_for(f"{VIEW}.querySelector('.structure-stage canvas')", "the structure")
    check(last(server, "/fold") == {"model": "folder", "sequence": "MKTAYIAKQR"}, f"it asked {last(server, '/fold')}")
    check("".join(texts(page, ".letter")) == "MKTAYIAKQR", f"the letters are {texts(page, '.letter')}")
    figures = texts(page, ".figures b")
    check(figures == ["10"], f"a model that does not know its errors shows {figures}")
    check("does not say how sure" in page.run(f"{VIEW}.innerText"), "it is not said that the model is not sure")
    drawn = page.run(f"""(from => {{
        const copy = document.createElement('canvas');
        Object.assign(copy, {{width: from.width, height: from.height}});
        const pen = copy.getContext('2d');
        pen.drawImage(from, 0, 0);
        return [...pen.getImageData(0, 0, copy.width, copy.height).data].filter((value, i) => i % 4 === 3 && value > 0).length;
    }})({VIEW}.querySelector('.structure-stage canvas'))""")
    check(drawn > 300, f"the structure has {drawn} pixels")
    open_view(page, server, "structure", SAMPLES["structure"])
    page.wait_for(f"{VIEW}.querySelector('.structure-stage canvas')", "the structure of a link")
    check(texts(page, ".figures b") == ["10", "55.0", "0.500"], f"the figures are {texts(page, '.figures b')}")
    check_link(page, server, "structure", lambda page: texts(page, ".letter"))
    open_view(page, server, "structure", {"model": "folder", "sequence": "A1"})
    page.wait_for(f"{PROBLEM} !== ''", "what is wrong with a sequence")
    check("is no letter" in page.run(PROBLEM), f"the problem is {page.run(PROBLEM)}")
    check(all("status of 400" in problem for problem in page.problems), f"{page.problems}")
    page.problems.clear()


def check_bad_recordings(page, server, folder):
    """Each gets one line, and the next one is heard."""
    open_view(page, server, "recordings")
    page.tab_to("button.main")
    page.press("Enter")
    check(page.run(PROBLEM) == "Choose a recording first, or record one.", f"without a recording: {page.run(PROBLEM)!r}")
    for name, content in (("none.wav", b"no recording at all"), ("empty.wav", b""), ("cut.wav", sound()[:6])):
        (folder / name).write_bytes(content)
        page.choose_file("input[name=recording]", folder / name)
        page.wait_for(f"{PROBLEM}.includes('choose a WAV or FLAC file')", f"the line about {name}")
        check(not page.run(f"{VIEW}.querySelector('.transcript')?.checkVisibility()"), f"{name} has a transcript")
    (folder / "long.wav").write_bytes(sound(5.5))
    page.choose_file("input[name=recording]", folder / "long.wav")
    page.wait_for(f"{PROBLEM}.includes('5.5 s long, and listener reads at most 5 s')", "the line about a long recording")
    (folder / "good.wav").write_bytes(sound(0.25, height=0))
    page.choose_file("input[name=recording]", folder / "good.wav")
    page.wait_for(f"{VIEW}.querySelector('.transcript')?.textContent === '0.25 seconds of nothing'", "the next recording")
    check(page.run(PROBLEM) == "", f"it still says {page.run(PROBLEM)}")
    check(page.run(f"{VIEW}.querySelector('.wave').getAttribute('aria-label')") == "Waveform: silence", "silence is not told")


def check_dropped_recordings(page, server):
    """Labels of a recording that is dropped."""
    open_view(page, server, "recordings", {"model": "loudness"})
    page.run(f"""{{ const data = new DataTransfer();
        data.items.add(new File([Uint8Array.from({list(sound(0.1))})], 'a.wav', {{type: 'audio/wav'}}));
        {VIEW}.querySelector('form').dispatchEvent(
            new DragEvent('drop', {{dataTransfer: data, bubbles: true, cancelable: true}})); }}""")
    page.wait_for(f"{VIEW}.querySelector('.bar-row')", "the labels")
    check(texts(page, ".bar-row") == ["loud0.50", "quiet0.50"], f"the labels are {texts(page, '.bar-row')}")
    sent = last(server, "/predict")["recordings"]
    check(sent == ["data:audio/wav;base64," + base64.b64encode(sound(0.1)).decode()], "another recording was sent")


def check_microphone(page, server):
    """By keys alone: a recording begins, ends, is turned into WAV and heard; Escape throws one away."""
    open_view(page, server, "recordings")
    button = f"[...{VIEW}.querySelectorAll('.buttons button')][0]"
    page.tab_to(".field + .drop + .buttons button")
    page.press("Enter")
    page.wait_for(f"{button}.textContent === 'End the recording'", "the microphone")
    page.wait_for(f"{VIEW}.querySelector('.state').textContent.startsWith('Recording: ')", "the seconds")
    page.press("Enter")
    page.wait_for(f"{VIEW}.querySelector('.transcript')", "the transcript of the microphone")
    rate, _ = samples_of(last(server, "/v1/audio/transcriptions")["file"])
    check(rate == 16000 and page.run(f"{button}.textContent") == "Record", f"a WAV of {rate} samples a second was sent")
    check(any("Recorded here" in text for text in texts(page, ".result p")), "it does not say where the recording is from")
    n, kept = len(server.requests), page.run(f"{VIEW}.querySelector('audio').src")
    page.press("Enter")
    page.wait_for(f"{button}.textContent === 'End the recording'", "the microphone again")
    page.press("Escape")
    page.wait_for(f"{button}.textContent === 'Record'", "the end of a recording")
    wait_until_done(page, "the end of a recording")
    check(len(server.requests) == n, "a recording was sent that was thrown away")
    check(page.run(f"{VIEW}.querySelector('audio').src") == kept, "a recording that was thrown away is shown")


def check_attention(page, server):
    open_view(page, server, "attention", {"model": "gpt", "text": "The old dog sleeps here"})
    page.wait_for(f"{VIEW}.querySelectorAll('.heads button').length", "maps")
    check(
        page.run(f"{VIEW}.querySelectorAll('.heads button').length") == LAYERS * (HEADS + 1), "not one small map for each head"
    )
    check(not page.run(f"{VIEW}.querySelector('[name=target]').checkVisibility()"), "a decoder is asked for an answer")
    check(texts(page, ".place[role=radio]") == ["The", "old", "dog", "sleeps", "here"], "the tokens differ")
    page.tab_to(".place.chosen")
    page.press("ArrowLeft")
    page.press("ArrowLeft")
    weights = server.attention({"model": "gpt", "text": "The old dog sleeps here"})["maps"][0]["layers"]
    page.tab_to(".heads button[aria-pressed=true]")  # around the page, because it is before the tokens
    page.press("ArrowLeft")
    page.press("ArrowUp")
    values = hash_values(page)
    check(values["map"] == "decoder-0-3" and values["token"] == "2", f"the address is {values}")
    titles = page.run(f"[...{VIEW}.querySelectorAll('.place[role=radio]')].map(node => node.title)")
    check(titles == [f"{weight:.2f}" for weight in weights[0][3][2][:3]] + ["", ""], f"the weights are told as {titles}")
    page.run(f"[...{VIEW}.querySelectorAll('details')].at(-1).open = true")
    page.settle()
    cells = page.run(f"[...{VIEW}.querySelectorAll('table')].at(-1).tBodies[0].rows[2].innerText.split('\\t').slice(1, 4)")
    check(all(abs(float(cell) - weight) < 0.0011 for cell, weight in zip(cells, weights[0][3][2])), f"the numbers are {cells}")
    check_link(page, server, "attention", attention_shown)
    open_view(page, server, "attention", SAMPLES["attention"])
    page.wait_for(f"{VIEW}.querySelectorAll('.heads button').length", "maps of an encoder-decoder")
    check(texts(page, ".detail h2") == ["Cross-attention, layer 0, head 1"], f"it shows {texts(page, '.detail h2')}")
    check(texts(page, ".place[role=radio]") == ["a", "dog", "in", "snow", "<eos>"], "the answer's tokens differ")
    page.run(f"{VIEW}.querySelector('[value=lines]').click()")
    page.settle()
    check(
        page.run(f"{VIEW}.querySelector('.lines').checkVisibility() && {VIEW}.querySelectorAll('.lines path').length > 0"),
        "no lines",
    )


def attention_shown(page):
    page.wait_for(f"{VIEW}.querySelectorAll('.heads button').length", "maps")
    return [
        *texts(page, ".detail h2"),
        *texts(page, ".place.chosen"),
        *page.run(f"[...{VIEW}.querySelectorAll('.place')].map(node => node.title)"),
    ]


def check_causes(page, server):
    """What a model would say after each layer, attributions, ablations and patches; what is asked is what the form has."""
    open_view(page, server, "causes")
    page.tab_to("textarea[name=text]")
    page.type("It was late")
    page.press("Enter", ctrl=True)
    page.wait_for(f"{VIEW}.querySelector('table.grid')", "a table")
    wait_until_done(page, "a table")
    asked = last(server, "/lens")
    check(asked == {"model": "gpt", "text": "It was late", "view": True}, f"it asked {asked}")
    check_causes_shown(page, server.causes("/lens", asked)["view"])
    check(shown_fields(page) == ["answer", "position"], f"the fields are {shown_fields(page)}")
    wanted = [
        ("/lens", {"position": 2}),
        ("/attribute", {"target": "a dog in snow", "answer": "dog", "by": "integrated_gradients", "baseline": "zero"}),
        ("/ablate", {"by": "mean"}),
        ("/lens", {"lens": "trained"}),
        ("/patch", {"corrupt": "Tim saw Anna and"}),
        ("/attribute", {"by": "integrated_gradients", "baseline": "zero"}),
    ]
    for values, (path, more) in zip(CAUSES, wanted):
        n = len(server.requests)
        open_view(page, server, "causes", values)
        page.wait_for(f"{VIEW}.querySelector('.results .card + .card')", f"the answer of {path}")
        wait_until_done(page, path)
        asked = [(each, body) for each, body in server.requests[n:] if each != "/v1/models"]
        source = {"image": values["picture"]} if "picture" in values else {"clean" if path == "/patch" else "text": values["text"]}
        check(asked == [(path, {"model": values["model"], "view": True, **source, **more})], f"it asked {str(asked)[:400]}")
        view = server.causes(*asked[0])["view"]
        for picture in view.get("pictures", []):
            picture["size"] = [40, 28]
        check_causes_shown(page, view)
        check_link(page, server, "causes", lambda page: texts(page, ".results h2, .results td, .results .place, .bars li"))
    check(page.run(f"{VIEW}.querySelector('[value=patch]').disabled"), "a model of pictures is offered two texts")
    check(not page.run(f"{VIEW}.querySelector('[name=text]').checkVisibility()"), "a model of pictures is offered a text")
    check_cause_fields(page, server)


def check_causes_shown(page, view):
    check(texts(page, ".results .card:first-child .quiet")[0] == view["summary"], f"the summary is {texts(page, '.results .quiet')[0]}")
    for check_part in (check_cells, check_texts, check_pictures, check_keys, check_bars):
        check_part(page, view)
    written = [text.replace(" ", "") for text in texts(page, "table.grid td")]
    for grid in view["grids"]:
        shown, written = written[: len(grid["rows"]) * len(grid["columns"])], written[len(grid["rows"]) * len(grid["columns"]) :]
        check(not grid["texts"] or shown == [text.replace(" ", "") for row in grid["texts"] for text in row], f"the cells are {shown}")


def shown_fields(page):
    return page.run(f"[...{VIEW}.querySelectorAll('.grid input, .grid select')].filter(n => n.checkVisibility()).map(n => n.name)")


def check_cause_fields(page, server):
    """Each choice has its fields; one that is not there is not asked with. An error is one line."""
    open_view(page, server, "causes", {"model": "gpt", "text": "It was late"})
    page.wait_for(f"{VIEW}.querySelector('table.grid')", "a table")
    for show, fields in (
        ("attribute", ["answer", "against", "position", "by", "baseline"]),
        ("ablate", ["answer", "without"]),
        ("patch", ["answer", "against", "position"]),
    ):
        page.run(f"{VIEW}.querySelector('[name=show]').value = '{show}'")
        page.run(f"{VIEW}.querySelector('[name=show]').dispatchEvent(new Event('change'))")
        check(shown_fields(page) == fields, f"{show} has the fields {shown_fields(page)}")
        check(page.run(f"{VIEW}.querySelector('[name=corrupt]').checkVisibility()") == (show == "patch"), f"{show}: another text")
    check(not page.run(f"{VIEW}.querySelector('[name=target]').checkVisibility()"), "a decoder is asked for an answer")
    values = {"model": "gpt", "text": "It was late", "show": "attribute", "by": "gradient_input", "against": "early", "without": "mean"}
    open_view(page, server, "causes", values)
    page.wait_for(f"{VIEW}.querySelector('.coloured')", "a coloured text")
    asked = last(server, "/attribute")
    wanted = {"model": "gpt", "text": "It was late", "by": "gradient_input", "against": "early", "view": True}
    check(asked == wanted, f"it asked {asked}")
    check(page.run(f"{VIEW}.querySelector('[name=baseline]').disabled"), "a product with the gradient is offered a baseline")
    open_view(page, server, "causes", {**CAUSES[4], "corrupt": "Tim"})
    page.wait_for(PROBLEM, "what is wrong with two texts")
    check("has 4 tokens and the corrupted one" in page.run(PROBLEM), f"the problem is {page.run(PROBLEM)}")
    check(all("status of 400" in problem for problem in page.problems), f"{page.problems}")
    page.problems.clear()
    open_view(page, server, "causes")
    page.tab_to("button.main")
    page.press("Enter")
    check(page.run(PROBLEM) == "Write a text first.", f"without a text: {page.run(PROBLEM)!r}")


# ---- The page as a whole --------------------------------------------------------------------------------------------------


def check_link(page, server, view, shown):
    """The address of a view shows the same again in a fresh page."""
    before, link = shown(page), page.run("location.hash")
    check(link.startswith(f"#{view}?"), f"the address of {view} is {link}")
    page.open_from(server.address, "/" + link)
    page.wait_for(VIEW, f"the view {view}")
    wait_until_done(page, f"what the link of {view} shows")
    page.wait_for(f"!{VIEW}.querySelector('[aria-busy]')", f"what the link of {view} shows")
    after = shown(page)
    check(after == before, f"the link of {view} shows {after}, not {before}")
    check(page.run("location.hash") == link, f"the link {link} becomes {page.run('location.hash')}")


def check_navigation(page, server):
    """Links between views keep what each one showed, and the browser goes back."""
    open_view(page, server, "text", SAMPLES["text"])
    wait_until_done(page, "the continuation")
    before = shown_tokens(page)
    page.run("document.querySelector('[data-view=fill]').click()")
    page.wait_for("location.hash.startsWith('#fill')", "the view fill")
    n = len(server.requests)
    page.run("document.querySelector('[data-view=text]').click()")
    page.wait_for("document.querySelector('[aria-current]').dataset.view === 'text'", "the view text")
    check(shown_tokens(page) == before and len(server.requests) == n, "the text was written again")
    page.run("history.back()")
    page.wait_for("document.querySelector('[aria-current]').dataset.view === 'fill'", "the view before")
    check(page.run("document.title").startswith("Fill"), "the title is that of another view")
    open_view(page, server, "nonsense", {"x": 1})
    check(page.run("document.querySelector('[aria-current]').dataset.view") == "text", "an unknown view is not the first one")


def check_first_screen(page, server):
    """A view that shows nothing yet says how it is used, which models there are, and has examples. A click begins with one."""
    names = {"text": "gpt", "compare": "gpt", "chat": "chat", "fill": "bert", "translate": "de-en", "classify": "reviews",
             "picture": "fashion", "recordings": "listener", "structure": "folder",
             "attention": "gpt", "causes": "gpt"}  # fmt: skip
    for view, model in names.items():
        n = len(server.requests)
        open_view(page, server, view, width=1400, height=900)
        check([path for path, _ in server.requests[n:]] == ["/v1/models"], f"{view} begins by itself")
        used, rows = page.run(f"""[[...{VIEW}.querySelectorAll('.card')].filter(node => node.checkVisibility())
            .map(node => node.getBoundingClientRect()).reduce((sum, {{top, bottom, width}}) =>
                sum + width * (Math.min(innerHeight, bottom) - top), 0) / (innerWidth * innerHeight),
            [...{VIEW}.querySelectorAll('.models tbody tr')].map(row => row.innerText.replaceAll('\\t', ' '))]""")
        check(used > 1 / 3, f"{view}: cards fill {used:.2f} of the first screen")
        check(f"{model} language modeling gpt2 10.8M" in rows[0], f"{view}: the models are {rows}")
        check(page.run(f"{VIEW}.querySelector('.models .on').textContent.startsWith('{model}')"), f"{view}: {model} is not marked")
        wanted = page.run(f"{VIEW}.querySelector('.example').textContent").rpartition(": ")[2]
        page.run(f"{VIEW}.querySelector('.example').click()")
        page.wait_for(f"!{VIEW}.querySelector('.beginning')", f"the end of the first screen of {view}")
        wait_until_done(page, f"an example of {view}")
        check(page.run(PROBLEM) == "", f"{view}: the example leads to {page.run(PROBLEM)}")
        asked = json.dumps([body for _, body in server.requests[n + 1 :]], ensure_ascii=False, default=repr)
        check(model in asked and (view in ("picture", "recordings", "structure") or wanted in asked), f"{view}: the example {wanted} asks {asked[:300]}")
    open_view(page, server, "text")
    page.run(f"[...{VIEW}.querySelectorAll('.models a')].find(link => link.textContent === 'Chat').click()")
    page.wait_for("document.querySelector('[aria-current]').dataset.view === 'chat'", "the view of a link")


def check_theme(page, server):
    """The button goes through the colours of the system, light and dark; the browser remembers a choice; paper is bright."""
    bright = "getComputedStyle(document.body).backgroundColor === 'rgb(246, 247, 249)'"
    ramp = "getComputedStyle(document.querySelector('.ramp')).backgroundImage"
    open_view(page, server, "text", SAMPLES["text"], media="dark")
    wait_until_done(page, "the continuation")
    check(not page.run(bright), "a dark system has a bright page")
    dark_ramp = page.run(ramp)
    for name, is_bright in (("light", True), ("dark", False)):
        page.run("document.querySelector('.theme').click()")
        check(page.run("document.querySelector('.theme').textContent") == f"Colours: {name}", f"the button does not say {name}")
        check(page.run(bright) == is_bright, f"{name}: the page has other colours")
        check((page.run(ramp) != dark_ramp) == is_bright, f"{name}: what is drawn has other colours")
    open_view(page, server, "text", SAMPLES["text"], media="light")
    wait_until_done(page, "the continuation")
    check(not page.run(bright) and page.run(ramp) == dark_ramp, "the choice is forgotten")
    page.send("Emulation.setEmulatedMedia", media="print")
    check(page.run("getComputedStyle(document.documentElement).colorScheme") == "light", "paper is dark")
    page.send("Emulation.setEmulatedMedia", media="")
    page.run("document.querySelector('.theme').click()")
    check(page.run(bright) and page.run("localStorage.length") == 0, "the system does not choose again")


def check_missing(page, policy_page):
    """Views that no model can do say what they need, and ask nothing."""
    html, policy = policy_page
    with Double(html, policy, models=["gpt"]) as server:
        page.open_from(server.address)
        page.wait_for("document.querySelector('nav a')", "the views")
        off = texts(page, "nav a.off", "document")
        check(
            [text.split()[0] for text in off] == ["Compare", "Chat", "Fill", "Translate", "Classify", "Picture", "Recordings", "Structure"],
            f"off are {off}",
        )
        for name, word in (
            ("compare", "two models"),
            ("chat", "chat template"),
            ("fill", "masks"),
            ("translate", "encoder-decoder"),
            ("recordings", "reads recordings"),
            ("structure", "folds proteins"),
        ):
            page.run(f"document.querySelector('[data-view={name}]').click()")
            page.settle()
            shown = page.run("[...document.querySelectorAll('main > .card')].find(node => !node.hidden).textContent")
            check(word in shown and "zoo serve" in shown, f"{name} says {shown}")
        check([path for path, _ in server.requests] == ["/v1/models"], f"it asked {server.requests}")


def check_key(page, policy_page):
    """A server with a key: the page asks for it, says when it is wrong, and keeps it for the tab."""
    html, policy = policy_page
    with Double(html, policy, key="secret") as server:
        page.open_from(server.address)
        page.wait_for("document.getElementById('key-dialog').open", "the question for the key")
        check(page.run("document.activeElement.id") == "key", "the focus is not in the question")
        for key, note in (("wrong", "not the right one"), ("secret", None)):
            page.type(key)
            page.press("Enter")
            if note:
                page.wait_for(f"document.getElementById('key-note').textContent.includes('{note}')", "a second question")
        page.wait_for(VIEW, "the page after the key")
        check(
            page.run("sessionStorage.getItem('zoo-api-key')") == "secret" and page.run("localStorage.length") == 0,
            "the key is not kept for this tab alone",
        )
        check("secret" not in page.run("location.href"), "the key is in the address")
        page.run("sessionStorage.clear()")
        page.open_from(server.address)
        page.wait_for("document.getElementById('key-dialog').open", "the question for the key")
        page.press("Escape")
        page.wait_for("document.querySelector('.problem')", "what is missing")
        check("key" in texts(page, ".problem", "document")[0], "nothing says that a key is missing")
    check(all("status of 401" in problem for problem in page.problems), f"{page.problems}")
    page.problems.clear()


def check_every_size(page, server):
    """Nothing is wider than a phone or a window in any view, bright or dark, and nothing moves where that is not wanted."""
    for view, values in EVERY_SAMPLE:
        for width, media in ((390, "light"), (390, "dark"), (1400, "light"), (1400, "dark")):
            open_view(page, server, view, values, width=width, media=media)
            wait_until_done(page, view)
            page.run("document.querySelectorAll('details').forEach(node => { node.open = true; })")
            page.settle()
            wide = page.run("document.documentElement.scrollWidth")
            check(wide <= width, f"{view} is {wide} pixels wide in a window of {width}")
            check_targets(page, view, width)
    open_view(page, server, "chat", SAMPLES["chat"])
    page.run("document.querySelector('.message').setAttribute('aria-busy', 'true')")
    for wanted, n in (("no-preference", 1), ("reduce", 0)):
        page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": wanted}])
        check(
            page.run("document.getAnimations().length") == n,
            f"with {wanted} {page.run('document.getAnimations().length')} things move",
        )
    page.send("Emulation.setEmulatedMedia", features=[])


def check_targets(page, view, width):
    """What can be used has a name. On a phone buttons and links are large enough for a finger."""
    nameless = page.run("""[...document.querySelectorAll('button, a, input, select, textarea, [role=button], [role=radio]')]
        .filter(node => node.checkVisibility() && !node.getAttribute('aria-label') && !node.textContent.trim() &&
                        !(node.labels && [...node.labels].some(label => label.textContent.trim())))
        .map(node => node.outerHTML.slice(0, 90))""")
    check(not nameless, f"{view}: without a name: {nameless[:3]}")
    small = page.run("""[...document.querySelectorAll('nav a, .buttons button, select, summary')]
        .filter(node => node.checkVisibility() && node.getBoundingClientRect().height < 30)
        .map(node => `${node.textContent} ${node.getBoundingClientRect().height}`)""")
    check(width > 400 or not small, f"{view}: too small for a finger: {small[:3]}")


def check_paper(page, server):
    """On paper there are no controls, and nothing is wider than the page."""
    for view, values in EVERY_SAMPLE:
        open_view(page, server, view, values)
        wait_until_done(page, view)
        page.send("Emulation.setEmulatedMedia", media="print")
        page.resize(717, 1000)
        page.settle()
        left = texts(page, "nav, .run, .settings", "document") and page.run(
            "[...document.querySelectorAll('nav, .run, .settings, button.main')].filter(node => node.checkVisibility()).length"
        )
        check(not left, f"{view}: {left} controls are printed")
        wide = page.run("""[...document.querySelectorAll('main *')].filter(node => node.checkVisibility() &&
            !node.closest('.heard, .scroll, .plot') && node.getBoundingClientRect().right > 718)
            .map(node => `${node.tagName} ${node.className} ${node.getBoundingClientRect().right}`)""")
        check(not wide, f"{view}: on paper {wide[:3]} reach beyond the page")
        page.send("Page.printToPDF")
        page.send("Emulation.setEmulatedMedia", media="")


def check_page(page, path):
    policy_page = Path(path).read_text(encoding="utf-8"), Path(path + ".policy").read_text(encoding="utf-8")
    page.problems.clear()
    with Double(*policy_page) as server:
        for one in (
            check_text,
            check_alternatives,
            check_again,
            check_settings,
            check_stop,
            check_errors,
            check_compare,
            check_chat,
            check_fill,
            check_translate,
            check_classify,
            check_picture,
            check_recordings,
            check_structure,
            check_attention,
            check_causes,
            check_first_screen,
            check_theme,
            check_navigation,
            check_every_size,
            check_paper,
        ):
            one(page, server)
            check(
                page.run("window.wasRun === undefined && !document.querySelector('img[onerror]')"),
                f"{one.__name__}: text became markup",
            )
            check(not page.problems, f"{one.__name__}: " + "; ".join(page.problems))
        check(all(token in server.vocabulary.tokens for token in WORDS), "the server has lost its words")
    check_missing(page, policy_page)
    check_key(page, policy_page)


def main(paths):
    if len(paths) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    return check_pages([(path,) for path in paths], check_page)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

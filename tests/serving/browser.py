#!/usr/bin/env python3
"""Uses every view of the page of `zoo serve` in a headless Chromium, with a real server and small models that are made for it.

    browser.py ZOO [--pictures FOLDER]

Fails where a view shows nothing, or something else than the API says, where the page asks another server, and where the
browser reports a problem, such as a policy that keeps the page's own program from running. Without a Chromium the exit code is
77, or 1 if ZOO_REQUIRE_REFERENCES is set. --pictures writes what each view looks like.
"""

import argparse
import base64
import json
import os
import sys
import tempfile
import urllib.request
from pathlib import Path
from urllib.parse import urlencode

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent / "support")]
from chromium import SKIPPED, Browser, Failure, check, find_chromium  # noqa: E402
from models import make_models, png, spoken, striped  # noqa: E402
from server import serving  # noqa: E402

VIEW = "[...document.querySelectorAll('.view')].find(view => !view.hidden)"
SQUARE = png(64, 64, lambda x, y: 220 if 10 <= x < 34 and 16 <= y < 40 else 20)


def data_uri(content, kind="image/png"):
    return f"data:{kind};base64," + base64.b64encode(content).decode()


SAMPLES = {
    "text": {"model": "gpt", "prompt": "it was a red", "max_tokens": 20, "temperature": 0, "seed": 1},
    "compare": {"model": "gpt", "model2": "letters", "prompt": "it was", "max_tokens": 10, "temperature": 0.7, "seed": 1},
    "chat": {"model": "chat", "system": "Be brief.", "max_tokens": 20, "seed": 1},
    "fill": {"model": "bert", "text": "it was a <mask> and old <mask> in the snow"},
    "translate": {"model": "de-en", "text": "ein rot und alt Haus\nein blau und neu Hund"},
    "classify": {"model": "reviews", "text": "a lovely film"},
    "picture": {"model": "pictures", "picture": data_uri(striped(1))},
    "recordings": {"model": "speech", "recording": data_uri(spoken(5)[0], "audio/wav")},
    "structure": {"model": "folder", "sequence": "AEAKAAEKLVVVVVGGVV"},
    "attention": {"model": "gpt", "text": "it was a red and old dog"},
    "causes": {"model": "gpt", "text": "it was a red and old dog"},
}  # fmt: skip
# What there is when a view has its answer.
READY = {
    "text": f"{VIEW}.querySelectorAll('.piece').length > 20", "compare": f"{VIEW}.querySelectorAll('.pane .summary').length === 2",
    "chat": f"{VIEW}.querySelector('[name=message]')", "fill": f"{VIEW}.querySelectorAll('.likeliest').length === 2",
    "translate": f"{VIEW}.querySelectorAll('.lines svg').length === 2", "classify": f"{VIEW}.querySelectorAll('.bar-row').length === 2",
    "picture": f"{VIEW}.querySelector('[name=from]').checkVisibility() && {VIEW}.querySelectorAll('.bar-row').length === 2",
    "recordings": f"{VIEW}.querySelector('.transcript')",
    "structure": f"{VIEW}.querySelector('.structure-stage canvas')",
    "attention": f"{VIEW}.querySelectorAll('.heads button').length === 10",
    "causes": f"{VIEW}.querySelector('.bars')",
}  # fmt: skip


def open_view(page, address, view, values, ready, **window):
    page.open_from(address, f"/#{view}?{urlencode(values)}", **window)
    wait_until_ready(page, view, ready)


def wait_until_ready(page, view, ready):
    page.wait_for(f"document.querySelector('.problem:not([hidden])') || ({VIEW} && {ready})", view, seconds=60)
    page.wait_for(
        f"![...{VIEW}.querySelectorAll('.run button')].some(b => b.textContent === 'Stop' && !b.hidden)", view, seconds=60
    )
    problem = page.run(
        "[...document.querySelectorAll('.problem')].filter(node => !node.hidden).map(node => node.textContent).join()"
    )
    check(not problem, f"{view}: {problem}")


def texts(page, selector):
    return page.run(f"[...{VIEW}.querySelectorAll({json.dumps(selector)})].map(node => node.textContent)")


def ask(address, path, body):
    request = urllib.request.Request(address + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
        return json.load(answer)


def shown_text(page):
    return page.run(f"""[...{VIEW}.querySelectorAll('.piece')].map(node => [...node.childNodes]
        .filter(part => part.className !== 'mark').map(part => part.textContent).join('')).join('')""")


def check_text(page, address):
    values = SAMPLES["text"]
    body = {key: values[key] for key in ("model", "prompt", "max_tokens", "temperature", "seed")}
    answer = ask(address, "/v1/completions", {**body, "echo": True})["choices"][0]["text"]
    check(shown_text(page).strip() == answer.strip(), f"it shows {shown_text(page)!r}, not {answer!r}")
    before = page.run(f"{VIEW}.querySelectorAll('.piece').length")
    page.run(f"[...{VIEW}.querySelectorAll('.piece')].at(-5).focus()")
    for key in ("Enter", "ArrowDown", "Enter"):
        page.press(key)
    wait_until_ready(page, "an alternative", f"location.hash.includes('ids=') && {READY['text']}")
    check(
        page.run(f"{VIEW}.querySelectorAll('.piece').length") == before - 5 + 1 + 20,
        "an alternative does not go on from its place",
    )
    check(shown_text(page).startswith("it was a red"), f"an alternative changes the text before it: {shown_text(page)!r}")
    link, text = page.run("location.hash"), shown_text(page)
    page.open_from(address, "/" + link)
    wait_until_ready(page, "the link", READY["text"])
    check(shown_text(page) == text, f"the link shows {shown_text(page)!r}, not {text!r}")


def check_chat(page, address):
    page.tab_to("textarea[name=message]")
    page.type("it was a")
    page.press("Enter")
    wait_until_ready(page, "chat", f"{VIEW}.querySelectorAll('.message').length === 2")
    body = {
        "model": "chat",
        "max_tokens": 20,
        "temperature": 0.8,
        "seed": 1,
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "it was a"}],
    }
    answer = ask(address, "/v1/chat/completions", body)["choices"][0]["message"]["content"]
    check(texts(page, ".said")[1].split() == answer.split(), f"it shows {texts(page, '.said')}, not {answer!r}")


def check_fill(page, address):
    masks = ask(address, "/fill", {"model": "bert", "text": SAMPLES["fill"]["text"], "top": 5})["masks"]
    expected = [
        f"{each['token']}{each['probability']:.2f}"
        for mask in masks
        for each in mask["candidates"]
        if each["probability"] >= 0.005
    ]
    shown = [text for text in texts(page, ".likeliest li") if "<" not in text]
    check(shown == expected, f"it shows {shown}, not {expected}")


def check_translate(page, address):
    answer = ask(address, "/translate", {"model": "de-en", "texts": SAMPLES["translate"]["text"].split("\n")})["translations"]
    check(texts(page, ".answer") == [each["text"] for each in answer], f"it shows {texts(page, '.answer')}, not {answer}")


def check_classify(page, address):
    page.run(f"{VIEW}.querySelector('select').value = 'names'")
    page.run(f"{VIEW}.querySelector('[name=text]').value = 'Anna met Otto today'")
    page.run(f"{VIEW}.querySelector('form').requestSubmit()")
    wait_until_ready(page, "names", f"{VIEW}.querySelector('.word')")
    check(len(texts(page, ".word")) >= 4, f"the words are {texts(page, '.word')}")


def check_picture(page, address):
    check(
        {text.rstrip("0123456789.<> ") for text in texts(page, ".bar-row")} == {"rows", "columns"}, f"{texts(page, '.bar-row')}"
    )
    values = {"model": "objects", "picture": data_uri(SQUARE), "least": 0}
    open_view(
        page,
        address,
        "picture",
        values,
        f"{VIEW}.querySelector('.box') && {VIEW}.querySelector('[name=from]').checkVisibility()",
    )
    n = len(ask(address, "/predict", {"model": "objects", "images": [data_uri(SQUARE)]})["predictions"][0]["objects"])
    check(
        len(texts(page, ".label")) == n and all(text.startswith("square") for text in texts(page, ".label")),
        f"{texts(page, '.label')}",
    )


def check_recordings(page, address):
    body = {"model": "speech", "recordings": [SAMPLES["recordings"]["recording"]]}
    answer = ask(address, "/predict", body)["predictions"][0]["text"]
    check(answer and texts(page, ".transcript") == [answer], f"it shows {texts(page, '.transcript')}, not {answer!r}")


def check_structure(page, address):
    answer = ask(address, "/fold", {"model": "folder", "sequence": SAMPLES["structure"]["sequence"]})
    check(answer["pdb"].startswith("ATOM"), f"the file begins with {answer['pdb'][:80]!r}")
    letters = "".join(texts(page, ".letter"))
    check(letters == answer["structure"]["trace"]["letters"], f"it shows {letters}")


def check_attention(page, address):
    for model, text, n in (("bert", "it was a red dog", 10), ("de-en", "ein rot und alt Haus", 30)):
        open_view(
            page,
            address,
            "attention",
            {"model": model, "text": text},
            f"{VIEW}.querySelectorAll('.heads button').length === {n}",
        )


def check_causes(page, address):
    for values, path, body, selector in (
        ({"model": "gpt", "text": "it was a red"}, "/lens", {"text": "it was a red"}, "table.grid"),
        ({"model": "de-en", "text": "ein rot Haus", "show": "attribute"}, "/attribute", {"text": "ein rot Haus"}, ".coloured"),
        ({"model": "bert", "text": "it was a <mask> dog", "show": "ablate"}, "/ablate", {"text": "it was a <mask> dog"}, "table.grid"),
        ({"model": "gpt", "text": "a red dog", "corrupt": "a old dog", "show": "patch", "answer": "red", "against": "old"}, "/patch",
         {"clean": "a red dog", "corrupt": "a old dog", "answer": "red", "against": "old"}, "table.grid"),
        ({"model": "pictures", "picture": data_uri(striped(1)), "show": "attribute"}, "/attribute", {"image": data_uri(striped(1))},
         ".squares"),
    ):  # fmt: skip
        open_view(page, address, "causes", values, f"{VIEW}.querySelector('{selector}')")
        view = ask(address, path, {"model": values["model"], **body, "view": True})["view"]
        shown = texts(page, ".results h2, .results .quiet")
        check(shown[1] == view["summary"], f"{path}: it shows {shown[:2]}, not {view['summary']!r}")
        for kind in ("texts", "pictures", "grids", "bars"):
            check(all(each["title"] in shown for each in view.get(kind, [])), f"{path}: not all {kind} are shown: {shown}")


CHECKS = {"text": check_text, "chat": check_chat, "fill": check_fill, "translate": check_translate, "classify": check_classify,
          "picture": check_picture, "recordings": check_recordings, "structure": check_structure,
          "attention": check_attention, "causes": check_causes}  # fmt: skip


def take_picture(page, file):
    height = min(2600, page.run("document.documentElement.scrollHeight"))
    clip = {"x": 0, "y": 0, "width": page.run("innerWidth"), "height": height, "scale": 1}
    file.write_bytes(
        base64.b64decode(page.send("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)["data"])
    )


def use(page, address, pictures):
    for view, values in SAMPLES.items():
        for width, media in ((1400, "light"), (390, "dark")):
            open_view(page, address, view, values, READY[view], width=width, media=media)
            wide = page.run("document.documentElement.scrollWidth")
            check(wide <= width, f"{view} is {wide} pixels wide in a window of {width}")
            if pictures:
                take_picture(page, pictures / f"{view}-{width}-{media}.png")
        if view in CHECKS:
            CHECKS[view](page, address)
        check(not page.problems, f"{view}: " + "; ".join(page.problems))
    off = page.run("[...document.querySelectorAll('nav a.off')].map(node => node.textContent)")
    check(not off, f"these views are off: {off}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("zoo", type=Path)
    parser.add_argument("--pictures", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    program = find_chromium()
    if not program:
        print("no chromium, chromium-browser or google-chrome on PATH: scripts/setup.sh --tests installs one")
        return 1 if os.environ.get("ZOO_REQUIRE_REFERENCES") else SKIPPED
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="zoo-serving-") as folder:
        zoo = arguments.zoo.resolve()
        models = make_models(zoo, folder)
        with serving(zoo, models.values()) as address, Browser(program) as page:
            page.problems.clear()
            try:
                use(page, address, arguments.pictures)
            except Failure as failure:
                print(f"browser.py: {failure}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())

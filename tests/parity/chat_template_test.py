#!/usr/bin/env python3
"""Compares `zoo tokenizer chat` with transformers: the text of every conversation by every template, byte for byte, and what
stands in {% generation %}, also as tokens for training; where transformers raises an error, the program must, too.

  chat_template_test.py                the templates of chat_templates.py
  chat_template_test.py DIRECTORY...   those of directories, such as source packages that pip has downloaded and tar unpacked:
                                       *.jinja files, and texts with {% in Python files whose names have "chat"

ZOO_PROGRAM: the program; default build/release/zoo. ZOO_PYTHON: a Python with transformers; default that of .venv.
"""

import ast
import datetime
import json
import os
import sys
import tempfile
from pathlib import Path

from references_python import ROOT, begin
from zoo_copies import run_zoo

PROGRAM = os.environ.get("ZOO_PROGRAM", str(ROOT / "build/release/zoo"))
TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}
NOW = datetime.datetime(2025, 7, 4, 13, 5)


def conversations():
    from chat_conversations import CONVERSATIONS

    for name, conversation in CONVERSATIONS.items():
        yield name, conversation
        if not conversation.get("continue_final_message"):
            yield f"{name}, answered", conversation | {"add_generation_prompt": True}


def theirs(template, conversation):
    """The text and the places of {% generation %} in bytes; None if transformers raises an error."""
    from transformers.utils import chat_template_utils

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return NOW

    chat_template_utils.datetime = Clock
    options = TOKENS | json.loads(json.dumps(conversation))
    messages = options.pop("messages")
    has_places = "{% generation" in template or "{%- generation" in template
    try:
        texts, places = chat_template_utils.render_jinja_template(
            [chat_template_utils._normalize_chat_messages(messages)], chat_template=template, return_assistant_tokens_mask=has_places, **options
        )
    except Exception:  # of any kind: templates use Python's operators
        return None
    text = texts[0]
    spans = [[len(text[:end].encode()) for end in span] for span in places[0]] if has_places else []
    return text, spans


def ours(template, folder):
    (folder / "tokenizer_config.json").write_text(json.dumps(TOKENS | {"chat_template": template}))
    file = folder / "conversations.jsonl"
    file.write_text("".join(json.dumps(conversation) + "\n" for _, conversation in conversations()))
    done = run_zoo(PROGRAM, "tokenizer", "chat", folder, "--messages", file, "--json", "--now", f"{NOW:%Y-%m-%d %H:%M}")
    if done.returncode:  # the template itself
        return [{"error": done.stderr.strip()}] * len(list(conversations()))
    return json.loads(done.stdout)["results"]


def literals(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Assign):
            try:
                value = ast.literal_eval(node.value)
            except (ValueError, SyntaxError):
                continue
            if isinstance(value, str) and "{%" in value:
                yield getattr(node.targets[0], "id", f"line {node.lineno}"), value


def templates_in(folder):
    for path in sorted(folder.rglob("*.jinja")):
        if not path.name.startswith("Dockerfile"):
            yield str(path.relative_to(folder)), path.read_text(encoding="utf-8")
    for path in sorted(folder.rglob("*chat*.py")):
        for name, template in literals(path):
            yield f"{path.relative_to(folder)}: {name}", template


def excerpts(a, b):
    at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
    return f"{a[max(at - 40, 0) : at + 40]!r} instead of {b[max(at - 40, 0) : at + 40]!r}"


def compare(templates):
    counts = {"texts": 0, "errors": 0}
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        for name, template in templates.items():
            for (conversation_name, conversation), result in zip(conversations(), ours(template, Path(folder)), strict=True):
                expected = theirs(template, conversation)
                place = f"{name}, {conversation_name}"
                counts["errors" if expected is None else "texts"] += 1
                if expected is None:
                    if "error" not in result:
                        problems.append(f"{place}: transformers raises an error")
                elif "error" in result:
                    problems.append(f"{place}: {result['error']}")
                elif result["text"] != expected[0]:
                    problems.append(f"{place}: {excerpts(result['text'], expected[0])}")
                elif result["generated"] != expected[1]:
                    problems.append(f"{place}: generated at {result['generated']} instead of {expected[1]}")
    return counts, problems


def tokenizer_with(template):
    """A tokenizer of bytes with a few merges, and the special tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = [*TOKENS.values(), "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    texts = [str(message.get("content")) for _, conversation in conversations() for message in conversation["messages"]]
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=template, **TOKENS)


def ranges(mask):
    """The places of ones: [[begin, end], …]."""
    edges = [i for i, (a, b) in enumerate(zip([0, *mask], [*mask, 0])) if a != b]
    return [list(pair) for pair in zip(edges[::2], edges[1::2])]


def compare_masks(templates):
    """The tokens that training predicts, with transformers' return_assistant_tokens_mask."""
    from transformers.utils import chat_template_utils

    class Clock(datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2024, 7, 26)

    count, problems = 0, []
    for name, template in templates.items():
        if "{% generation" not in template and "{%- generation" not in template:
            continue
        theirs = tokenizer_with(template)
        kept = [
            (title, conversation)
            for title, conversation in conversations()
            if not any(token in json.dumps(conversation) for token in theirs.all_special_tokens + ["<|im_"])
        ]
        with tempfile.TemporaryDirectory() as folder:
            theirs.save_pretrained(folder)
            file = Path(folder) / "conversations.jsonl"
            file.write_text("".join(json.dumps(conversation) + "\n" for _, conversation in kept))
            done = run_zoo(PROGRAM, "tokenizer", "chat", folder, "--messages", file, "--json", "--answers")
            results = json.loads(done.stdout)["results"]
        chat_template_utils.datetime = Clock
        for (title, conversation), result in zip(kept, results, strict=True):
            options = json.loads(json.dumps(conversation))
            messages = options.pop("messages")
            try:
                expected = theirs.apply_chat_template(
                    messages, tokenize=True, return_dict=True, return_assistant_tokens_mask=True, **options
                )
            except Exception:  # the texts were compared before
                continue
            count += 1
            wanted = ranges(expected["assistant_masks"])
            got = [list(pair) for pair in result.get("answers", [])]
            joined = []  # answers that touch each other are one range of ones
            for begin, end in got:
                if joined and joined[-1][1] >= begin:
                    joined[-1][1] = end
                else:
                    joined.append([begin, end])
            if "error" in result or result["ids"] != expected["input_ids"] or joined != wanted:
                problems.append(f"{name}, {title}: answers {joined} instead of {wanted}: {result.get('error')}")
    return count, problems


def main():
    begin()
    if sys.argv[1:]:
        templates = {name: text for folder in sys.argv[1:] for name, text in templates_in(Path(folder))}
    else:
        from chat_templates import TEMPLATES as templates
    counts, problems = compare(templates)
    masks, more = compare_masks(templates)
    problems += more
    print("\n".join(problems[:50]))
    print(f"{len(templates)} templates: {counts['texts']} texts, {counts['errors']} errors, {masks} masks, {len(problems)} differ")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()

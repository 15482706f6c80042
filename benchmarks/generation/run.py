#!/usr/bin/env python3
"""Generates with the same models of random weights in this project (zoo), transformers, CTranslate2 and llama.cpp, in turns.

    benchmarks/generation/run.py [MODEL…] [--engines E…] [--formats F…] [--batches N…] [--rounds N] [--json FILE] [--write]

Models: gpt-small, gpt2, llama-50m, mixture, and marian for beams. Prints a Markdown table for each model. A cell is the median over
the rounds; in brackets is zoo's advantage: zoo's speed over this one, or this one's time or memory over zoo's, within a
round. The first round tries every setting of a peer. The others repeat, for each figure, the fastest one, which the table
names. docs/performance.md says what the figures are. Exit code 2: bad input, 1: a program failed, 77: the Python of the
peers lacks PyTorch, transformers, or the module of an engine that was named.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.generation.model_files import make_model, run_python  # noqa: E402
from benchmarks.generation.shapes import (  # noqa: E402
    BYTES, ENGINES, FORMATS, SHAPES, TINY_LENGTHS, Lengths, settings, supports, tiny)
from benchmarks.generation.sides import measure  # noqa: E402
from benchmarks.measuring.figures import machine, spread  # noqa: E402
from benchmarks.measuring.program import (  # noqa: E402
    NO_PEER, ROOT, Failure, add_common_arguments, check_common_arguments, run_program)
from scripts.page_section import with_section  # noqa: E402

PAGE = ROOT / "docs/performance.md"
BEGIN = "<!-- generation: begin, made by benchmarks/generation/run.py --write -->"
END = "<!-- generation: end -->"


@dataclass(frozen=True)
class Figure:
    key: str
    title: str
    form: str = "{:.0f}"
    factor: float = 1
    is_speed: bool = True


def figures_of(shape, lengths, batches):
    last = [Figure("cold_seconds", "cold start, s", "{:.2f}", is_speed=False),
            Figure("peak_bytes", "peak memory, MB", "{:.0f}", 1e-6, is_speed=False)]
    if shape.has_beams:
        title = f"{lengths.sentences} sentences, {lengths.beams} beams, sentences/s"
        return [Figure("beams", title, "{:.1f}"), *last]
    return [Figure("prompt", f"prompt of {lengths.long}, tokens/s"),
            Figure("first_token", "first token, ms", "{:.2f}", 1e3, is_speed=False),
            *(Figure(f"batch_{rows}", f"batch {rows}, tokens/s") for rows in batches), *last]


def parse_arguments():
    parser = argparse.ArgumentParser(prog="benchmarks/generation/run.py", description=__doc__.partition("\n\n")[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"{', '.join(SHAPES)}; default: all")
    parser.add_argument("--engines", nargs="+", metavar="ENGINE",
                        help=f"{', '.join(ENGINES)}; default: those that the Python of the peers has")
    parser.add_argument("--formats", nargs="+", metavar="FORMAT", default=list(FORMATS),
                        help=f"of the weights: {', '.join(FORMATS)}; default: all")
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8, 32], metavar="N",
                        help="numbers of sequences that are written together (default: 1 8 32)")
    parser.add_argument("--rounds", type=int, default=3, help="most measurements of each engine (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=14,
                        help="no round after the first begins that would end later (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/performance.md")
    add_common_arguments(parser, "PyTorch and transformers, and with ctranslate2 and xllamacpp for these engines")
    parser.add_argument("--smoke", action="store_true", help="test the benchmark: one round of tiny models")
    parser.set_defaults(steps=None)
    arguments = parser.parse_args()
    arguments.models = arguments.models or list(SHAPES)
    for name, known in ((arguments.models, SHAPES), (arguments.engines or [], ENGINES), (arguments.formats, FORMATS)):
        for word in name:
            if word not in known:
                raise Failure(f"there is no {word}; there are: {', '.join(known)}")
    if arguments.smoke and arguments.write:
        raise Failure("--smoke contradicts --write: the page has no tiny models")
    if min(arguments.batches) < 1:
        raise Failure("--batches are at least 1")
    check_common_arguments(arguments)
    return arguments


def available_engines(arguments, env):
    """Those that were named, or those whose modules there are."""
    wanted = arguments.engines or list(ENGINES)
    modules = [module for module in ENGINES.values() if module]
    code = f"from importlib.util import find_spec; print(*[m for m in {['torch', *modules]} if find_spec(m)])"
    done = subprocess.run([arguments.python, "-c", code], capture_output=True, text=True, check=False, env=env)
    found = done.stdout.split()
    if done.returncode or not {"torch", "transformers"} <= set(found):
        end_without("PyTorch or transformers, which make the models", arguments)
    missing = [name for name in wanted if ENGINES[name] and ENGINES[name] not in found]
    for name in missing:
        if arguments.engines:
            end_without(f"{ENGINES[name]}, which the engine {name} needs", arguments)
        print(f"run.py: without {name}: {arguments.python} has no {ENGINES[name]}", file=sys.stderr)
    return [name for name in wanted if name not in missing]


def end_without(modules, arguments):
    print(f"run.py: {arguments.python} has no {modules}; install it there, or name another with --python", file=sys.stderr)
    sys.exit(NO_PEER)


# ---- The comparison --------------------------------------------------------------------------------------------------


class Engine:
    """What was measured of one engine with one model in one format."""

    def __init__(self, name, model, form, figures, threads):
        self.name, self.model, self.form, self.figures = name, model, form, figures
        self.settings = settings(name, model.shape, threads)
        self.values = {}  # by figure and name of a setting, one for each round
        self.tokens, self.version, self.unsupported, self.others_share = None, None, None, 0

    def run(self, number):
        for setting in self.settings:
            wanted = self.wanted(setting, number)
            if not wanted:
                continue
            begin = time.monotonic()
            measured, others = measure(self.name, self.model, setting, self.form, wanted)
            if "unsupported" in measured:
                self.settings = [each for each in self.settings if each is not setting]
                self.unsupported = measured["unsupported"]
                continue
            self.others_share = max(self.others_share, others)
            self.tokens = self.tokens or measured.get("tokens")
            self.version = self.version or measured.get("version")
            for figure in self.figures:
                if figure.key in wanted:
                    self.values.setdefault(figure.key, {}).setdefault(setting.name, []).append(measured[figure.key])
            print(f"{self.model.name}, {self.form}, round {number}: {self.name}, {setting.name}: "
                  f"{time.monotonic() - begin:.1f} s", file=sys.stderr)

    def wanted(self, setting, number):
        if number > 1:
            return {key for key in self.values if self.best(key) == setting.name}
        if setting.everything:
            return {figure.key for figure in self.figures}
        return {"batch_1"} & {figure.key for figure in self.figures}

    def best(self, key):
        """The setting with the best first round."""
        is_speed = next(figure.is_speed for figure in self.figures if figure.key == key)
        return (max if is_speed else min)(self.values[key], key=lambda name: self.values[key][name][0])

    def summary(self, ours):
        cells = {}
        for figure in self.figures:
            if figure.key not in self.values:
                continue
            best = self.best(figure.key)
            mine = self.values[figure.key][best]
            cell = cells[figure.key] = {"setting": best, **spread(mine), "rounds": mine,
                                        "tried": {name: rounds[0] for name, rounds in self.values[figure.key].items()}}
            if ours and figure.key in ours.values:
                base = ours.values[figure.key][ours.best(figure.key)]
                cell["advantage"] = spread([a / b if figure.is_speed else b / a for a, b in zip(base, mine)])
        return {"name": self.name, "version": self.version, "unsupported": self.unsupported, "tokens": self.tokens,
                "figures": cells}


def compare(model, form, engines, arguments, rate, seconds):
    """`seconds`: in which the rounds should end; there is at least one."""
    shape = model.shape
    figures = figures_of(shape, model.lengths, arguments.batches)
    sides = [Engine(name, model, form, figures, arguments.threads) for name in engines if supports(name, shape, form)]
    begin, number, round_seconds = time.monotonic(), 0, 0
    while number < arguments.rounds and (number == 0 or time.monotonic() - begin + round_seconds < seconds):
        number, round_begin = number + 1, time.monotonic()
        for side in sides:
            side.run(number)
        round_seconds = time.monotonic() - round_begin
    ours = next((side for side in sides if side.name == "zoo"), None)
    result = {"model": model.name, "format": form, "rounds": number, "engines": []}
    for side in sides:
        summary = side.summary(ours if side is not ours else None)
        single = summary["figures"].get("batch_1")
        if single:
            summary["memory_share"] = single["median"] * model.read_for_a_token * BYTES[form] / rate
        if ours and side is not ours and side.tokens and ours.tokens:
            pairs = list(zip(ours.tokens, side.tokens))
            summary["equal_tokens"] = next((i for i, (a, b) in enumerate(pairs) if a != b), len(pairs))
        result["engines"].append(summary)
    return result, max((side.others_share for side in sides), default=0)


def cell(figure, engine):
    measured = engine["figures"].get(figure.key)
    if not measured:
        return "–"
    text = figure.form.format(measured["median"] * figure.factor)
    return text + (f" ({measured['advantage']['median']:.2f})" if "advantage" in measured else "")


def settings_of(figures, engine):
    """'2 threads; batch 1: 1 thread': the setting of most figures, and those of the others."""
    chosen = {figure: engine["figures"][figure.key]["setting"] for figure in figures if figure.key in engine["figures"]}
    if not chosen:
        return engine["unsupported"] or "–"
    usual = statistics.mode(chosen.values())
    others = {}
    for figure, name in chosen.items():
        if name != usual:
            others.setdefault(name, []).append(figure.title.partition(",")[0])
    return "; ".join([usual, *(f"{', '.join(titles)}: {name}" for name, titles in others.items())])


def as_markdown(model, results, figures):
    titles = [figure.title for figure in figures]
    share = "batch_1" in {figure.key for figure in figures}
    lines = [f"**{model.name}**: {model.shape.what}; {model.parameters:,} parameters", "",
             "| weights | engine | " + " | ".join(titles + ["of the memory's rate"] * share) + " | settings |",
             "|---|---|" + "---|" * (len(titles) + share + 1)]
    for result in results:
        for engine in result["engines"]:
            cells = [cell(figure, engine) for figure in figures]
            if share:
                cells.append(f"{engine['memory_share']:.0%}" if "memory_share" in engine else "–")
            lines.append(f"| {result['format']} | {engine['name']} | " + " | ".join(cells)
                         + f" | {settings_of(figures, engine)} |")
    return "\n".join(lines)


def agreement(results):
    """Which engines write other tokens than zoo in fp32; nothing if none was compared."""
    if not any("equal_tokens" in engine for result in results for engine in result["engines"] if result["format"] == "fp32"):
        return ""
    different = [f"{engine['name']} with {result['model']} after {engine['equal_tokens']}" for result in results
                 for engine in result["engines"]
                 if result["format"] == "fp32" and engine["tokens"] and "equal_tokens" in engine
                 and engine["equal_tokens"] < len(engine["tokens"])]
    return (" In fp32 these outputs differ from zoo's: " + ", ".join(different) + " tokens." if different else
            " In fp32 the engines write the same tokens.")


def main():
    arguments = parse_arguments()
    arguments.rounds = 1 if arguments.smoke else arguments.rounds
    lengths = TINY_LENGTHS if arguments.smoke else Lengths()
    env = {**os.environ, "OMP_NUM_THREADS": str(arguments.threads), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    engines = available_engines(arguments, env)
    document = {"machine": machine(arguments), "results": [], "models": {}}
    begin, most_others, tables = time.monotonic(), 0, []
    n_left = len(arguments.models) * len(arguments.formats)
    with tempfile.TemporaryDirectory(prefix="zoo-benchmark-") as folder:
        for name in arguments.models:
            shape = tiny(SHAPES[name]) if arguments.smoke else SHAPES[name]
            model = make_model(name, shape, lengths, arguments, env, Path(folder) / name)
            if "memory" not in document:
                job = {"engine": "memory", "threads": arguments.threads, "bytes": 10**7 if arguments.smoke else 10**9}
                one_each = {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
                document["memory"] = run_python(model, "peer.py", job, one_each)[0]["bytes_per_second"]
            document["models"][name] = {"what": shape.what, "parameters": model.parameters,
                                        "read_for_a_token": model.read_for_a_token}
            results = []
            for form in arguments.formats:
                share = (60 * arguments.minutes - (time.monotonic() - begin)) / n_left
                result, others = compare(model, form, engines, arguments, document["memory"], share)
                results.append(result)
                n_left -= 1
                most_others = max(most_others, others)
            document["results"] += results
            tables.append(as_markdown(model, results, figures_of(shape, lengths, arguments.batches)))
            print(tables[-1], end="\n\n", flush=True)
    versions = {engine["name"]: engine["version"] for result in document["results"] for engine in result["engines"]
                if engine["version"]}
    document |= {"versions": versions, "most_others_share": most_others, "seconds": time.monotonic() - begin}
    words = ", ".join(f"{name} {version}" for name, version in versions.items())
    rounds = sorted(result["rounds"] for result in document["results"])
    how_often = f"{rounds[-1]} round{'s' * (rounds[-1] > 1)}" if rounds[0] == rounds[-1] else f"{rounds[0]} to {rounds[-1]} rounds"
    about = (f"{document['machine']['cpu']}, {arguments.threads} threads, {how_often}; {words}. The "
             f"memory is read with {document['memory'] / 1e9:.1f} GB/s. Other processes used at most {most_others:.0%} of the machine."
             f"{agreement(document['results'])}")
    print(about)
    if arguments.json:
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if arguments.write:
        page = with_section(PAGE.read_text(encoding="utf-8"), BEGIN, END, "\n\n".join([about, *tables]))
        if page is None:
            raise RuntimeError(f"{PAGE.name} lacks the lines {BEGIN} and {END}")
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    run_program(main)

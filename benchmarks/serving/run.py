#!/usr/bin/env python3
"""Asks `zoo serve` and llama.cpp's server for many texts at once, with the same GGUF file of random weights, in turns.

    benchmarks/serving/run.py [--clients N…] [--requests N] [--formats F…] [--rounds N] [--json FILE] [--write]

Each client asks for a text, reads it token by token, and asks for the next one. One client is one at a time. Prints a
Markdown table: tokens a second of all clients together, and the median and the 99th percentile of the time from a request to its
first token and from one token to the next. A cell is the median over the rounds; in brackets is zoo's advantage within a
round: zoo's speed over llama.cpp's, or llama.cpp's time over zoo's. Exit code 2: bad input, 1: a program failed, 77: the
Python of the peers lacks PyTorch, transformers or xllamacpp.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.generation.model_files import make_model  # noqa: E402
from benchmarks.generation.shapes import SHAPES, TINY_LENGTHS, Lengths, tiny  # noqa: E402
from benchmarks.measuring.figures import machine  # noqa: E402
from benchmarks.measuring.program import (  # noqa: E402
    NO_PEER, ROOT, Failure, add_common_arguments, check_common_arguments, run_program)
from benchmarks.serving.clients import load, mixed_requests  # noqa: E402
from benchmarks.serving.servers import llama_server, peak_bytes, zoo_server  # noqa: E402
from scripts.page_section import with_section  # noqa: E402

PAGE = ROOT / "docs/performance.md"
BEGIN = "<!-- serving: begin, made by benchmarks/serving/run.py --write -->"
END = "<!-- serving: end -->"
MODELS = ("gpt-small", "llama-50m")
FORMATS = {"fp32": "fp32", "int8": "int8"}
MIXED = {"shortest": 8, "longest": 256, "least_new": 8, "most_new": 128}
TINY = {"shortest": 2, "longest": 12, "least_new": 2, "most_new": 6}
# (key, title, format, factor, whether more is better)
FIGURES = (
    ("tokens_per_second", "tokens/s", "{:.0f}", 1, True),
    ("first_median", "first token, ms", "{:.1f}", 1e3, False),
    ("first_p99", "99 % of them", "{:.1f}", 1e3, False),
    ("between_median", "next token, ms", "{:.1f}", 1e3, False),
    ("between_p99", "99 % of them", "{:.1f}", 1e3, False),
    ("peak_bytes", "peak memory, MB", "{:.0f}", 1e-6, False),
)


def parse_arguments():
    parser = argparse.ArgumentParser(prog="benchmarks/serving/run.py", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--model", default="llama-50m", help=f"{', '.join(MODELS)} (default: %(default)s)")
    parser.add_argument("--clients", nargs="+", type=int, metavar="N", help="numbers of clients (default: 1 16 64)")
    parser.add_argument("--requests", type=int, help="of all clients together (default: 1000)")
    parser.add_argument("--alone", type=int, help="requests of a single client, the first ones (default: 60)")
    parser.add_argument(
        "--formats", nargs="+", metavar="FORMAT", default=["fp32"], help=f"of the weights: {', '.join(FORMATS)} (default: fp32)"
    )
    parser.add_argument(
        "--engines", nargs="+", metavar="ENGINE", default=["zoo", "llama.cpp"], help="zoo, llama.cpp (default: both)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each (default: %(default)s)")
    parser.add_argument("--write", action="store_true", help="put the table into docs/performance.md")
    add_common_arguments(parser, "PyTorch, transformers and xllamacpp")
    parser.add_argument("--smoke", action="store_true", help="test the benchmark: one round of a tiny model")
    parser.set_defaults(steps=None, batches=[1])
    arguments = parser.parse_args()
    arguments.clients = arguments.clients or ([1, 3] if arguments.smoke else [1, 16, 64])
    arguments.requests = arguments.requests or (9 if arguments.smoke else 1000)
    arguments.alone = arguments.alone or (4 if arguments.smoke else 60)
    for words, known in (([arguments.model], MODELS), (arguments.formats, FORMATS), (arguments.engines, ("zoo", "llama.cpp"))):
        for word in words:
            if word not in known:
                raise Failure(f"there is no {word}; there are: {', '.join(known)}")
    if min(*arguments.clients, arguments.requests, arguments.alone) < 1:
        raise Failure("--clients, --requests and --alone are at least 1")
    if arguments.smoke and arguments.write:
        raise Failure("--smoke contradicts --write: the page has no tiny models")
    check_common_arguments(arguments)
    return arguments


def check_python(arguments, env):
    modules = ["torch", "transformers"] + ["xllamacpp"] * ("llama.cpp" in arguments.engines)
    code = f"from importlib.util import find_spec; print(*[m for m in {modules} if not find_spec(m)])"
    done = subprocess.run([arguments.python, "-c", code], capture_output=True, text=True, check=False, env=env)
    missing = done.stdout.split() or modules * bool(done.returncode)
    if missing:
        print(
            f"run.py: {arguments.python} has no {', '.join(missing)}; install it there, or name another with --python",
            file=sys.stderr,
        )
        sys.exit(NO_PEER)


# ---- The comparison --------------------------------------------------------------------------------------------------------


def measure(engine, model, form, n_clients, requests, arguments):
    """Figures, texts, and the engine's version."""
    tokens = max(request.new + len(request.prompt.split()) for request in requests) + 8
    file = model.file_for("llama.cpp", form)
    server = zoo_server(model, file, arguments) if engine == "zoo" else llama_server(model, file, arguments, n_clients, tokens)
    with server as (process, address, extra, version):
        load(address, requests[:n_clients], n_clients, extra)  # memory is there, and threads
        figures, texts = load(address, requests, n_clients, extra)
        figures["peak_bytes"] = peak_bytes(process)
    return figures, texts, version


def compare(model, form, requests, arguments):
    """A list of {engine, clients, rounds: figures of each}, and how many of zoo's texts are those that a client alone gets."""
    results, texts, versions = {}, {}, {}
    for number in range(1, arguments.rounds + 1):
        for n_clients in arguments.clients:
            some = requests[: arguments.alone] if n_clients == 1 else requests
            for engine in arguments.engines:
                figures, written, version = measure(engine, model, form, n_clients, some, arguments)
                results.setdefault((engine, n_clients), []).append(figures)
                texts.setdefault(engine, {})[n_clients] = written
                versions[engine] = version
                print(
                    f"{model.name}, {form}, round {number}: {engine}, {n_clients} clients: {figures['seconds']:.1f} s, "
                    f"{figures['tokens_per_second']:.0f} tokens/s",
                    file=sys.stderr,
                )
    rows = [
        {
            "format": form,
            "engine": engine,
            "clients": n,
            "rounds": rounds,
            "median": {key: statistics.median(each[key] for each in rounds) for key in rounds[0]},
        }
        for (engine, n), rounds in results.items()
    ]
    for row in rows:
        ours = results.get(("zoo", row["clients"]))
        if row["engine"] != "zoo" and ours:
            row["advantage"] = {
                key: statistics.median(a[key] / b[key] if more else b[key] / a[key] for a, b in zip(ours, row["rounds"]))
                for key, _, _, _, more in FIGURES
            }
        alone = results.get((row["engine"], 1))
        if alone and row["clients"] > 1:
            row["over_alone"] = statistics.median(
                a["tokens_per_second"] / b["tokens_per_second"] for a, b in zip(row["rounds"], alone)
            )
    return rows, equal_texts(texts), versions


def equal_texts(texts):
    """Of each engine that was asked by one client and by more: (texts that are equal to those of the client alone, all of them)."""
    counts = {}
    for engine, by_clients in texts.items():
        alone = by_clients.get(1)
        pairs = [pair for n, written in by_clients.items() if n > 1 and alone for pair in zip(alone, written)]
        if pairs:
            counts[engine] = (sum(a == b for a, b in pairs), len(pairs))
    return counts


def as_markdown(rows):
    titles = [title for _, title, _, _, _ in FIGURES]
    lines = [
        "| weights | clients | server | " + " | ".join(titles) + " | over one at a time |",
        "|---" * (len(titles) + 4) + "|",
    ]
    for row in sorted(rows, key=lambda row: (row["format"], row["clients"])):
        cells = []
        for key, _, form, factor, _ in FIGURES:
            advantage = f" ({row['advantage'][key]:.2f})" if "advantage" in row else ""
            cells.append(form.format(row["median"][key] * factor) + advantage)
        times = f"{row['over_alone']:.2f}" if "over_alone" in row else "–"
        lines.append(f"| {row['format']} | {row['clients']} | {row['engine']} | {' | '.join(cells)} | {times} |")
    return "\n".join(lines)


def main():
    arguments = parse_arguments()
    arguments.rounds = 1 if arguments.smoke else arguments.rounds
    env = {**os.environ, "OMP_NUM_THREADS": str(arguments.threads), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    check_python(arguments, env)
    shape = tiny(SHAPES[arguments.model]) if arguments.smoke else SHAPES[arguments.model]
    requests = mixed_requests(arguments.requests, **(TINY if arguments.smoke else MIXED))
    document = {"machine": machine(arguments), "results": [], "equal_texts": {}, "versions": {}}
    with tempfile.TemporaryDirectory(prefix="zoo-benchmark-") as folder:
        model = make_model(
            arguments.model, shape, TINY_LENGTHS if arguments.smoke else Lengths(), arguments, env, Path(folder) / "model"
        )
        document["model"] = {"name": arguments.model, "what": shape.what, "parameters": model.parameters}
        for form in arguments.formats:
            rows, equal, versions = compare(model, form, requests, arguments)
            document["results"] += rows
            document["equal_texts"][form] = equal
            document["versions"] |= {name: version for name, version in versions.items() if version}
    prompts, new = ([f(r) for r in requests] for f in (lambda r: len(r.prompt.split()), lambda r: r.new))
    document["requests"] = {
        "n": len(requests),
        "prompt_tokens": [min(prompts), max(prompts)],
        "new_tokens": [min(new), max(new)],
    }
    table = as_markdown(document["results"])
    equal = "; ".join(
        f"{form}: {n} of {total} texts of {engine} are those that a client alone gets"
        for form, counts in document["equal_texts"].items()
        for engine, (n, total) in counts.items()
    )
    about = (
        f"**{arguments.model}**: {shape.what}; {len(requests)} requests with prompts of {min(prompts)} to {max(prompts)} tokens, for "
        f"{min(new)} to {max(new)} tokens each. {document['machine']['cpu']}, {arguments.threads} threads, {arguments.rounds} "
        f"round{'s' * (arguments.rounds > 1)}; "
        + "".join(f"{name} {version}. " for name, version in document["versions"].items())
        + equal
        + "."
    )
    print(about, table, sep="\n\n")
    if arguments.json:
        arguments.json.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    if arguments.write:
        page = with_section(PAGE.read_text(encoding="utf-8"), BEGIN, END, f"{about}\n\n{table}")
        if page is None:
            raise RuntimeError(f"{PAGE.name} lacks the lines {BEGIN} and {END}")
        PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    run_program(main)

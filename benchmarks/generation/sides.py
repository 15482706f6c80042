"""One measurement of an engine with one setting."""

import dataclasses
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from model_files import run_python

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "training"))
from run import run_measured  # noqa: E402
from workloads import ROOT  # noqa: E402

LEAST = 1e-6  # seconds

# ---- zoo: the program as its users call it -----------------------------------------------------------------------------


def generate(model, setting, form, prompts, new, *options):
    """The command that writes exactly `new` tokens after each prompt."""
    file = model.work / "prompts"
    file.write_text("\n".join(prompts) + "\n", encoding="utf-8")
    return [model.arguments.zoo, "generate", model.run(setting.batch_size), "--input", file, "--max-new-tokens", new,
            "--min-new-tokens", new, "--weights", form, "--device", "cpu", *options]


def difference(seconds, before):
    """Seconds without those before. On a busy machine a short run can take longer than a long one."""
    return max(seconds - before, seconds / 100)


def environment(model, setting):
    return {**model.env, "OMP_NUM_THREADS": str(setting.threads), **setting.env}


def timed(model, setting, command):
    """Seconds of the whole process, the first output's tokens, and what run_measured() says."""
    begin = time.monotonic()
    process = run_measured([*command, "--json"], environment(model, setting), model.work / "log")
    seconds = time.monotonic() - begin
    lines = (model.work / "log").read_text(encoding="utf-8").splitlines()  # notes of the program may stand before
    results = json.loads(next(line for line in lines if line.startswith("{")))["results"]
    return seconds, results[0]["outputs"][0]["ids"], process


def streamed(model, setting, command, prompts):
    """The moments of the start and of each prompt's first token, and the peak memory in bytes."""
    begin, arrived, text = time.monotonic(), [], b""
    process = subprocess.Popen([str(word) for word in [*command, "--stream"]], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(model, setting), cwd=ROOT)
    with process.stdout, process.stderr:
        while piece := os.read(process.stdout.fileno(), 1 << 16):
            arrived.append((len(text), time.monotonic()))
            text += piece
        words = process.stderr.read().decode(errors="replace").strip()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"zoo generate ended with {process.returncode}: {words.splitlines()[-1] if words else ''}")
    moments, position = [], 0
    for number, prompt in enumerate(prompts, 1):
        heading = ((f"=== prompt {number}\n" if len(prompts) > 1 else "") + prompt).encode()
        position = text.find(heading, position) + len(heading)
        if position < len(heading):
            raise RuntimeError(f"zoo generate --stream did not print prompt {number}")
        moments.append([when for start, when in arrived if start <= position][-1])
    return begin, moments, usage.ru_maxrss * 1024


def zoo_cold(model, setting, form):
    lengths = model.lengths
    if model.shape.has_beams:  # they have no text before the end
        command = [generate(model, setting, form, model.sentences[:1], n, "--beam", lengths.beams)
                   for n in (1, lengths.cold_new)]
        return {"cold_seconds": timed(model, setting, command[0])[0],
                "peak_bytes": timed(model, setting, command[1])[2]["peak_bytes"]}
    prompts = model.short[:1]
    command = generate(model, setting, form, prompts, lengths.cold_new, "--temperature", 0)
    begin, moments, peak = streamed(model, setting, command, prompts)
    return {"cold_seconds": moments[0] - begin, "peak_bytes": peak}


def zoo_prompts(model, setting, form):
    """One token is written for each prompt, so that the time from one token to the next is that of a prompt. This does not
    count the first prompt."""
    n = len(model.long)
    prompts = model.long + model.short
    command = generate(model, setting, form, prompts, 1, "--temperature", 0)
    _, moments, _ = streamed(model, setting, command, prompts)
    # On a busy machine the output of a tiny model can arrive at once.
    long, short = (max(end - begin, LEAST) for begin, end in ((moments[0], moments[n - 1]), (moments[n - 1], moments[-1])))
    return {"prompt": model.lengths.long * (n - 1) / long, "first_token": short / len(model.short)}


def zoo_batch(model, setting, form, rows, figures):
    """The time of a process that writes one token for each prompt, subtracted from that of one that writes all."""
    prompts = model.short[:rows * max(1, model.shape.rows // rows)]
    setting = dataclasses.replace(setting, batch_size=rows)
    first, rest = (timed(model, setting, generate(model, setting, form, prompts, n, "--temperature", 0))
                   for n in (1, model.shape.new))
    figures[f"batch_{rows}"] = len(prompts) * (model.shape.new - 1) / difference(rest[0], first[0])
    figures["tokens"] = rest[1]
    return max(first[2]["others_share"], rest[2]["others_share"])


def measure_zoo(model, setting, form, wanted):
    figures, shares = {}, []
    if wanted & {"cold_seconds", "peak_bytes"}:
        figures |= zoo_cold(model, setting, form)
    if wanted & {"prompt", "first_token"}:
        figures |= zoo_prompts(model, setting, form)
    for rows in model.arguments.batches:
        if f"batch_{rows}" in wanted:
            shares.append(zoo_batch(model, setting, form, rows, figures))
    if "beams" in wanted:
        # A process that writes a token for one sentence takes what the others need to start.
        lengths, beam = model.lengths, ("--beam", model.lengths.beams)
        start, _, _ = timed(model, setting, generate(model, setting, form, model.sentences[:1], 1, *beam))
        seconds, tokens, process = timed(
            model, setting, generate(model, setting, form, model.sentences, model.shape.new, *beam))
        figures |= {"beams": lengths.sentences / difference(seconds, start), "tokens": tokens}
        shares.append(process["others_share"])
    return figures, max(shares, default=0)


# ---- peers: peer.py, in a process of its own ---------------------------------------------------------------------------


def measure_peer(engine, model, setting, form, wanted):
    lengths, env = model.lengths, {"OMP_NUM_THREADS": str(setting.threads), **setting.env}
    job = {"engine": engine, "path": str(model.file_for(engine, form)), "format": form, "threads": setting.threads,
           "new": model.shape.new, "cold_new": lengths.cold_new, "repeats": lengths.repeats, "seconds": lengths.seconds}
    if model.shape.has_beams:
        job |= {"beams": lengths.beams, "sentences": [ids + [0] for ids in model.ids(model.sentences)]}
    else:
        job |= {"short_prompts": model.ids(model.short), "long_prompts": model.ids(model.long)}
    figures, shares = {}, []
    if wanted & {"cold_seconds", "peak_bytes"}:
        begin = time.monotonic()
        result, process = run_python(model, "peer.py", {**job, "measures": ["cold"]}, env)
        if "unsupported" in result:
            return result, 0
        figures |= {"cold_seconds": result["cold"] - begin, "peak_bytes": process["peak_bytes"]}
    measures = ["prompt"] if wanted & {"prompt"} else []
    batches = [rows for rows in model.arguments.batches if f"batch_{rows}" in wanted]
    if "first_token" in wanted and 1 not in batches:
        batches = [1, *batches]
    measures += ["beams"] if "beams" in wanted else [str(rows) for rows in batches]
    if not measures:
        return figures, 0
    result, process = run_python(model, "peer.py", {**job, "measures": measures}, env)
    if "unsupported" in result:
        return result, 0
    shares.append(process["others_share"])
    figures |= {"tokens": result["tokens"], "version": result["version"]}
    if "prompt" in measures:
        figures["prompt"] = lengths.long / statistics.median(result["prompt"])
    if "beams" in measures:
        figures["beams"] = lengths.sentences / statistics.median(result["beams"])
    for rows in batches:
        first, rest = (statistics.median(pair[i] for pair in result[str(rows)]) for i in (0, 1))
        figures[f"batch_{rows}"] = rows * (model.shape.new - 1) / difference(rest, first)
        if rows == 1:
            figures["first_token"] = first
    return figures, max(shares)


def measure(engine, model, setting, form, wanted):
    """Figures by name, of those that are wanted, with `tokens` and `version`; or `unsupported`. Second: the largest share of
    the machine that other processes had."""
    if engine == "zoo":
        return measure_zoo(model, setting, form, wanted)
    return measure_peer(engine, model, setting, form, wanted)

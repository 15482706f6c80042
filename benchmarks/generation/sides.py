"""One measurement of an engine with one setting."""

import json
import os
import statistics
import subprocess
import time

from benchmarks.generation.model_files import run_python
from benchmarks.measuring.processes import run_measured
from benchmarks.measuring.program import ROOT

# ---- zoo: the program as its users call it -----------------------------------------------------------------------------


def generate(model, setting, form, prompts, new, *options):
    """The command that writes exactly `new` tokens after each prompt."""
    file = model.work / "prompts"
    file.write_text("\n".join(prompts) + "\n", encoding="utf-8")
    return [model.arguments.zoo, "generate", model.run, "--input", file, "--max-new-tokens", new,
            "--min-new-tokens", new, "--weights", form, "--device", "cpu", *options]


def environment(model, setting):
    return {**model.env, "OMP_NUM_THREADS": str(setting.threads), **setting.env}


def timed(model, setting, command):
    """Seconds of the whole process, and its peak memory in bytes."""
    begin = time.monotonic()
    process = run_measured([*command, "--json"], environment(model, setting), model.work / "log")
    return time.monotonic() - begin, process["peak_bytes"]


def streamed(model, setting, command, prompt):
    """The seconds from the start to the first token after the prompt, and the peak memory in bytes."""
    begin, text, first = time.monotonic(), b"", None
    process = subprocess.Popen([str(word) for word in [*command, "--stream"]], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(model, setting), cwd=ROOT)
    with process.stdout, process.stderr:
        while piece := os.read(process.stdout.fileno(), 1 << 16):
            text += piece
            if first is None and len(text) > len(prompt.encode()):
                first = time.monotonic()
        words = process.stderr.read().decode(errors="replace").strip()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or first is None:
        raise RuntimeError(f"zoo generate ended with {process.returncode}: {words.splitlines()[-1] if words else ''}")
    return first - begin, usage.ru_maxrss * 1024


def zoo_cold(model, setting, form):
    lengths = model.lengths
    if model.shape.has_beams:  # they have no text before the end
        command = [generate(model, setting, form, model.sentences[:1], n, "--beam", lengths.beams)
                   for n in (1, lengths.cold_new)]
        return {"cold_seconds": timed(model, setting, command[0])[0],
                "peak_bytes": timed(model, setting, command[1])[1]}
    prompts = model.short[:1]
    command = generate(model, setting, form, prompts, lengths.cold_new, "--temperature", 0)
    seconds, peak = streamed(model, setting, command, prompts[0])
    return {"cold_seconds": seconds, "peak_bytes": peak}


def bench(model, setting, form, prompts, new, batches, *options):
    """What `zoo bench` measures of each batch size in one process, and what run_measured() says of the process."""
    file = model.work / "prompts"
    file.write_text("\n".join(prompts) + "\n", encoding="utf-8")
    command = [model.arguments.zoo, "bench", model.run, "--input", file, "--max-new-tokens", new, "--weights", form,
               "--device", "cpu", "--seconds", model.lengths.seconds, "--json", "--batch-size", *batches, *options]
    process = run_measured(command, environment(model, setting), model.work / "log")
    text = (model.work / "log").read_text(encoding="utf-8")  # notes of the program may stand before
    return json.loads(text[text.index("{"):])["generation"], process["others_share"]


def measure_zoo(model, setting, form, wanted):
    figures, shares, lengths = {}, [0], model.lengths
    if wanted & {"cold_seconds", "peak_bytes"}:
        figures |= zoo_cold(model, setting, form)
    if "prompt" in wanted:
        (measured,), share = bench(model, setting, form, model.long, 1, [1])
        figures["prompt"] = lengths.long / (measured["first_token_ms"] / 1e3)
        shares.append(share)
    batches = [rows for rows in model.arguments.batches if f"batch_{rows}" in wanted]
    if "first_token" in wanted and 1 not in batches:
        batches = [1, *batches]
    if batches:
        results, share = bench(model, setting, form, model.short, model.shape.new, batches, "--beam", 1)
        shares.append(share)
        for rows, measured in zip(batches, results):
            figures[f"batch_{rows}"] = measured["tokens_per_second"]
            if rows == 1:
                figures["first_token"] = measured["first_token_ms"] / 1e3
        figures["tokens"] = results[0]["first_output_ids"]
    if "beams" in wanted:
        (measured,), share = bench(model, setting, form, model.sentences, model.shape.new, [setting.batch_size],
                                   "--beam", lengths.beams)
        figures |= {"beams": lengths.sentences / measured["seconds"], "tokens": measured["first_output_ids"]}
        shares.append(share)
    return figures, max(shares)


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
        figures[f"batch_{rows}"] = rows * (model.shape.new - 1) / max(rest - first, rest / 100)
        if rows == 1:
            figures["first_token"] = first
    return figures, max(shares)


def measure(engine, model, setting, form, wanted):
    """Figures by name, of those that are wanted, with `tokens` and `version`; or `unsupported`. Second: the largest share of
    the machine that other processes had."""
    if engine == "zoo":
        return measure_zoo(model, setting, form, wanted)
    return measure_peer(engine, model, setting, form, wanted)

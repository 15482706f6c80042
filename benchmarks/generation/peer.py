#!/usr/bin/env python3
"""Generates with transformers, CTranslate2 or llama.cpp as a job of run.py says, and measures how long it takes.

    peer.py JOB.json RESULT.json

The job has `engine`, `path`, `format`, `threads`, `measures`, and what they need. The result has a key for each measure:
  cold     the moment, by the clock of the machine, at which the first token is there; then more tokens are written
  prompt   seconds of each long prompt up to its first token, in an engine that has read one before
  batches  for each number of prompts the pairs of seconds in which 1 and `new` tokens are written after each prompt
  beams    the seconds in which all sentences are translated
and `tokens`, those that the engine writes after the first short prompt, or for the first sentence. `memory` in place of an
engine measures the bytes that all threads read in a second. Exit code 77 if this Python lacks the engine's module.
"""

import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from benchmarks.measuring.program import run_job  # noqa: E402


class Transformers:
    def __init__(self, job):
        import torch
        import transformers

        self.torch, self.version = torch, transformers.__version__
        torch.set_num_threads(job["threads"])
        transformers.logging.set_verbosity_error()
        of_model = transformers.AutoModelForSeq2SeqLM if "beams" in job else transformers.AutoModelForCausalLM
        self.model = of_model.from_pretrained(job["path"], dtype={"fp32": torch.float32, "bf16": torch.bfloat16}[job["format"]])
        self.model.eval()

    def prepare(self, rows, tokens):
        pass

    def _generate(self, ids, mask, n, **options):
        with self.torch.inference_mode():
            return self.model.generate(ids, attention_mask=mask, do_sample=False, max_new_tokens=n, **options).tolist()

    def write(self, prompts, n):
        ids = self.torch.tensor(prompts)
        # Without an end token, no step has to look for it.
        written = self._generate(ids, self.torch.ones_like(ids), n, eos_token_id=None, pad_token_id=0)
        return [row[len(prompts[0]):] for row in written]

    def translate(self, sentences, n, beams):
        longest, padding = max(map(len, sentences)), self.model.config.pad_token_id
        ids = self.torch.tensor([row + [padding] * (longest - len(row)) for row in sentences])
        written = self._generate(ids, (ids != padding).long(), n, min_new_tokens=n, num_beams=beams)
        return [row[1:] for row in written]


class CTranslate2:
    def __init__(self, job):
        # Its converters would import them, and the engine does not need them.
        sys.modules["torch"] = sys.modules["transformers"] = None
        import ctranslate2

        self.version = ctranslate2.__version__
        compute = {"fp32": "float32", "int8": "int8", "bf16": "bfloat16"}[job["format"]]
        if compute not in ctranslate2.get_supported_compute_types("cpu"):
            raise Unsupported(f"CTranslate2 does not compute in {compute} on this processor with this setting")
        of_model = ctranslate2.Translator if "beams" in job else ctranslate2.Generator
        self.model = of_model(job["path"], device="cpu", compute_type=compute, intra_threads=job["threads"], inter_threads=1)
        name = "shared_vocabulary.json" if "beams" in job else "vocabulary.json"
        self.tokens = json.loads((Path(job["path"]) / name).read_text(encoding="utf-8"))
        self.ids = {token: i for i, token in enumerate(self.tokens)}

    def prepare(self, rows, tokens):
        pass

    def _words(self, rows):
        return [[self.tokens[i] for i in row] for row in rows]

    def write(self, prompts, n):
        written = self.model.generate_batch(self._words(prompts), max_length=n, min_length=n, sampling_topk=1, beam_size=1,
                                            include_prompt_in_result=False)
        return [one.sequences_ids[0] for one in written]

    def translate(self, sentences, n, beams):
        written = self.model.translate_batch(self._words(sentences), beam_size=beams, max_decoding_length=n,
                                             min_decoding_length=n)
        return [[self.ids[word] for word in one.hypotheses[0]] for one in written]


class LlamaCpp:
    """Its server in this process, with a slot for each prompt of a batch."""

    def __init__(self, job):
        import xllamacpp

        self.module, self.job, self.server = xllamacpp, job, None
        self.version = f"{xllamacpp.__version__} ({xllamacpp.get_system_info().strip(' |')})"

    def prepare(self, rows, tokens):
        self.server = None
        parameters = self.module.CommonParams()
        parameters.model.path = self.job["path"]
        parameters.n_gpu_layers = 0
        parameters.n_parallel, parameters.n_ctx, parameters.kv_unified = rows, rows * (tokens + 8), True
        parameters.warmup = parameters.fit_params = parameters.ui = False
        parameters.verbosity = parameters.cache_ram_mib = 0
        parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = self.job["threads"]
        self.server = self.module.Server(parameters)

    def _post(self, prompt, n):
        import urllib.request

        body = {"prompt": prompt, "n_predict": n, "top_k": 1, "samplers": ["top_k"], "cache_prompt": False,
                "ignore_eos": True, "return_tokens": True}
        request = urllib.request.Request(self.server.listening_address + "/completion", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
            return json.load(answer)["tokens"]

    def write(self, prompts, n):
        with ThreadPoolExecutor(len(prompts)) as threads:
            return list(threads.map(lambda prompt: self._post(prompt, n), prompts))


class Unsupported(Exception):
    pass


PEERS = {"transformers": Transformers, "CTranslate2": CTranslate2, "llama.cpp": LlamaCpp}


def seconds_of(rows, n, work):
    """The seconds that `work` takes to write `n` tokens in each of `rows` rows."""
    begin = time.monotonic()
    written = work()
    seconds = time.monotonic() - begin
    if [len(row) for row in written] != [n] * rows:
        raise RuntimeError(f"{rows} outputs of {n} tokens were asked for, and have {sorted({len(row) for row in written})}")
    return seconds


def measure_cold(engine, job):
    if "beams" in job:
        engine.translate(job["sentences"][:1], 1, job["beams"])
        moment = time.monotonic()
        engine.translate(job["sentences"][:1], job["cold_new"], job["beams"])
        return moment
    prompt = job["short_prompts"][:1]
    engine.prepare(1, len(prompt[0]) + job["cold_new"])
    engine.write(prompt, 1)
    moment = time.monotonic()
    engine.write(prompt, job["cold_new"])
    return moment


def measure_prompt(engine, job):
    engine.prepare(1, len(job["long_prompts"][0]) + 1)
    return [seconds_of(1, 1, lambda: engine.write([prompt], 1)) for prompt in job["long_prompts"]][1:]


def repeated(job, work):
    """The results of `work`, which is not repeated if it takes long."""
    begin, results = time.monotonic(), []
    while not results or (len(results) < job["repeats"] and time.monotonic() - begin < job["seconds"]):
        results.append(work())
    return results


def measure_batch(engine, job, rows):
    prompts, new = job["short_prompts"][:rows], job["new"]
    engine.prepare(rows, len(prompts[0]) + new)
    engine.write(prompts, 2)
    return repeated(job, lambda: [seconds_of(rows, n, lambda: engine.write(prompts, n)) for n in (1, new)])


def measure_beams(engine, job):
    sentences, new = job["sentences"], job["new"]
    engine.translate(sentences[:8], 2, job["beams"])
    return repeated(job, lambda: seconds_of(len(sentences), new, lambda: engine.translate(sentences, new, job["beams"])))


def read_rate(job):
    """Bytes a second: dot products of numbers that no cache holds."""
    import numpy

    threads = job["threads"]
    parts = [numpy.ones(job["bytes"] // 4 // threads, numpy.float32) for _ in range(threads)]
    rates = []
    for _ in range(7):
        readers = [threading.Thread(target=numpy.dot, args=(part, part)) for part in parts]
        begin = time.monotonic()
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        rates.append(sum(part.nbytes for part in parts) / (time.monotonic() - begin))
    return {"bytes_per_second": max(rates)}


def main(job):
    if job["engine"] == "memory":
        return read_rate(job)
    try:
        engine = PEERS[job["engine"]](job)
    except ModuleNotFoundError:
        sys.exit(77)
    except Unsupported as problem:
        return {"unsupported": str(problem)}
    result = {"version": engine.version}
    for measure in job["measures"]:
        if measure == "cold":
            result[measure] = measure_cold(engine, job)
        elif measure == "prompt":
            result[measure] = measure_prompt(engine, job)
        elif measure == "beams":
            result[measure] = measure_beams(engine, job)
        else:
            result[measure] = measure_batch(engine, job, int(measure))
    if job["measures"] != ["cold"]:
        if "beams" in job:
            result["tokens"] = engine.translate(job["sentences"], job["new"], job["beams"])[0]
        else:
            engine.prepare(1, len(job["short_prompts"][0]) + job["new"])
            result["tokens"] = engine.write(job["short_prompts"][:1], job["new"])[0]
    return result


if __name__ == "__main__":
    run_job(main, __doc__)

"""The workloads: configurations of zoo, and the same model, data and optimiser for the peers."""

import dataclasses
import json
import os
import random
from array import array
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measuring.processes import output_of
from benchmarks.measuring.program import ROOT, Failure

SPECIAL = ("pad", "bos", "eos")


@dataclass(frozen=True)
class Workload:
    """`shape` is the shape of the peers' model. `options` are the other keys of zoo's configuration that change. A
    `vocab_size` of None stands for the data's."""

    what: str
    corpus: str
    config: str
    peers: tuple
    batch: int
    steps: int
    valid_batches: int
    optimizer: dict
    shape: dict
    options: dict = field(default_factory=dict)
    for_gpu: bool = False  # too large for a CPU


GPT_OPTIMIZER = {"lr": 1e-3, "betas": [0.9, 0.99], "eps": 1e-8, "weight_decay": 0.1, "clip": 1.0}
TRANSLATION_OPTIMIZER = {"lr": 1e-3, "betas": [0.9, 0.98], "eps": 1e-9, "weight_decay": 0.01, "clip": 1.0}

WORKLOADS = {
    "gpt-small": Workload(
        what="GPT of 4 layers, 4 heads, 128 wide, context 64, batch 12, Shakespeare's characters",
        corpus="tinyshakespeare", config="configs/gpt/shakespeare-char-cpu.yaml", peers=("nanogpt", "pytorch"),
        batch=12, steps=250, valid_batches=100, optimizer=GPT_OPTIMIZER,
        shape={"vocab_size": None, "layers": 4, "heads": 4, "width": 128, "context": 64}),
    "gpt-medium": Workload(
        what="GPT of 6 layers, 6 heads, 384 wide, context 256, batch 8, Shakespeare's characters",
        corpus="tinyshakespeare", config="configs/gpt/shakespeare-char-cpu.yaml", peers=("nanogpt", "pytorch"),
        batch=8, steps=25, valid_batches=8, optimizer=GPT_OPTIMIZER,
        shape={"vocab_size": None, "layers": 6, "heads": 6, "width": 384, "context": 256}),
    "mixture": Workload(
        what="Mixtral of 4 layers, 4 heads, 256 wide, 8 experts of 512 inside, 2 of which work for a character, context 128, "
             "batch 8, Shakespeare's characters",
        corpus="tinyshakespeare", config="configs/gpt/shakespeare-char-cpu.yaml", peers=("transformers",),
        batch=8, steps=50, valid_batches=8, optimizer=GPT_OPTIMIZER,
        shape={"vocab_size": None, "layers": 4, "heads": 4, "width": 256, "context": 128, "inner_width": 512, "experts": 8,
               "active": 2},
        options={"model.norm": "rms_norm", "model.activation": "swiglu", "model.position": "rotary"}),
    "gpt2": Workload(
        what="GPT-2's 124 million: 12 layers, 12 heads, 768 wide, context 1024, vocabulary 50304, batch 16; "
             "Shakespeare's characters",
        corpus="tinyshakespeare", config="configs/gpt/shakespeare-char-cpu.yaml", peers=("nanogpt", "pytorch"),
        batch=16, steps=50, valid_batches=2, optimizer=GPT_OPTIMIZER, for_gpu=True,
        shape={"vocab_size": 50304, "layers": 12, "heads": 12, "width": 768, "context": 1024}),
    "seq2seq": Workload(
        what="encoder-decoder of 3 + 3 layers, 8 heads, 256 wide, 512 inside, vocabulary 8000, batches of 128 pairs of "
             "Multi30k cut to 16 tokens per side, dropout 0.1; tokens/s counts source and target, without padding",
        corpus="multi30k", config="configs/translation/multi30k.yaml", peers=("nn.Transformer",), batch=128, steps=25,
        valid_batches=8, optimizer=TRANSLATION_OPTIMIZER,
        shape={"vocab_size": 8000, "layers": 3, "heads": 8, "width": 256, "inner_width": 512, "length": 16,
               "dropout": 0.1, "label_smoothing": 0.1},
        # Both sides pad every batch to the same length, so that zoo's sorting of pairs by length has no effect.
        options={"data.bucket_by_length": "false", "training.batch_tokens": "null"}),
}


def tiny(workload):
    """A workload that does everything the real one does, but takes no time."""
    shape = workload.shape | {"layers": 1, "heads": 2, "width": 16}
    shape |= {"context": 16} if "context" in shape else {"vocab_size": 48, "length": 6}
    if "inner_width" in shape:
        shape["inner_width"] = 32
    if workload.for_gpu:
        shape["vocab_size"] = 100  # more than in the data, as in the real workload
    return dataclasses.replace(workload, what="a tiny model on made-up data", batch=16, steps=40, valid_batches=2,
                               shape=shape)


@dataclass(frozen=True)
class Job:
    """A workload with its data: everything that both sides need to train it."""

    name: str
    workload: Workload
    steps: int
    threads: int
    device: str
    precision: str
    env: dict
    data: dict
    peers: list
    data_options: dict
    overrides: list
    model_file: str | None = None
    parameters: int = 0

    @property
    def what(self):
        return self.workload.what

    @property
    def config(self):
        return ROOT / self.workload.config

    @property
    def untimed(self):
        return max(1, self.steps // 5)

    @property
    def warmup_steps(self):
        return self.steps // 10

    def with_steps(self, steps):
        return dataclasses.replace(self, steps=steps)

    def zoo_options(self):
        """The options --set KEY=VALUE that turn the configuration into this job."""
        workload, shape, optimizer = self.workload, self.workload.shape, self.workload.optimizer
        values = {
            "model.n_layers": shape["layers"], "model.n_heads": shape["heads"], "model.d_model": shape["width"],
            "training.precision": self.precision, "training.threads": self.threads, "training.steps": self.steps,
            "training.batch_size": workload.batch, "training.schedule.type": "constant",
            "training.schedule.warmup_steps": self.warmup_steps, "training.optimizer.type": "adamw",
            "training.clip_grad_norm": optimizer["clip"], "training.log_every": 1,
            "training.evaluate_every": self.steps, "training.evaluate_batches": workload.valid_batches,
            "training.checkpoint_every": self.steps,
            "generation.max_new_tokens": 1, "generation.beam": 1,
        }
        values |= {f"training.optimizer.{key}": value for key, value in optimizer.items() if key != "clip"}
        if "context" in shape:
            values |= {"data.sequence_length": shape["context"], "model.max_positions": shape["context"],
                       "model.vocab_size": shape["vocab_size"], "model.dropout": 0, "model.attention_dropout": 0}
        else:
            values |= {"data.sequence_length": shape["length"], "data.tokenizer.vocab_size": shape["vocab_size"],
                       "training.label_smoothing": shape["label_smoothing"]}
            values |= {f"model.{kind}dropout": shape["dropout"] for kind in ("", "attention_", "activation_")}
        if "inner_width" in shape:
            values["model.d_ff"] = shape["inner_width"]
        if "experts" in shape:  # without a loss of balance, which the peer does not compute either
            values |= {"model.experts.count": shape["experts"], "model.experts.active": shape["active"],
                       "model.experts.balance": 0}
        values |= workload.options | self.data_options
        pairs = [f"{key}={value}" for key, value in values.items()] + self.overrides
        return [word for pair in pairs for word in ("--set", pair)]

    def for_peer(self, peer, compiled):
        workload = self.workload
        return {"peer": peer, "compile": compiled, "steps": self.steps, "warmup_steps": self.warmup_steps,
                "threads": self.threads, "device": self.device, "precision": self.precision, "seed": 1,
                "batch": workload.batch, "valid_batches": workload.valid_batches,
                "shape": workload.shape, "optimizer": workload.optimizer, "data": self.data,
                "model_file": self.model_file}


# ---- Data ------------------------------------------------------------------------------------------------------------


def write_ids(path, ids):
    with open(path, "wb") as file:
        array("h", ids).tofile(file)
    return {"path": str(path), "ids": len(ids)}


def character_data(text, work):
    """The two splits of a text as ids of its characters, and the number of distinct characters. The last tenth is for
    validation, as with zoo's data.valid_fraction."""
    number = {character: i for i, character in enumerate(sorted(set(text)))}
    ids = [number[character] for character in text]
    cut = int((1 - 0.1) * len(ids))
    parts = {"train": ids[:cut], "valid": ids[cut:]}
    return {split: write_ids(work / f"{split}.ids", part) for split, part in parts.items()}, len(number)


def pair_data(zoo, root, shape, env, work):
    """The pairs as ids of zoo's own tokenizer, cut, with an end mark, and padded; and the options with which zoo uses this
    tokenizer."""
    vocabulary, length = work / "tokenizer", shape["length"]
    texts = {split: [root / f"multi30k/{split}.{side}" for side in ("de", "en")] for split in ("train", "val")}
    output_of([zoo, "tokenizer", "train", *texts["train"], "--out", vocabulary, "--vocab-size", shape["vocab_size"],
               "--no-byte-fallback"], env)
    special = json.loads((vocabulary / "tokenizer.json").read_text(encoding="utf-8"))["special"]
    data = {"special": {name: special[name] for name in SPECIAL}}
    for split, files in texts.items():
        sides = []
        for file in files:
            lines = output_of([zoo, "tokenizer", "encode", vocabulary], env, input=file.read_bytes()).splitlines()
            sides.append([[int(word) for word in line.split(",") if word] for line in lines])
        ids = []
        for pair in zip(*sides, strict=True):
            for row in pair:
                row = row[:length - 1] + [special["eos"]]
                ids += row + [special["pad"]] * (length - len(row))
        data["valid" if split == "val" else split] = write_ids(work / f"{split}.ids", ids)
    return data, {"data.tokenizer.path": vocabulary / "tokenizer.model"}


def make_up_corpora(root):
    """Writes small corpora of made-up words under the names of the real ones."""
    draw = random.Random(1)
    words = ["".join(draw.choices("abcdefghijkl", k=draw.randint(2, 5))) for _ in range(60)]
    sentences = [" ".join(draw.choices(words, k=draw.randint(1, 6))) for _ in range(400)]
    (root / "tinyshakespeare").mkdir(parents=True)
    (root / "tinyshakespeare/input.txt").write_text("\n".join(sentences) + "\n", encoding="utf-8")
    (root / "multi30k").mkdir()
    for split, lines in (("train", sentences[:64]), ("val", sentences[64:96])):
        for side, order in (("de", 1), ("en", -1)):
            text = "\n".join(" ".join(line.split()[::order]) for line in lines)
            (root / f"multi30k/{split}.{side}").write_text(text + "\n", encoding="utf-8")


def nanogpt_model(folder, work):
    """The path of model.py: in the checkout, or copied from the git directory."""
    if (folder / "model.py").is_file():
        return str((folder / "model.py").resolve())
    path = work / "nanogpt_model.py"
    path.write_text(output_of(["git", "-C", folder.resolve(), "show", "HEAD:model.py"], dict(os.environ)), encoding="utf-8")
    return str(path)


def prepare(name, arguments, work):
    """The job of a workload. Throws Failure."""
    workload = WORKLOADS[name]
    root = Path(os.environ.get("ZOO_DATA", ROOT / "datasets")).resolve()
    if arguments.smoke:
        workload, root = tiny(workload), work / "data"
        make_up_corpora(root)
    else:
        output_of([ROOT / "scripts/get_data.sh", workload.corpus], dict(os.environ, ZOO_DATA=str(root)))
    env = dict(os.environ, ZOO_DATA=str(root), ZOO_CACHE=str(work / "cache"), OMP_NUM_THREADS=str(arguments.threads))

    data_options = {}
    if workload.corpus == "tinyshakespeare":
        data, n_characters = character_data((root / "tinyshakespeare/input.txt").read_text(encoding="utf-8"), work)
        if workload.shape["vocab_size"] is None:
            workload = dataclasses.replace(workload, shape=workload.shape | {"vocab_size": n_characters})
    else:
        data, data_options = pair_data(arguments.zoo, root, workload.shape, env, work)
    peers = [peer for peer in workload.peers if not arguments.peers or peer in arguments.peers]
    model_file = None
    if "nanogpt" in peers:
        if arguments.nanogpt:
            model_file = nanogpt_model(arguments.nanogpt, work)
        elif arguments.peers:
            raise Failure("the peer nanogpt needs --nanogpt DIR, a checkout or git directory of nanoGPT")
        else:
            peers.remove("nanogpt")
    job = Job(name=name, workload=workload, steps=arguments.steps or workload.steps, threads=arguments.threads,
              device=arguments.device, precision=arguments.precision, env=env, data=data, peers=peers,
              data_options=data_options, overrides=arguments.overrides, model_file=model_file)
    inspected = json.loads(output_of([arguments.zoo, "inspect", job.config, "--json", *job.zoo_options()], env))
    return dataclasses.replace(job, parameters=inspected["parameters"])

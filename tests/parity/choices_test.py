#!/usr/bin/env python3
"""`zoo evaluate --choices` and lm-evaluation-harness give each choice of each question the same likelihood.

  choices_test.py PROGRAM written    against the harness' rule, written out here with transformers
  choices_test.py PROGRAM harness    against the package lm-eval itself, with its backend for transformers
  choices_test.py PROGRAM served     the package with its model local-completions, which asks `zoo serve`

The questions have the forms of HellaSwag and ARC; the models are random: GPT-2, a Llama with the proportions of SmolLM2, a Llama
whose tokenizer puts bos before texts, a T5. The last two parts need the package: pip install "lm-eval[api]==0.4.13" (it is no part of
scripts/references.txt, because it brings forty others). Without it they are skipped. ZOO_PYTHON: a Python that has it.
"""

import importlib.util
import json
import math
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from references_python import SKIPPED, begin  # noqa: E402
from zoo_copies import run_zoo  # noqa: E402

begin()
for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE"):
    os.environ[name] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

CLOSE = 2e-4  # nats of a choice
POSITIONS = 96
SHOTS = 2

HELLASWAG = [
    ("Removing ice from car: Then, the man writes over the snow covering the window of a car, and a woman wearing winter "
     "clothes smiles. then", ["the man adds wax to the windshield and cuts it.", "a person board a ski lift, while two men "
     "support the head of the person.", "the man puts on a christmas coat, knitted with netting.", "the man continues removing "
     "the snow on his car."]),
    ("Baking cookies: A female chef in white uniform shows a stack of baking pans in a large kitchen presenting them. the pans",
     ["contain egg yolks and baking soda.", "are then sprinkled with brown sugar.", "are placed in a strainer on the counter.",
      "are filled with pastries and loaded into the oven."]),
    ("How to peel a pomegranate. Cut it in half.  ", ["Hold each half over a bowl.", "Öffne sie — vorsichtig.", "石榴は赤い。"]),
    ("", ["It was a dark night.", "the the the of", " a blank before it"]),
    ("The last line ends.\n", ["Next line", "\nnext line", "x"]),
]  # fmt: skip
ARC = [
    ("Which factor will most likely cause a person to develop a fever?", ["a leg muscle relaxing after exercise",
     "a bacterial population in the bloodstream", "several viral particles on the skin", "carbohydrates being digested"], 1),
    ("Lichens are symbiotic organisms made of green algae and fungi. What do the green algae supply to the fungi?",
     ["carbon dioxide", "food", "protection", "water"], 1),
    ("Which of these is a compound?", ["H2O", "O2", "Fe"], 0),
    ("How many legs has a spider?", ["8", "6", "4", "100", "none at all"], 0),
]  # fmt: skip


def questions():
    """The rows of the two files: those that are asked, and those that stand before them."""
    rows = [{"context": context, "choices": choices, "answer": (3 * i + 1) % len(choices)}
            for i, (context, choices) in enumerate(HELLASWAG)]  # fmt: skip
    arc = [{"context": f"Question: {question}\nAnswer:", "choices": choices, "answer": answer} for question, choices, answer in ARC]
    # Too long for the models: tokens of the beginning are left out.
    rows.append({**rows[0], "context": rows[1]["context"] + " " + rows[0]["context"] + " " + rows[1]["context"]})
    return rows + arc[1:], [arc[0], arc[2], arc[3]]  # two of them are asked, too


def tokenizer_of(bos=False, eos=False):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    texts = [row["context"] + " " + " ".join(row["choices"]) for row in sum(questions(), [])]
    trainer = trainers.BpeTrainer(vocab_size=420, special_tokens=["<|endoftext|>", "<s>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())  # fmt: skip
    tokenizer.train_from_iterator(texts, trainer)
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    if eos:
        tokenizer.post_processor = processors.TemplateProcessing(single="$A <|endoftext|>", special_tokens=[("<|endoftext|>", 0)])
    special = {"eos_token": "<|endoftext|>", "bos_token": "<s>" if bos else "<|endoftext|>"}
    if eos:
        special = {"eos_token": "<|endoftext|>", "pad_token": "<s>"}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=POSITIONS, **special)


def make_models(folder):
    import torch
    import transformers as t

    llama = {"hidden_size": 72, "intermediate_size": 192, "num_attention_heads": 9, "num_key_value_heads": 3,
             "num_hidden_layers": 3, "max_position_embeddings": POSITIONS, "rms_norm_eps": 1e-5,
             "rope_parameters": {"rope_type": "default", "rope_theta": 100000.0}, "tie_word_embeddings": True}  # fmt: skip
    kinds = {
        "gpt2": (tokenizer_of(), t.GPT2LMHeadModel, t.GPT2Config(n_embd=32, n_layer=2, n_head=2, n_positions=POSITIONS,
                                                                 bos_token_id=0, eos_token_id=0)),
        "smollm2": (tokenizer_of(), t.LlamaForCausalLM, t.LlamaConfig(**llama, bos_token_id=0, eos_token_id=0)),
        "llama-bos": (tokenizer_of(bos=True), t.LlamaForCausalLM,
                      t.LlamaConfig(**{**llama, "num_hidden_layers": 1}, bos_token_id=1, eos_token_id=0)),
        "t5": (tokenizer_of(eos=True), t.T5ForConditionalGeneration,
               t.T5Config(d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, n_positions=POSITIONS, pad_token_id=1,
                          eos_token_id=0, decoder_start_token_id=1)),
    }  # fmt: skip
    for name, (tokenizer, kind, config) in kinds.items():
        torch.manual_seed(7)
        config.vocab_size = len(tokenizer)
        model = kind(config).eval()
        with torch.no_grad():  # as sure of itself as a trained model
            for weights in model.parameters():
                if weights.dim() > 1:
                    weights.mul_(6 if name != "t5" else 1.5)
        model.save_pretrained(folder / name)
        tokenizer.save_pretrained(folder / name)
    return list(kinds)


def write_rows(path, rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def zoo(program, folder, *words):
    done = run_zoo(program, *words, cwd=folder)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def ours(program, folder, name, shots):
    """What `zoo evaluate` says of all questions, and of each."""
    more = ["--shots", shots, "--shots-from", "shots.jsonl"] if shots else []
    metrics = json.loads(zoo(program, folder, "evaluate", name, "--choices", "asked.jsonl", *more, "--examples",
                             "examples.jsonl", "--device", "cpu", "--json"))  # fmt: skip
    return metrics, [json.loads(line) for line in (folder / "examples.jsonl").read_text(encoding="utf-8").splitlines()]


class Written:
    """The rule, written out: the prompts of lm_eval.api.task, and TemplateLM._encode_pair and HFLM._loglikelihood_tokens."""

    def __init__(self, folder, name):
        import transformers

        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder / name)
        self.is_answering = name == "t5"
        kind = transformers.AutoModelForSeq2SeqLM if self.is_answering else transformers.AutoModelForCausalLM
        self.model = kind.from_pretrained(folder / name).eval()
        bos = self.tokenizer.bos_token_id
        self.prefix = bos if bos is not None else self.tokenizer.eos_token_id

    def tokens(self, context, choice):
        def encode(text, **options):
            return self.tokenizer.encode(text, **options)

        if context == "":
            return [self.prefix], encode(choice, add_special_tokens=False)
        words = context.rstrip()
        choice, context = context[len(words) :] + choice, words
        if self.is_answering:
            return encode(context), encode(choice, add_special_tokens=False)
        before = encode(context)
        return before, encode(context + choice)[len(before) :]

    def likelihood(self, context, choice):
        import torch

        before, after = self.tokens(context, choice)
        with torch.no_grad():
            if self.is_answering:
                logits = self.model(input_ids=torch.tensor([before]), labels=torch.tensor([after])).logits[0]
            else:
                read = torch.tensor([(before + after)[-(POSITIONS + 1) :][:-1]])
                logits = self.model(read).logits[0, -len(after) :]
        found = logits.double().log_softmax(-1)
        return sum(row[token].item() for row, token in zip(found, after, strict=True))

    def ask(self, asked, pool, shots):
        found = []
        for row in asked:
            before = [one for one in pool if one != row][:shots]
            context = "".join(f"{one['context']} {one['choices'][one['answer']]}\n\n" for one in before) + row["context"]
            found.append([self.likelihood(context, " " + choice) for choice in row["choices"]])
        return found


def task_file(folder, shots, delimiter):
    """A task of the harness over the questions."""
    (folder / "tasks").mkdir(exist_ok=True)
    name = f"asked{shots}" if delimiter else "unspaced"
    (folder / "tasks" / f"{name}.yaml").write_text(
        f"task: {name}\ndataset_path: json\ndataset_kwargs: {{data_files: {{train: {folder}/shots.jsonl, "
        f"test: {folder}/asked.jsonl}}}}\ntraining_split: train\ntest_split: test\noutput_type: multiple_choice\n"
        f"doc_to_text: context\ndoc_to_choice: choices\ndoc_to_target: answer\nnum_fewshot: {shots}\n"
        f"target_delimiter: '{delimiter}'\n"
        "fewshot_split: train\nfewshot_config: {sampler: first_n}\n"
        "metric_list: [{metric: acc}, {metric: acc_norm}]\n"
    )
    return name


def ask_harness(folder, model, shots, delimiter=" "):
    from lm_eval import simple_evaluate
    from lm_eval.tasks import TaskManager

    name = task_file(folder, shots, delimiter)
    manager = TaskManager(include_path=str(folder / "tasks"), include_defaults=False)
    result = simple_evaluate(model=model, tasks=[name], task_manager=manager, log_samples=True, bootstrap_iters=10)
    samples = sorted(result["samples"][name], key=lambda sample: sample["doc_id"])
    return result["results"][name], samples


def hf_model(folder, name):
    import transformers
    from lm_eval.models.huggingface import HFLM

    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / name)
    kind = transformers.AutoModelForSeq2SeqLM if name == "t5" else transformers.AutoModelForCausalLM
    # T5 has no limit of its own.
    return HFLM(pretrained=kind.from_pretrained(folder / name).eval(), tokenizer=tokenizer, device="cpu", batch_size=3,
                max_length=512 if name == "t5" else POSITIONS, backend="seq2seq" if name == "t5" else "causal")  # fmt: skip


def index_of_largest(values):
    return max(range(len(values)), key=lambda i: (values[i], -i))


def check_likelihoods(what, asked, examples, theirs):
    assert len(examples) == len(asked) == len(theirs), what
    for row, example, likelihoods in zip(asked, examples, theirs, strict=True):
        different = max(abs(a - b) for a, b in zip(example["log_likelihoods"], likelihoods, strict=True))
        assert different < CLOSE, (what, row["context"], example["log_likelihoods"], likelihoods)
        by_length = [one / len(choice) for one, choice in zip(likelihoods, row["choices"])]
        assert example["chosen"] == index_of_largest(likelihoods), (what, row["context"])
        assert example["chosen_norm"] == index_of_largest(by_length), (what, row["context"])
        assert example["answer"] == row["answer"] and example["input"] == row["context"], what
        right = row["choices"][row["answer"]]
        assert example["target"] == right and example["bytes"] == len(right.encode()), what
        assert abs(example["loss"] + likelihoods[row["answer"]]) < CLOSE, what


def check_metrics(what, metrics, asked, examples):
    n = len(asked)
    for key, chosen in (("acc", "chosen"), ("acc_norm", "chosen_norm")):
        right = [float(example[chosen] == example["answer"]) for example in examples]
        mean = sum(right) / n
        error = math.sqrt(sum((one - mean) ** 2 for one in right) / (n - 1)) / math.sqrt(n)
        assert abs(metrics[key] - mean) < 1e-12 and abs(metrics[key + "_stderr"] - error) < 1e-12, (what, key, metrics)
    bits = sum(example["loss"] for example in examples) / math.log(2)
    assert abs(metrics["bits_per_byte"] - bits / sum(example["bytes"] for example in examples)) < 1e-9, (what, metrics)


def written(program, folder, names):
    asked, pool = questions()
    for name in names:
        reference = Written(folder, name)
        for shots in (0, SHOTS):
            metrics, examples = ours(program, folder, name, shots)
            check_likelihoods((name, shots), asked, examples, reference.ask(asked, pool, shots))
            check_metrics((name, shots), metrics, asked, examples)


def harness(program, folder, names):
    # The harness takes the shots of other files as they are, also the question itself.
    asked = [row for row in questions()[0] if row not in questions()[1]]
    write_rows(folder / "asked.jsonl", asked)
    for name in names:
        model = hf_model(folder, name)
        for shots in (0, SHOTS):
            metrics, examples = ours(program, folder, name, shots)
            results, samples = ask_harness(folder, model, shots)
            theirs = [[found[0] for found in sample["filtered_resps"]] for sample in samples]
            check_likelihoods((name, shots), asked, examples, theirs)
            for example, sample in zip(examples, samples, strict=True):
                assert float(example["chosen"] == example["answer"]) == sample["acc"], (name, sample)
                assert float(example["chosen_norm"] == example["answer"]) == sample["acc_norm"], (name, sample)
            for key in ("acc", "acc_norm"):
                assert abs(metrics[key] - results[f"{key},none"]) < 1e-12, (name, metrics, results)
                assert abs(metrics[f"{key}_stderr"] - results[f"{key}_stderr,none"]) < 1e-12, (name, metrics, results)


def with_likeliest(reference, rows):
    """The questions that have the model's likeliest token among the choices, where that is text."""
    import torch

    found = []
    for row in rows:
        before, _ = reference.tokens(row["context"], "x")
        with torch.no_grad():
            token = reference.model(torch.tensor([before[-POSITIONS:]])).logits[0, -1].argmax().item()
        text = reference.tokenizer.decode([token])
        if reference.tokens(row["context"], text)[1] == [token]:
            found.append({**row, "choices": [*row["choices"], text]})
    return found


def served(program, folder, names):
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "serving"))
    from lm_eval.models.openai_completions import LocalCompletionsAPI
    from server import serving

    def check_same(name, reference, asked, wanted, samples):
        """How many choices are the likeliest."""
        n_likeliest = 0
        for row, sample, one in zip(asked, samples, wanted, strict=True):
            for choice, found, right, pair in zip(row["choices"], sample["filtered_resps"], one["filtered_resps"],
                                                  one["arguments"], strict=True):  # fmt: skip
                if sum(map(len, reference.tokens(*pair))) >= POSITIONS:
                    continue  # local-completions keeps one token less of the context
                assert abs(found[0] - right[0]) < CLOSE and found[1] == right[1], (name, choice, found, right)
                n_likeliest += found[1]
        return n_likeliest

    decoders = [name for name in names if name != "t5"]
    n_likeliest = 0
    with serving(program, [folder / name for name in decoders]) as address:
        for name in decoders:
            asked, shots, reference = questions()[0], SHOTS if name == "gpt2" else 0, Written(folder, name)
            # A text that begins with bos gets a second one.
            ways = ((4, True, 1), (3, False, 1), (2, True, 3)) if name == "gpt2" else ((4, True, 1),)

            def model(batch_size, as_ids, concurrent):
                return LocalCompletionsAPI(base_url=f"{address}/v1/completions", model=name, tokenizer=str(folder / name),
                                           tokenized_requests=as_ids, batch_size=batch_size, max_length=POSITIONS,
                                           num_concurrent=concurrent, max_retries=1, add_bos_token=name == "llama-bos")  # fmt: skip

            write_rows(folder / "asked.jsonl", asked)
            _, wanted = ask_harness(folder, hf_model(folder, name), shots)
            for way in ways:
                _, samples = ask_harness(folder, model(*way), shots)
                check_same(name, reference, asked, wanted, samples)
            asked = with_likeliest(reference, asked)
            if asked:
                write_rows(folder / "asked.jsonl", asked)
                _, wanted = ask_harness(folder, hf_model(folder, name), 0, delimiter="")
                _, samples = ask_harness(folder, model(4, True, 1), 0, delimiter="")
                n_likeliest += check_same(name, reference, asked, wanted, samples)
    assert n_likeliest > 2, "no choice is the likeliest"

    # The harness can ask the server for its tokens, too.
    asked, reference = questions()[0], Written(folder, "smollm2")
    write_rows(folder / "asked.jsonl", asked)
    with serving(program, [folder / "smollm2"]) as address:
        remote = LocalCompletionsAPI(base_url=f"{address}/v1/completions", model="smollm2", tokenizer_backend="remote",
                                     batch_size=4, max_length=POSITIONS, max_retries=1)  # fmt: skip
        _, wanted = ask_harness(folder, hf_model(folder, "smollm2"), 0)
        _, samples = ask_harness(folder, remote, 0)
        check_same("remote", reference, asked, wanted, samples)
        assert remote.tokenizer.eos_token_id == 0 and remote.tokenizer.eos_token == "<|endoftext|>"
        assert remote.tokenizer.decode(reference.tokenizer("Which of these?")["input_ids"]) == "Which of these?"


def main():
    program, part = str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2]
    if part != "written" and not importlib.util.find_spec("lm_eval"):
        print('no package lm_eval: pip install "lm-eval[api]==0.4.13" into the Python that ZOO_PYTHON names')
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory() as made:
        folder = pathlib.Path(made)
        os.environ["HF_HOME"] = str(folder / "hf")
        names = make_models(folder)
        asked, pool = questions()
        write_rows(folder / "asked.jsonl", asked)
        write_rows(folder / "shots.jsonl", pool)
        {"written": written, "harness": harness, "served": served}[part](program, folder, names)


main()

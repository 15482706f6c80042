#!/usr/bin/env python3
"""Times, languages and long recordings of Whisper models are those of transformers' generate(), from the same WAV files.

  listener_test.py PROGRAM

The models are random, with windows of one second. ZOO_PYTHON: a Python with transformers; default that of .venv.
"""

import json
import math
import pathlib
import random
import re
import sys
import tempfile
import wave

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from references_python import begin  # noqa: E402
from zoo_copies import run_zoo  # noqa: E402

RATE = 16000
SECONDS = (0.7, 1.0, 2.3, 4.61)
LANGUAGES = ("en", "de", "haw")


def as_read(text):
    """Without what depends on how bytes that are no UTF-8 are shown."""
    return " ".join(re.sub("\ufffd+", "\ufffd", text).split())


def write_sounds(directory):
    """Recordings of random tones, and their samples."""
    sounds = []
    for index, seconds in enumerate(SECONDS):
        draw, samples = random.Random(index), []
        while len(samples) < int(seconds * RATE):
            tone, loud = draw.uniform(100, 3000), draw.uniform(0, 14000)
            samples += [round(loud * math.sin(2 * math.pi * tone * i / RATE)) for i in range(draw.randrange(1000, 6000))]
        samples = samples[: int(seconds * RATE)]
        path = directory / f"{index}.wav"
        with wave.open(str(path), "wb") as file:
            file.setnchannels(1), file.setsampwidth(2), file.setframerate(RATE)
            file.writeframes(b"".join(sample.to_bytes(2, "little", signed=True) for sample in samples))
        sounds.append((path.name, [sample / 32768 for sample in samples]))
    return sounds


def make_model(directory, seed):
    import torch
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import (PreTrainedTokenizerFast, WhisperConfig, WhisperFeatureExtractor,
                              WhisperForConditionalGeneration)

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(["it was a dark and stormy night"], trainers.BpeTrainer(
        vocab_size=270, show_progress=False, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))  # fmt: skip
    special = ["<|endoftext|>", "<|startoftranscript|>", *(f"<|{code}|>" for code in LANGUAGES), "<|translate|>",
               "<|transcribe|>", "<|notimestamps|>"]
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in special])
    tokenizer.add_tokens([AddedToken(f"<|{i / 50:.2f}|>", normalized=False) for i in range(51)])
    id_of = tokenizer.token_to_id
    end = id_of("<|endoftext|>")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=special[0], bos_token=special[0], unk_token=special[0],
                            pad_token=special[0]).save_pretrained(directory)  # fmt: skip
    config = WhisperConfig(
        vocab_size=tokenizer.get_vocab_size(), num_mel_bins=8, d_model=12, encoder_layers=2, decoder_layers=2,
        encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=22, decoder_ffn_dim=22,
        max_source_positions=50, max_target_positions=32, decoder_start_token_id=id_of("<|startoftranscript|>"),
        bos_token_id=end, eos_token_id=end, pad_token_id=end, suppress_tokens=None, begin_suppress_tokens=None,
    )  # fmt: skip
    torch.manual_seed(seed)
    model = WhisperForConditionalGeneration._from_config(config, attn_implementation="eager").eval()
    with torch.no_grad():
        for name, weights in model.named_parameters():
            is_gain = weights.dim() == 1 and name.endswith("weight")
            weights.normal_(1.0 if is_gain else 0.0, 0.25)
            if weights.dim() > 1 and "decoder" in name:
                weights *= 3
    generation = model.generation_config
    generation.is_multilingual, generation.return_timestamps = True, False
    generation.lang_to_id = {f"<|{code}|>": id_of(f"<|{code}|>") for code in LANGUAGES}
    generation.task_to_id = {task: id_of(f"<|{task}|>") for task in ("translate", "transcribe")}
    generation.no_timestamps_token_id = id_of("<|notimestamps|>")
    generation.suppress_tokens = [id_of("!"), *generation.lang_to_id.values(), *generation.task_to_id.values(),
                                  config.decoder_start_token_id, generation.no_timestamps_token_id]  # fmt: skip
    generation.max_initial_timestamp_index = [None, 20][seed % 2]
    generation.max_length = config.max_target_positions
    model.save_pretrained(directory)
    WhisperFeatureExtractor(feature_size=8, chunk_length=1).save_pretrained(directory)
    return model, tokenizer, WhisperFeatureExtractor(feature_size=8, chunk_length=1)


def theirs(model, tokenizer, extractor, samples, **options):
    """The segments that transformers hears."""
    import torch

    inputs = extractor(samples, sampling_rate=RATE, return_tensors="pt", truncation=False, padding="longest",
                       return_attention_mask=True)  # fmt: skip
    features, mask = inputs.input_features, inputs.attention_mask
    if features.shape[-1] <= 100:  # it takes them for a whole window otherwise
        features = torch.nn.functional.pad(features, (0, 101 - features.shape[-1]))
        mask = torch.nn.functional.pad(mask, (0, features.shape[-1] - mask.shape[-1]))
    features, mask = features.repeat(2, 1, 1), mask.repeat(2, 1)  # of one alone it does not look at the mask
    with torch.no_grad():
        result = model.generate(features, attention_mask=mask, return_timestamps=True, return_segments=True,
                                do_sample=False, **options)  # fmt: skip
    first_time = model.generation_config.no_timestamps_token_id + 1
    segments = []
    for segment in result["segments"][0]:
        text = tokenizer.decode([i for i in segment["tokens"].tolist() if i < first_time], skip_special_tokens=True)
        if text.strip():
            segments.append((round(float(segment["start"]), 4), round(float(segment["end"]), 4), as_read(text)))
    return segments


def main():
    begin()
    import torch

    program = pathlib.Path(sys.argv[1]).resolve()
    n_segments, languages = 0, set()
    with tempfile.TemporaryDirectory() as made:
        made = pathlib.Path(made)
        sounds = write_sounds(made)

        def zoo(*words, status=0):
            done = run_zoo(program, *words, cwd=made)
            assert done.returncode == status, (words, done.returncode, done.stderr)
            return done.stdout if status == 0 else done.stderr

        for seed in range(4):
            model, tokenizer, extractor = make_model(made / f"model-{seed}", seed)
            cases = [({}, []), ({"language": "de"}, ["--language", "de"]),
                     ({"language": "haw", "task": "translate"}, ["--language", "haw", "--task", "translate"])]  # fmt: skip
            for options, flags in cases:
                said = json.loads(zoo("predict", f"model-{seed}", "--device", "cpu", "--json", "--timestamps", *flags, "--audio",
                                      *(name for name, _ in sounds)))["results"]  # fmt: skip
                for (name, samples), ours in zip(sounds, said, strict=True):
                    wanted = theirs(model, tokenizer, extractor, samples, **{"language": "en", "task": "transcribe", **options})
                    found = [(round(s["start"], 4), round(s["end"], 4), as_read(s["text"])) for s in ours["segments"]]
                    assert found == wanted, (seed, options, name, found, wanted)
                    n_segments += len(found)
            # The language that a model hears is the likeliest one at the first place.
            said = json.loads(zoo("predict", f"model-{seed}", "--device", "cpu", "--json", "--language", "auto", "--audio",
                                  *(name for name, _ in sounds[:2])))["results"]  # fmt: skip
            for (name, samples), ours in zip(sounds[:2], said, strict=True):
                features = extractor(samples, sampling_rate=RATE, return_tensors="pt").input_features
                with torch.no_grad():
                    ids = model.detect_language(input_features=features)
                assert f"<|{ours['language']}|>" == tokenizer.id_to_token(int(ids[0])), (seed, name, ours)
                assert "segments" not in ours, ours
                languages.add(ours["language"])
        # A long recording is heard whole without times, too, and its subtitles are its segments.
        text = json.loads(zoo("predict", "model-0", "--device", "cpu", "--json", "--audio", "3.wav"))["results"][0]
        zoo("predict", "model-0", "--device", "cpu", "--subtitles", "3.srt", "--audio", "3.wav")
        zoo("predict", "model-0", "--device", "cpu", "--subtitles", ".", "--audio", "2.wav", "3.wav")
        assert "segments" not in text and text["text"], text
        assert (made / "3.srt").read_text().startswith("1\n00:00:0"), (made / "3.srt").read_text()
        assert " --> " in (made / "2.srt").read_text()
        assert "knows de, en, haw" in zoo("predict", "model-0", "--language", "xx", "--audio", "0.wav", status=2)
        assert "NAME.srt" in zoo("predict", "model-0", "--subtitles", "a.txt", "--audio", "0.wav", status=2)
    assert n_segments > 20, n_segments
    print(f"equal: {n_segments} segments, languages {sorted(languages)}")


if __name__ == "__main__":
    main()

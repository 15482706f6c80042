"""The lens, ablations, patches and parts of a logit, written out with hooks on transformers' models with random weights.

For each case NAME: NAME/ is the directory of the model, NAME.safetensors has the inputs and the logits:
  lens, mapped/lens             (N + 1, M, V) of the first row, without and with the maps mapped/weight and mapped/bias
  trained/WHAT                  of LENS_STEPS steps of Adam on the first row from zeros: weight (N, D, D) and bias (N, D); before and
                                after, (N): the divergences of the second row
  BY_WHAT                       (B, M, V): BY zero, mean or resample; WHAT head, attention, feed_forward, positions, source
  patch_heads, patch_WHAT       (layers, heads, V) and (layers, T, V): of the second row with activations of the first
  part/NAME                     a part of the logit OUTPUT at place PLACE of the first row
  attribution/BY/SIDE           (T), or (rows, columns) of a picture: of the logit OUTPUT less that of AGAINST at place PLACE of the
                                first row; BY zero, mean or token (integrated gradients), or gradient_input; SIDE source or target
  scores/BY                     (2): of the baseline and of the input
"""

import contextlib

import numpy
import torch
from reference import contiguous
from reference_interop import (
    LABELS,
    byte_level_bpe,
    fast,
    llama_tokenizer,
    random_weights,
    t5_tokenizer,
    word_pieces,
    write_model,
)
from safetensors.torch import save_file

B, T = 2, 9
LAYER, HEAD, POSITIONS = 1, 1, [2, 5]
PLACE, OUTPUT, AGAINST = 6, 17, 4
STEPS, BASELINE_TOKEN = 20, 7
PATCH = 4
LENS_STEPS, LENS_RATE = 4, 0.02


class Side:
    """A stack of a model: its layers, and of each layer the maps behind its sub-layers."""

    def __init__(self, prefix, n_heads, layers, outs, feed_forwards, cross_outs=(), norms=()):
        self.prefix, self.n_heads, self.layers = prefix, n_heads, list(layers)
        self.outs, self.feed_forwards, self.cross_outs = list(outs), list(feed_forwards), list(cross_outs)
        self.norms = list(norms)  # behind each sum: (attention, feed-forward) of each layer


class Hooks(contextlib.ExitStack):
    def before(self, module, change):
        def hook(_, arguments, keywords):
            if arguments:
                return (change(arguments[0]), *arguments[1:]), keywords
            return arguments, keywords | {"hidden_states": change(keywords["hidden_states"])}

        self.callback(module.register_forward_pre_hook(hook, with_kwargs=True).remove)

    def after(self, module, change):
        def hook(_, __, output):
            return (change(output[0]), *output[1:]) if isinstance(output, tuple) else change(output)

        self.callback(module.register_forward_hook(hook).remove)


class Case:
    def __init__(self, model, side, inputs, logits, unembed, source=None, tables=None):
        """logits(**inputs) → (B, M, V); unembed(residual) → logits; source: the other side, if there is one.

        tables: of each input of tokens the name of the argument that takes vectors in its place, and their table.
        """
        self.tables = tables
        self.model, self.side, self.inputs, self.logits, self.unembed = model, side, inputs, logits, unembed
        self.source = source

    def places(self):
        """Every sub-layer of the side: name → (module, hook kind)."""
        side, found = self.side, {}
        for i, layer in enumerate(side.layers):
            found[f"residual.{i}"] = (layer, Hooks.before)
            found[f"heads.{i}"] = (side.outs[i], Hooks.before)
            found[f"attention.{i}"] = (side.outs[i], Hooks.after)
            found[f"feed_forward.{i}"] = (side.feed_forwards[i], Hooks.after)
            if side.cross_outs:
                found[f"cross_heads.{i}"] = (side.cross_outs[i], Hooks.before)
                found[f"cross_attention.{i}"] = (side.cross_outs[i], Hooks.after)
        return found

    def record(self):
        known = {}
        with Hooks() as hooks:
            for name, (module, hook) in self.places().items():

                def keep(x, name=name):
                    known[name] = x.clone()
                    return x

                hook(hooks, module, keep)
            last = self.side.layers[-1]
            hooks.after(last, lambda x: known.setdefault(f"residual.{len(self.side.layers)}", x.clone()))
            known["logits"] = self.logits(**self.inputs)
        return known

    def changed(self, name, change, inputs=None):
        module, hook = self.places()[name]
        with Hooks() as hooks:
            hook(hooks, module, change)
            return self.logits(**(inputs or self.inputs))


def of_head(x, n_heads, head):
    """The numbers of one head in (…, H·Dh)."""
    width = x.shape[-1] // n_heads
    return x[..., head * width : (head + 1) * width]


def replaced(old, new, n_heads=None, head=None, positions=None):
    result = old.clone()
    into = result if head is None else of_head(result, n_heads, head)
    new = new.expand_as(old)
    new = new if head is None else of_head(new, n_heads, head)
    if positions is None:
        into[:] = new
    else:
        into[:, positions] = new[:, positions]
    return result


def ablations(case, known):
    side, n_heads, outputs = case.side, case.side.n_heads, {}
    for by in ("zero", "mean", "resample"):
        def other(name, by=by):
            x = known[name]
            return {"zero": torch.zeros_like(x), "mean": x.mean((0, 1)), "resample": x.roll(-1, 0)}[by]

        def change(name, **which):
            return case.changed(name, lambda x: replaced(x, other(name), n_heads, **which))

        outputs[f"{by}_head"] = change(f"heads.{LAYER}", head=HEAD)
        outputs[f"{by}_attention"] = change(f"attention.{LAYER}")
        outputs[f"{by}_feed_forward"] = change(f"feed_forward.{LAYER - 1}")
        outputs[f"{by}_positions"] = change(f"heads.{LAYER}", head=HEAD, positions=POSITIONS)
        if side.cross_outs:
            outputs[f"{by}_cross"] = change(f"cross_heads.{LAYER}", head=HEAD)
    if case.source:
        out, n_heads = case.source.outs[0], case.source.n_heads
        with Hooks() as hooks:
            hooks.before(out, lambda x: replaced(x, torch.zeros_like(x), n_heads, head=HEAD))
            outputs["zero_source"] = case.logits(**case.inputs)
    return outputs


def patches(case, known, place):
    """The second row with activations of the first one."""
    second = {name: value[1:] for name, value in case.inputs.items()}
    n = len(case.side.layers)
    length = known["residual.0"].shape[1]

    def patched(name, **which):
        clean = known[name][:1]
        return case.changed(name, lambda x: replaced(x, clean, case.side.n_heads, **which), second)[0, place]

    heads = [[patched(f"heads.{i}", head=h) for h in range(case.side.n_heads)] for i in range(n)]
    outputs = {"patch_heads": torch.stack([torch.stack(row) for row in heads])}
    for what in ("residual", "attention", "feed_forward"):
        rows = [[patched(f"{what}.{i}", positions=[t]) for t in range(length)] for i in range(n)]
        outputs[f"patch_{what}"] = torch.stack([torch.stack(row) for row in rows])
    return outputs


def tuned_lens(case, known):
    """Maps x + A x + b before the final norm and the head (Belrose et al. 2023): given ones, and some steps of a training."""
    n, width = len(case.side.layers), known["residual.0"].shape[-1]
    numbers = torch.Generator().manual_seed(1)

    def shares(row, depth, weight, bias):
        x = known[f"residual.{depth}"][row : row + 1]
        if depth < n:
            x = x + torch.nn.functional.linear(x, weight[depth], bias[depth])
        return case.unembed(x)[0].log_softmax(-1)

    def divergences(row, *maps):
        final = shares(row, n, *maps)
        return torch.stack(
            [torch.nn.functional.kl_div(shares(row, i, *maps), final, reduction="batchmean", log_target=True)
             for i in range(n)]
        )  # fmt: skip

    given = [0.2 * torch.randn(n, width, width, generator=numbers), torch.randn(n, width, generator=numbers)]
    lens = [case.unembed(known[f"residual.{i}"][:1] @ (torch.eye(width) + given[0][i]).t() + given[1][i]) for i in range(n)]
    lens.append(case.unembed(known[f"residual.{n}"][:1]))
    maps = [torch.zeros(n, width, width, requires_grad=True), torch.zeros(n, width, requires_grad=True)]
    outputs = {"mapped/weight": given[0], "mapped/bias": given[1], "mapped/lens": torch.cat(lens)}
    outputs["trained/before"] = divergences(1, *maps)
    adam = torch.optim.Adam(maps, lr=LENS_RATE)
    schedule = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: 1 - step / LENS_STEPS)
    for _ in range(LENS_STEPS):
        with torch.enable_grad():
            gradients = torch.autograd.grad(divergences(0, *maps).sum(), maps)
        for tensor, gradient in zip(maps, gradients):
            tensor.grad = gradient
        adam.step()
        schedule.step()
    outputs |= {"trained/weight": maps[0].detach(), "trained/bias": maps[1].detach()}
    outputs["trained/after"] = divergences(1, *maps)
    return outputs


def integral(gradient_at, x, baseline):
    """Integrated gradients as captum has them: x and baseline are lists of tensors, gradient_at(inputs) a list."""
    nodes, weights = numpy.polynomial.legendre.leggauss(STEPS)
    sums = [torch.zeros_like(each, dtype=torch.double) for each in x]
    for node, weight in zip((1 + nodes) / 2, weights / 2):
        between = [b + node * (each - b) for each, b in zip(x, baseline)]
        for total, gradient in zip(sums, gradient_at(between)):
            total += weight * gradient.double()
    return [(each - b).double() * total for each, b, total in zip(x, baseline, sums)]


def attributions(case, place):
    """Of the first row, by gradients at the vectors of tokens or at the pixels."""
    tables = case.tables
    if tables:
        names = [name for name, _ in tables.values()]
        x = [table(case.inputs[key][:1]).detach() for key, (_, table) in tables.items()]
        weights = [table.weight.detach() for _, table in tables.values()]
        baselines = {
            "zero": [torch.zeros_like(each) for each in x],
            "mean": [weight.mean(0).expand_as(each) for each, weight in zip(x, weights)],
            "token": [weight[BASELINE_TOKEN].expand_as(each) for each, weight in zip(x, weights)],
        }
    else:
        names, x = ["pixel_values"], [case.inputs["pixel_values"][:1]]
        baselines = {"zero": [torch.zeros_like(x[0])], "mean": [x[0].mean((2, 3), keepdim=True).expand_as(x[0])]}

    def score(inputs):
        logits = case.logits(**dict(zip(names, inputs)))[0, place]
        return logits[OUTPUT % len(logits)] - logits[AGAINST % len(logits)]

    def gradient_at(inputs):
        leaves = [each.detach().requires_grad_() for each in inputs]
        with torch.enable_grad():
            return torch.autograd.grad(score(leaves), leaves)

    def by_place(values):
        if tables:
            return values[0].sum(-1)
        rows, columns = (n // PATCH for n in values.shape[2:])
        return values[0].sum(0).view(rows, PATCH, columns, PATCH).sum((1, 3))

    found = {by: integral(gradient_at, x, baseline) for by, baseline in baselines.items()}
    found["gradient_input"] = [each.double() * gradient.double() for each, gradient in zip(x, gradient_at(x))]
    outputs = {f"scores/{by}": torch.stack([score(baseline), score(x)]) for by, baseline in baselines.items()}
    for by, values in found.items():
        for side, value in zip(("source", "target"), values):
            outputs[f"attribution/{by}/{side}"] = by_place(value)
    return outputs


def frozen(parts, norm):
    """The parts behind a norm that keeps its scale."""
    whole = sum(parts.values())
    if isinstance(norm, torch.nn.LayerNorm):
        scale = (whole.var(unbiased=False) + norm.eps).sqrt()
        parts = {name: norm.weight.double() * (x - x.mean()) / scale for name, x in parts.items()}
        parts["norms.bias"] = parts.get("norms.bias", 0) + norm.bias.double()
        return parts
    scale = (whole.square().mean() + norm.variance_epsilon).sqrt()
    return {name: norm.weight.double() * x / scale for name, x in parts.items()}


def through(out, heads, n_heads, name):
    """What each head brings through an output projection."""
    weight = out.weight.double() if isinstance(out, torch.nn.Linear) else out.weight.double().t()  # (D, H·Dh)
    parts = {
        f"{name}.heads.{h}": of_head(weight, n_heads, h) @ of_head(heads.double(), n_heads, h) for h in range(n_heads)
    }
    if out.bias is not None:
        parts[f"{name}.bias"] = out.bias.double()
    return parts


def contributions(case, known, place, final_norm, unembed, bias, head=None):
    """unembed: (D), the row of the output; head: (dense, activation, norm) before it."""
    side = case.side
    parts = {f"{side.prefix}residual.0": known["residual.0"][0, place].double()}
    for i in range(len(side.layers)):
        layer = f"{side.prefix}layers.{i}"
        parts |= through(side.outs[i], known[f"heads.{i}"][0, place], side.n_heads, f"{layer}.attention")
        if side.norms:
            parts = frozen(parts, side.norms[i][0])
        if side.cross_outs:
            heads = known[f"cross_heads.{i}"][0, place]
            parts |= through(side.cross_outs[i], heads, side.n_heads, f"{layer}.cross_attention")
        parts[f"{layer}.feed_forward"] = known[f"feed_forward.{i}"][0, place].double()
        if side.norms:
            parts = frozen(parts, side.norms[i][1])
    if final_norm:
        parts = frozen(parts, final_norm)
    if head:
        dense, activation, norm = head
        parts = {name: dense.weight.double() @ x for name, x in parts.items()}
        parts["head.bias"] = dense.bias.double()
        whole = sum(parts.values())
        parts = {name: x * activation(whole) / whole for name, x in parts.items()}
        parts = frozen(parts, norm)
    logits = {name: x @ unembed.double() for name, x in parts.items()}
    if bias is not None:
        logits["head.bias"] = logits.get("head.bias", 0) + bias.double()
    return logits


def write(out, name, case, inputs, place, parts):
    """`parts`: the arguments of contributions() behind the place. Inputs are named as in the tests."""
    with torch.no_grad():
        known = case.record()
        n = len(case.side.layers)
        outputs = {"logits": known["logits"]}
        outputs["lens"] = torch.stack([case.unembed(known[f"residual.{i}"][:1])[0] for i in range(n + 1)])
        outputs |= tuned_lens(case, known)
        outputs |= ablations(case, known)
        outputs |= patches(case, known, place)
        outputs |= attributions(case, place)
        found = contributions(case, known, place, *parts)
        total = sum(found.values())
        logit = known["logits"][0, place, OUTPUT % known["logits"].shape[-1]].double()
        torch.testing.assert_close(total, logit, rtol=1e-4, atol=1e-5)
        outputs |= {f"part/{key}": value for key, value in found.items()}
    save_file({key: contiguous(value) for key, value in (inputs | outputs).items()}, out / f"{name}.safetensors")


def token_logits(model):
    return lambda **inputs: model(**inputs, use_cache=False).logits


def gpt2(out):
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(vocab_size=290, n_embd=15, n_head=3, n_layer=3, n_inner=17, n_positions=32, bos_token_id=0,
                        eos_token_id=0)  # fmt: skip
    tokenizer = fast(byte_level_bpe(290, ["<|endoftext|>"]), eos_token="<|endoftext|>", bos_token="<|endoftext|>")
    config.vocab_size = len(tokenizer)
    model = random_weights(GPT2LMHeadModel._from_config(config, attn_implementation="eager"))
    model = write_model(out, "gpt2", model, tokenizer, torch.float32, sharded=False)
    body = model.transformer
    side = Side("", 3, body.h, [x.attn.c_proj for x in body.h], [x.mlp for x in body.h])
    ids = torch.randint(3, len(tokenizer), (B, T))
    case = Case(model, side, {"input_ids": ids}, token_logits(model), lambda x: model.lm_head(body.ln_f(x)),
                tables={"input_ids": ("inputs_embeds", body.wte)})  # fmt: skip
    write(out, "gpt2", case, {"ids": ids}, PLACE, (body.ln_f, model.lm_head.weight[OUTPUT], None))


def llama(out):
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = llama_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=24, num_attention_heads=4, num_key_value_heads=2, intermediate_size=22,
        num_hidden_layers=3, max_position_embeddings=32, tie_word_embeddings=False, bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    model = random_weights(LlamaForCausalLM._from_config(config, attn_implementation="eager"))
    model = write_model(out, "llama", model, tokenizer, torch.float32, sharded=False)
    body = model.model
    side = Side("", 4, body.layers, [x.self_attn.o_proj for x in body.layers], [x.mlp for x in body.layers])
    ids = torch.randint(3, len(tokenizer), (B, T))
    case = Case(model, side, {"input_ids": ids}, token_logits(model), lambda x: model.lm_head(body.norm(x)),
                tables={"input_ids": ("inputs_embeds", body.embed_tokens)})  # fmt: skip
    write(out, "llama", case, {"ids": ids}, PLACE, (body.norm, model.lm_head.weight[OUTPUT], None))


def bert(out):
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(vocab_size=200, hidden_size=15, num_attention_heads=3, intermediate_size=22, num_hidden_layers=3,
                        max_position_embeddings=24)  # fmt: skip
    tokenizer = word_pieces()
    config.vocab_size = len(tokenizer)
    model = random_weights(BertForMaskedLM._from_config(config, attn_implementation="eager"))
    model = write_model(out, "bert", model, tokenizer, torch.float32, sharded=False)
    layers = model.bert.encoder.layer
    side = Side(
        "", 3, layers, [x.attention.output.dense for x in layers], [x.output.dense for x in layers],
        norms=[(x.attention.output.LayerNorm, x.output.LayerNorm) for x in layers],
    )  # fmt: skip
    ids = torch.randint(5, len(tokenizer), (B, T))
    case = Case(model, side, {"input_ids": ids}, lambda **inputs: model(**inputs).logits, model.cls,
                tables={"input_ids": ("inputs_embeds", model.bert.embeddings.word_embeddings)})  # fmt: skip
    predictions = model.cls.predictions
    head = (predictions.transform.dense, torch.nn.functional.gelu, predictions.transform.LayerNorm)
    output = (predictions.decoder.weight[OUTPUT], predictions.decoder.bias[OUTPUT])
    write(out, "bert", case, {"ids": ids}, PLACE, (None, *output, head))


def t5(out):
    from transformers import T5Config, T5ForConditionalGeneration

    tokenizer = t5_tokenizer()
    config = T5Config(
        vocab_size=len(tokenizer), d_model=18, d_kv=6, num_heads=3, d_ff=22, num_layers=2, num_decoder_layers=3,
        relative_attention_num_buckets=8, relative_attention_max_distance=6, decoder_start_token_id=0,
    )  # fmt: skip
    model = random_weights(T5ForConditionalGeneration._from_config(config, attn_implementation="eager"))
    model = write_model(out, "t5", model, tokenizer, torch.float32, sharded=False)

    def side_of(stack, prefix):
        blocks = stack.block
        cross = [x.layer[1].EncDecAttention.o for x in blocks] if len(blocks[0].layer) == 3 else []
        outs = [x.layer[0].SelfAttention.o for x in blocks]
        return Side(prefix, 3, blocks, outs, [x.layer[-1].DenseReluDense for x in blocks], cross)

    ids, target = torch.randint(5, len(tokenizer) - 1, (B, T)), torch.randint(5, len(tokenizer) - 1, (B, T - 2))
    target[:, 0] = 0
    norm = model.decoder.final_layer_norm
    scale = config.d_model**-0.5 if config.scale_decoder_outputs else 1.0
    case = Case(
        model, side_of(model.decoder, "decoder."), {"input_ids": ids, "decoder_input_ids": target}, token_logits(model),
        lambda x: model.lm_head(norm(x) * scale), source=side_of(model.encoder, "encoder."),
        tables={"input_ids": ("inputs_embeds", model.shared), "decoder_input_ids": ("decoder_inputs_embeds", model.shared)},
    )  # fmt: skip
    parts = (norm, model.lm_head.weight[OUTPUT] * scale, None)
    write(out, "t5", case, {"ids": ids, "target": target}, PLACE, parts)


def vit(out):
    from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessor

    config = ViTConfig(
        hidden_size=15, num_attention_heads=3, intermediate_size=22, num_hidden_layers=3, image_size=12, patch_size=4,
        num_channels=3, **LABELS,
    )  # fmt: skip
    model = random_weights(ViTForImageClassification._from_config(config, attn_implementation="eager"))
    model.save_pretrained(out / "vit")
    ViTImageProcessor(size={"height": 12, "width": 12}).save_pretrained(out / "vit")
    body, layers = model.vit, model.vit.layers if hasattr(model.vit, "layers") else model.vit.encoder.layer
    outs = [x.attention.o_proj if hasattr(x.attention, "o_proj") else x.attention.output.dense for x in layers]
    side = Side("", 3, layers, outs, [x.mlp for x in layers])
    images = torch.randn(B, 3, 12, 12)

    def logits(**inputs):
        return model(**inputs).logits[:, None]

    case = Case(model, side, {"pixel_values": images}, logits, lambda x: model.classifier(body.layernorm(x)[:, :1]))
    output = OUTPUT % 3
    parts = (body.layernorm, model.classifier.weight[output], model.classifier.bias[output])
    write(out, "vit", case, {"images": images}, 0, parts)


CASES = [gpt2, llama, bert, t5, vit]

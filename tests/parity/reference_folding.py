"""ESMFold: directories as EsmForProteinFolding of transformers writes them, with random weights, and what it computes
with them; layers of folding alone, with their gradients; and how alike two structures are.

For each directory NAME/ there is NAME.safetensors with inputs and outputs (BATCH/OUTPUT), NAME.gradients.safetensors
with the gradients by the names of the directory's tensors, and files of structures as transformers writes them.
"""

import functools
import types

import numpy
import torch
from reference import contiguous, linear, normal_, plain, write_case
from safetensors.torch import save_file
from transformers import EsmConfig
from transformers.models.esm import modeling_esmfold as esmfold
from transformers.models.esm.openfold_utils import OFProtein, Rigid, Rotation, atom14_to_atom37, to_pdb

# Odd sizes: no width is another one.
WIDE = {
    "num_blocks": 2, "sequence_state_dim": 24, "pairwise_state_dim": 18, "sequence_head_width": 8,
    "pairwise_head_width": 6, "position_bins": 4, "max_recycles": 2, "chunk_size": 3,
    "structure_module": {
        "sequence_dim": 22, "pairwise_dim": 12, "ipa_dim": 5, "resnet_dim": 10, "num_heads_ipa": 3, "num_qk_points": 2,
        "num_v_points": 4, "num_blocks": 3, "num_transition_layers": 2, "num_resnet_blocks": 2,
    },
}  # fmt: skip
# One block with the other values of all choices.
PLAIN = {
    "num_blocks": 1, "sequence_state_dim": 16, "pairwise_state_dim": 8, "sequence_head_width": 16,
    "pairwise_head_width": 4, "position_bins": 3, "max_recycles": 1, "chunk_size": None,
    "structure_module": {
        "sequence_dim": 14, "pairwise_dim": 6, "ipa_dim": 3, "resnet_dim": 7, "num_heads_ipa": 2, "num_qk_points": 3,
        "num_v_points": 1, "num_blocks": 1, "num_transition_layers": 1, "num_resnet_blocks": 1, "trans_scale_factor": 8,
    },
}  # fmt: skip
OUTPUTS = ("positions", "frames", "sidechain_frames", "unnormalized_angles", "angles", "states", "s_s", "s_z",
           "distogram_logits", "ptm_logits", "lm_logits", "lddt_head", "plddt", "predicted_aligned_error")  # fmt: skip
# Each kind of residue, and X.
LETTERS = "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAVQVKVKALPDAQFEVVHSLAKWXKRQTLGQHDFSAGEGLYTHMKALRPDEDRLCNP"


def random_model(trunk, **keys):
    config = EsmConfig(
        vocab_size=33, pad_token_id=1, mask_token_id=32, num_attention_heads=2, position_embedding_type="rotary",
        is_folding_model=True, layer_norm_eps=1e-5, hidden_size=16, num_hidden_layers=3, intermediate_size=20,
        esmfold_config={"fp16_esm": False, "lddt_head_hid_dim": 9, "trunk": trunk, **keys.pop("fold", {})}, **keys,
    )  # fmt: skip
    model = esmfold.EsmForProteinFolding(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            is_gain = parameter.dim() == 1 and name.endswith("weight")
            parameter.normal_(1.0 if is_gain else 0.0, 0.2)
    return model.eval()


def residues(letters):
    return torch.tensor([esmfold.residue_constants.restype_order_with_x[letter] for letter in letters])


def pdb_of(output):
    """The text of a structure; pLDDT is from 0 to 100, as AlphaFold's files have it."""
    output = {key: value.detach().numpy() for key, value in output.items()}
    return to_pdb(
        OFProtein(
            aatype=output["aatype"][0],
            atom_positions=atom14_to_atom37(torch.tensor(output["positions"][-1]),
                                            {k: torch.tensor(v) for k, v in output.items()})[0].numpy(),
            atom_mask=output["atom37_atom_exists"][0],
            residue_index=numpy.arange(output["aatype"].shape[1]) + 1,
            b_factors=100 * output["plddt"][0],
        )
    )  # fmt: skip


def whole_model(out, name, trunk, keys):
    model = random_model(trunk, **keys)
    model.save_pretrained(out / name)
    model = esmfold.EsmForProteinFolding.from_pretrained(out / name).eval()
    tensors = {}

    def run(key, rows, recycles):
        length = max(len(row) for row in rows)
        ids = torch.stack([torch.nn.functional.pad(residues(row), (0, length - len(row))) for row in rows])
        lengths = torch.tensor([len(row) for row in rows])
        mask = (torch.arange(length)[None] < lengths[:, None]).long()
        output = model(ids, mask, num_recycles=recycles)
        tensors.update({f"{key}/ids": ids, f"{key}/lengths": lengths})
        tensors.update({f"{key}/{what}": contiguous(output[what]) for what in OUTPUTS})
        tensors[f"{key}/ptm"] = contiguous(output["ptm"])
        return output

    with torch.no_grad():
        run("batch", [LETTERS[:17], LETTERS[30:41], "X"], None)
        run("once", [LETTERS[20:26], LETTERS[:9]], 0)
        run("thrice", [LETTERS[40:52]], 2)
        for length in (1, 2, 3, 5, 64):
            output = run(f"length{length}", [LETTERS[-length:]], None)
            (out / f"{name}.{length}.pdb").write_text(pdb_of(output))
    output = run("gradients", [LETTERS[:9], LETTERS[9:14]], 1)
    heads = [output[what] for what in ("positions", "angles", "distogram_logits", "ptm_logits", "lm_logits", "lddt_head")]
    upstream = [torch.randn_like(head) for head in heads]
    # Rows of padding have any values.
    mask = (torch.arange(9)[None] < torch.tensor([9, 5])[:, None]).float()
    pairs = mask[:, :, None] * mask[:, None]
    for part, head in zip(upstream, heads):
        part *= (pairs[..., None] if head.shape[1:3] == pairs.shape[1:] else
                 mask[..., None] if head.dim() == 3 else mask[None, ..., None, None])  # fmt: skip
    sum((head * part).mean() for head, part in zip(heads, upstream)).backward()
    tensors.update({f"upstream/{i}": contiguous(part) for i, part in enumerate(upstream)})
    save_file(tensors, out / f"{name}.safetensors")
    if model.config.esmfold_config.embed_aa:
        # transformers takes kind 0, which is alanine, for padding, and never trains its vector.
        model.embedding.weight.grad[0] = torch.nan
    gradients = {key: contiguous(torch.zeros_like(value) if value.grad is None else value.grad)
                 for key, value in model.named_parameters()}  # fmt: skip
    gradients["esm.contact_head.regression.weight"] = torch.zeros_like(model.esm.contact_head.regression.weight)
    save_file(gradients, out / f"{name}.gradients.safetensors")


def norm(name, module):
    return {f"{name}.weight": plain(module.weight), f"{name}.bias": plain(module.bias)}


def parts(module, names):
    parameters = {}
    for ours, theirs in names.items():
        part = functools.reduce(getattr, theirs.split("."), module)
        parameters |= norm(ours, part) if isinstance(part, torch.nn.LayerNorm) else linear(ours, part)
    return parameters


B, L, PAIR = 2, 7, 12


def pair_inputs():
    mask = (torch.arange(L)[None] < torch.tensor([7, 4])[:, None]).float()
    return torch.randn(B, L, L, PAIR, requires_grad=True), mask[:, :, None] * mask[:, None], mask


def triangle_multiplication(out, name, outgoing):
    module = normal_(esmfold.EsmFoldTriangleMultiplicativeUpdate(types.SimpleNamespace(pairwise_state_dim=PAIR), outgoing))
    pairs, mask, _ = pair_inputs()
    names = {"norm_in": "layer_norm_in", "norm_out": "layer_norm_out", "left": "linear_a_p", "left_gate": "linear_a_g",
             "right": "linear_b_p", "right_gate": "linear_b_g", "gate": "linear_g", "out": "linear_z"}  # fmt: skip
    write_case(out, name, inputs={"x": pairs, "mask": mask}, outputs={"y": module(pairs, mask)},
               parameters=parts(module, names))  # fmt: skip


def triangle_attention(out, name, starting):
    module = normal_(esmfold.EsmFoldTriangleAttention(PAIR, 4, 3, starting=starting))
    pairs, mask, _ = pair_inputs()
    names = {"norm": "layer_norm", "bias": "linear", "q": "mha.linear_q", "k": "mha.linear_k", "v": "mha.linear_v",
             "gate": "mha.linear_g", "out": "mha.linear_o"}  # fmt: skip
    write_case(out, name, inputs={"x": pairs, "mask": mask}, outputs={"y": module(pairs, mask)},
               parameters=parts(module, names))  # fmt: skip


def point_attention(out, name):
    config = types.SimpleNamespace(sequence_dim=10, pairwise_dim=PAIR, ipa_dim=5, num_heads_ipa=3, num_qk_points=2,
                                   num_v_points=4, epsilon=1e-8, inf=1e5)  # fmt: skip
    module = normal_(esmfold.EsmFoldInvariantPointAttention(config))
    pairs, _, mask = pair_inputs()
    residue_vectors = torch.randn(B, L, 10, requires_grad=True)
    rotations = torch.linalg.qr(torch.randn(B, L, 3, 3))[0]
    rotations = (rotations * torch.linalg.det(rotations)[..., None, None]).detach().requires_grad_()
    places = torch.randn(B, L, 3, requires_grad=True)
    frames = Rigid(Rotation(rot_mats=rotations), places)
    y = module(residue_vectors, pairs, frames, mask)
    # Rows of padding have any values.
    y = y * mask[..., None]
    names = {"q": "linear_q", "kv": "linear_kv", "q_points": "linear_q_points", "kv_points": "linear_kv_points",
             "bias": "linear_b", "out": "linear_out"}  # fmt: skip
    write_case(out, name, outputs={"y": y},
               inputs={"x": residue_vectors, "pairs": pairs, "rotations": rotations, "places": places, "mask": mask},
               parameters=parts(module, names) | {"head_weights": plain(module.head_weights)})  # fmt: skip


def superposed(moving, fixed, chosen):
    """Kabsch's algorithm by singular values: `moving` where its chosen points are nearest to those of `fixed`."""
    middle, end = moving[chosen].mean(0), fixed[chosen].mean(0)
    u, _, vt = numpy.linalg.svd((moving[chosen] - middle).T @ (fixed[chosen] - end))
    turn = u @ numpy.diag([1, 1, numpy.sign(numpy.linalg.det(u @ vt))]) @ vt
    return (moving - middle) @ turn + end


def tm_score(predicted, truth, length):
    """The search of Zhang & Skolnick's program, written out, for chains of more than 15 residues."""
    n = len(truth)
    scale = max(0.5, 1.24 * (length - 15) ** (1 / 3) - 1.8)
    near, best = min(max(scale, 4.5), 8), 0
    for fragment in sorted({max(4, n // 2 ** i) for i in range(5)} | {4}):
        for first in range(n - fragment + 1):
            chosen = list(range(first, first + fragment))
            for step in range(21):
                distance = numpy.linalg.norm(superposed(predicted, truth, chosen) - truth, axis=1)
                best = max(best, (1 / (1 + (distance / scale) ** 2)).sum() / length)
                most = near - 1 if step == 0 else near + 1
                while (distance < most).sum() < 3:
                    most += 0.5 + most / 8
                if chosen == (chosen := list(numpy.flatnonzero(distance < most))):
                    break
    return best


def lddt(predicted, truth):
    kept, pairs = 0, 0
    for i in range(len(truth)):
        for j in range(len(truth)):
            distance = numpy.linalg.norm(truth[i] - truth[j])
            if i != j and distance < 15:
                error = abs(numpy.linalg.norm(predicted[i] - predicted[j]) - distance)
                kept += sum(error < most for most in (0.5, 1, 2, 4)) / 4
                pairs += 1
    return kept / pairs


def comparison(out, name):
    """Chains of random steps, and the same ones with other steps, some from the middle on: turned, with gaps."""
    made, tensors = numpy.random.default_rng(1), {}
    for i in range(50):
        length = 16 + i // 2
        steps = made.normal(size=(length, 3)) + made.normal(size=3)
        other = steps + made.normal(size=(length, 3)) * 0.1 * (i % 8)
        if i % 3 == 0:
            other[length // 2:] = made.normal(size=(length - length // 2, 3))
        steps, other = (3.8 * x / numpy.linalg.norm(x, axis=1, keepdims=True) for x in (steps, other))
        turn, _ = numpy.linalg.qr(made.normal(size=(3, 3)))
        truth, predicted = steps.cumsum(0), other.cumsum(0) @ (turn * numpy.linalg.det(turn)) + 9
        mask = made.random(length) < 0.9
        a, b = predicted[mask], truth[mask]
        rmsd = ((superposed(a, b, range(len(b))) - b) ** 2).sum(1).mean() ** 0.5
        values = {"predicted": predicted, "truth": truth, "mask": mask, "rmsd": rmsd, "lddt": lddt(a, b),
                  "tm_score": tm_score(a, b, length)}  # fmt: skip
        tensors |= {f"{i}/{key}": torch.tensor(value) for key, value in values.items()}
    save_file(tensors, out / f"{name}.safetensors")


CASES = [
    functools.partial(comparison, name="comparison"),
    functools.partial(whole_model, name="esmfold", trunk=WIDE, keys={"token_dropout": True}),
    functools.partial(whole_model, name="esmfold_plain", trunk=PLAIN,
                      keys={"emb_layer_norm_before": True, "fold": {"embed_aa": False}}),
    functools.partial(triangle_multiplication, name="outgoing", outgoing=True),
    functools.partial(triangle_multiplication, name="incoming", outgoing=False),
    functools.partial(triangle_attention, name="starting", starting=True),
    functools.partial(triangle_attention, name="ending", starting=False),
    functools.partial(point_attention, name="point_attention"),
]  # fmt: skip

"""Reference logits, boxes, losses and gradients of DETR, from transformers."""

from types import SimpleNamespace

import torch
from reference import linear, normal_, plain, write_case
from reference_resnet import parts as resnet_parts
from transformers import DetrConfig, ResNetConfig
from transformers.loss.loss_for_object_detection import ForObjectDetectionLoss
from transformers.models.detr.modeling_detr import DetrForObjectDetection

# The shape of small_detr() in detr_parity_test.cpp.
D, HEADS, WIDTH, ENCODER_LAYERS, DECODER_LAYERS, CLASSES, QUERIES = 24, 4, 40, 2, 3, 3, 5
B, CHANNELS, HEIGHT, W = 3, 3, 70, 101
SIZES = [(70, 101), (45, 101), (70, 66)]  # of each image, without padding
COUNTS = [2, 0, 7]  # objects in each image; the last one has more than there are queries


def attention(name, module):
    parts = {"q": module.q_proj, "k": module.k_proj, "v": module.v_proj, "out": module.o_proj}
    return {key: value for part, map in parts.items() for key, value in linear(f"{name}.{part}", map).items()}


def layer_parameters(name, layer):
    entries = attention(f"{name}.self_attention", layer.self_attn)
    entries |= linear(f"{name}.feed_forward.up", layer.mlp.fc1) | linear(f"{name}.feed_forward.down", layer.mlp.fc2)
    entries |= linear(f"{name}.residual.self_attention_norm", layer.self_attn_layer_norm)
    entries |= linear(f"{name}.residual.feed_forward_norm", layer.final_layer_norm)
    if hasattr(layer, "encoder_attn"):
        entries |= attention(f"{name}.cross_attention", layer.encoder_attn)
        entries |= linear(f"{name}.residual.cross_attention_norm", layer.encoder_attn_layer_norm)
    return entries


def backbone_parts(model):
    for name, part in resnet_parts(SimpleNamespace(resnet=model.model.backbone.model)):
        yield f"embedder.backbone.{name}", part


def backbone_buffers(model):
    """The norms of a frozen backbone."""
    keys = ("weight", "bias", "running_mean", "running_var")
    return {
        f"buffers/{name}.norm.{key}": getattr(part.normalization, key)
        for name, part in backbone_parts(model)
        for key in keys
    }


def detr_parameters(model):
    base = model.model
    entries = {f"{name}.convolution.weight": plain(part.convolution.weight) for name, part in backbone_parts(model)}
    entries["embedder.projection.weight"] = (lambda p: p.reshape(D, -1), base.input_projection.weight)
    entries["embedder.projection.bias"] = plain(base.input_projection.bias)
    position = base.position_embedding
    if model.config.position_embedding_type == "learned":
        entries["embedder.row_table"] = plain(position.row_embeddings.weight)
        entries["embedder.column_table"] = plain(position.column_embeddings.weight)
    entries["queries"] = plain(base.query_position_embeddings.weight)
    for side in ("encoder", "decoder"):
        for i, layer in enumerate(getattr(base, side).layers):
            entries |= layer_parameters(f"{side}.layers.{i}", layer)
    entries |= linear("decoder_norm", base.decoder.layernorm)
    entries |= linear("head.classifier", model.class_labels_classifier)
    for name, map in zip(("first", "second", "last"), model.bbox_predictor.layers):
        entries |= linear(f"box_head.{name}", map)
    return entries


def random_targets():
    """Boxes within the image, and classes."""
    targets = []
    for count in COUNTS:
        size = torch.rand(count, 2) * 0.5 + 0.05
        centre = size / 2 + torch.rand(count, 2) * (1 - size)
        targets.append({"class_labels": torch.randint(0, CLASSES, (count,)), "boxes": torch.cat([centre, size], 1)})
    return targets


def images_away_from_kinks(backbone, mask):
    """ReLU has no derivative at 0. Where a number before it is almost 0, rounding decides about gradients."""
    nearest = []

    def look(_, inputs):
        nearest.append((inputs[0].abs().min() / inputs[0].std()).item())

    hooks = [m.register_forward_pre_hook(look) for m in backbone.modules() if isinstance(m, torch.nn.ReLU)]
    while not nearest or min(nearest) < 3e-6:
        nearest.clear()
        images = torch.randn(B, CHANNELS, HEIGHT, W) * mask.unsqueeze(1)
        with torch.no_grad():
            backbone(images, mask)
    for hook in hooks:
        hook.remove()
    return images


def padded(tensors, value):
    return torch.nn.utils.rnn.pad_sequence(tensors, batch_first=True, padding_value=value)


def detr_case(out, case, position):
    backbone = ResNetConfig(
        num_channels=CHANNELS, embedding_size=8, hidden_sizes=[8, 16, 32, 64], depths=[2, 2, 2, 2],
        layer_type="basic", out_features=["stage4"],
    )  # fmt: skip
    config = DetrConfig(
        use_timm_backbone=False, use_pretrained_backbone=False, backbone=None, backbone_config=backbone,
        num_queries=QUERIES, d_model=D, encoder_layers=ENCODER_LAYERS, decoder_layers=DECODER_LAYERS,
        encoder_attention_heads=HEADS, decoder_attention_heads=HEADS, encoder_ffn_dim=WIDTH, decoder_ffn_dim=WIDTH,
        dropout=0.0, num_labels=CLASSES, num_channels=CHANNELS, attn_implementation="eager",
        position_embedding_type=position,
    )  # fmt: skip
    model = normal_(DetrForObjectDetection(config), 0.2)
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            torch.nn.init.kaiming_normal_(module.weight)  # else features grow from layer to layer
    model.model.input_projection.weight.data *= 0.05  # else attention has a single weight, and gradients are noise
    for parameter in model.parameters():
        parameter.requires_grad_(True)  # transformers never trains the first layers of the backbone
    for name, buffer in model.named_buffers():
        if name.endswith(("running_var", "normalization.weight")):
            buffer.uniform_(0.5, 1.5)
        elif name.endswith(("running_mean", "normalization.bias")):
            buffer.normal_(0, 0.2)
    mask = torch.zeros(B, HEIGHT, W)
    for i, (height, width) in enumerate(SIZES):
        mask[i, :height, :width] = 1
    images = images_away_from_kinks(model.model.backbone, mask)
    targets = random_targets()

    # The outputs of all decoder layers. DetrDecoder feeds the normalised ones to the next layer if the configuration
    # asks for auxiliary losses, unlike the authors' code.
    hidden = []
    for layer in model.model.decoder.layers:
        layer.register_forward_hook(lambda _, __, output: hidden.append(output))
    result = model(pixel_values=images, pixel_mask=mask)
    hidden = torch.stack([model.model.decoder.layernorm(output) for output in hidden])
    logits, boxes = model.class_labels_classifier(hidden), model.bbox_predictor(hidden).sigmoid()
    torch.testing.assert_close(logits[-1], result.logits)

    config.auxiliary_loss = True
    loss, parts, _ = ForObjectDetectionLoss(logits[-1], targets, "cpu", boxes[-1], config, logits, boxes)
    write_case(
        out, case,
        inputs={
            "images": images, "image_sizes": torch.tensor(SIZES),
            "boxes": padded([target["boxes"] for target in targets], 0),
            "box_classes": padded([target["class_labels"] for target in targets], -1),
            "batch_counts": torch.tensor([COUNTS] * B), **backbone_buffers(model),
        },
        outputs={
            "logits": logits, "boxes": boxes, "loss": loss, "logits_of_features": result.logits.flatten(0, 1),
            **{name: parts[name] for name in ("loss_ce", "loss_bbox", "loss_giou")},
        },
        loss=loss, parameters=detr_parameters(model),
    )  # fmt: skip


def detr(out):
    detr_case(out, "detr", "sine")


def detr_learned(out):
    detr_case(out, "detr_learned", "learned")


CASES = [detr, detr_learned]

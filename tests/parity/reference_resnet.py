"""Reference feature maps, logits, gradients and running means of residual networks, from transformers."""

import torch
from reference import plain, linear, write_case
from torch import nn
from torch.utils.flop_counter import FlopCounterMode
from transformers import ResNetConfig, ResNetForImageClassification

# The shapes of resnet_parity_test.cpp.
WIDTH, CHANNELS, CLASSES = 6, 3, 5
B, HEIGHT, WIDTH_OF_IMAGE = 4, 40, 72
DEPTHS = {18: [2, 2, 2, 2], 34: [3, 4, 6, 3], 50: [3, 4, 6, 3], 101: [3, 4, 23, 3]}


def groups(channels):
    return next(n for n in range(32, 0, -1) if channels % n == 0)


def with_group_norm(module):
    for name, child in module.named_children():
        if isinstance(child, nn.BatchNorm2d):
            setattr(module, name, nn.GroupNorm(groups(child.num_features), child.num_features))
        else:
            with_group_norm(child)


def with_dilation(stage):
    """As torchvision's replace_stride_with_dilation and timm's output_stride."""
    for b, block in enumerate(stage.layers):
        wide = [module for module in block.modules() if isinstance(module, nn.Conv2d) and module.kernel_size == (3, 3)]
        for i, convolution in enumerate(wide):
            n = 1 if b == 0 and i == 0 else 2
            convolution.dilation, convolution.padding = (n, n), (n, n)
        for module in block.modules():
            if isinstance(module, nn.Conv2d):
                module.stride = (1, 1)


def network(depth, stem_stride, norm, dilation):
    expansion = 4 if depth >= 50 else 1
    config = ResNetConfig(
        num_channels=CHANNELS, embedding_size=WIDTH, hidden_sizes=[WIDTH * expansion * 2**i for i in range(4)],
        depths=DEPTHS[depth], layer_type="bottleneck" if depth >= 50 else "basic", num_labels=CLASSES,
    )  # fmt: skip
    model = ResNetForImageClassification(config)
    if stem_stride != 4:
        first = model.resnet.embedder.embedder
        first.convolution = nn.Conv2d(CHANNELS, WIDTH, 3, stride=stem_stride, padding=1, bias=False)
        model.resnet.embedder.pooler = nn.Identity()
    if norm == "group":
        with_group_norm(model)
    if dilation:
        with_dilation(model.resnet.encoder.stages[-1])
    for module in model.modules():
        if isinstance(module, (nn.BatchNorm2d, nn.GroupNorm)):
            nn.init.normal_(module.weight, 1.0, 0.1)
            nn.init.normal_(module.bias, 0.0, 0.3)
        if isinstance(module, nn.BatchNorm2d):
            module.running_mean.normal_(0.0, 0.3)
            module.running_var.uniform_(0.5, 2.0)
            if norm == "frozen_batch":
                module.weight.requires_grad_(False)
                module.bias.requires_grad_(False)
    return model.train(norm == "batch")


def parts(model):
    """Pairs of our names and the reference's convolutions with norms."""
    yield "stem", model.resnet.embedder.embedder
    for s, stage in enumerate(model.resnet.encoder.stages):
        for b, block in enumerate(stage.layers):
            for i, layer in enumerate(block.layer):
                yield f"stages.{s}.{b}.layers.{i}", layer
            if not isinstance(block.shortcut, nn.Identity):
                yield f"stages.{s}.{b}.shortcut", block.shortcut


def entries(model, norm):
    """Our parameters and buffers."""
    parameters, buffers = {}, {}
    for name, part in parts(model):
        name = f"network.{name}"
        parameters[f"{name}.convolution.weight"] = plain(part.convolution.weight)
        of_norm = buffers if norm == "frozen_batch" else parameters
        for key, tensor in (("weight", part.normalization.weight), ("bias", part.normalization.bias)):
            of_norm[f"{name}.norm.{key}"] = tensor if norm == "frozen_batch" else plain(tensor)
        if norm != "group":
            buffers[f"{name}.norm.running_mean"] = part.normalization.running_mean
            buffers[f"{name}.norm.running_var"] = part.normalization.running_var
    return parameters | linear("head.classifier", model.classifier[1]), buffers


def case(out, depth, stem_stride, norm, dilation=False):
    # In float64: fifty layers with batch norm enlarge the rounding of float32 until ReLUs switch.
    model = network(depth, stem_stride, norm, dilation).double()
    parameters, buffers = entries(model, norm)
    images = torch.randn(B, CHANNELS, HEIGHT, WIDTH_OF_IMAGE, dtype=torch.float64)
    targets = torch.randint(0, CLASSES, (B,))
    inputs = {"images": images, "targets": targets}
    inputs |= {f"buffers/{name}": tensor.clone() for name, tensor in buffers.items()}
    with FlopCounterMode(display=False) as counter:
        features = model.resnet(images).last_hidden_state
        logits = model.classifier(features.mean((2, 3)))
    loss = nn.functional.cross_entropy(logits, targets)
    outputs = {"features": features, "logits": logits, "loss": loss}
    outputs["flops"] = torch.tensor(counter.get_total_flops(), dtype=torch.float64)
    outputs |= {f"buffers/{name}": tensor for name, tensor in buffers.items()}
    name = f"{depth}_{stem_stride}_{norm}" + ("_dilated" if dilation else "")
    write_case(out, name, inputs=inputs, outputs=outputs, loss=loss, parameters=parameters)
    # The same network with the running means that it has now.
    model.eval()
    with torch.no_grad():
        evaluated = {"evaluated": model(images).logits} if stem_stride == 4 else {}
    write_case(out, f"{name}_evaluated", inputs={}, outputs=evaluated)


def networks(out):
    for options in (
        (18, 4, "batch"), (34, 2, "batch"), (50, 4, "batch"), (50, 1, "batch"), (18, 1, "frozen_batch"),
        (50, 4, "frozen_batch"), (18, 4, "group"), (50, 2, "group"), (34, 1, "batch", True), (50, 4, "frozen_batch", True),
        (101, 4, "frozen_batch"),
    ):  # fmt: skip
        case(out, *options)


CASES = [networks]

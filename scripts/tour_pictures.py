"""Draws the pictures of docs/tour.md as SVG, with the standard library alone. scripts/make_tour.py calls it."""

import base64
import math
import struct
import zlib
from html import escape

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8c564b", "#444444"]
INK, PALE = "#222222", "#666666"


class Picture:
    """SVG elements on a white ground."""

    def __init__(self, width, height, label):
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
                      f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" role="img" '
                      f'aria-label="{escape(label)}">', f'<rect width="{width}" height="{height}" fill="#ffffff"/>']

    def text(self, x, y, text, anchor="start", colour=INK, size=12, turned=False):
        turn = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turned else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{colour}" '
                          f'font-size="{size}"{turn}>{escape(text)}</text>')

    def line(self, points, colour, width=2.0, dash=None):
        path = " ".join(f"{'M' if i == 0 else 'L'}{x:.1f} {y:.1f}" for i, (x, y) in enumerate(points))
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width}"{dashes}/>')

    def image(self, x, y, width, height, pixels):
        data = base64.b64encode(png(pixels)).decode()
        self.parts.append(f'<image x="{x}" y="{y}" width="{width}" height="{height}" preserveAspectRatio="none" '
                          f'style="image-rendering:pixelated" xlink:href="data:image/png;base64,{data}"/>')
        self.parts.append(f'<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="none" stroke="#bbbbbb"/>')

    def svg(self):
        return "\n".join(self.parts + ["</svg>"]) + "\n"


def png(pixels):
    """A PNG file of rows of (red, green, blue)."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    raw = b"".join(b"\0" + bytes(value for pixel in row for value in pixel) for row in pixels)
    head = struct.pack(">IIBBBBB", len(pixels[0]), len(pixels), 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b"")


def mixed(a, b, part):
    return tuple(round(x + (y - x) * part) for x, y in zip(a, b))


WHITE, BLUE, RED = (255, 255, 255), (0, 83, 135), (178, 24, 43)


def shade(weight):
    """0 … 1: white to blue."""
    return mixed(WHITE, BLUE, max(0.0, min(1.0, weight)))


def signed(value):
    """-1 … 1: red to white to blue."""
    return mixed(WHITE, BLUE if value > 0 else RED, min(1.0, abs(value)))


def heat_map(picture, x, y, size, rows, colour):
    """A square of `size`, one cell for each number."""
    picture.image(x, y, size, size, [[colour(value) for value in row] for row in rows])


def shown(token):
    return {"\n": "⏎", " ": "␣"}.get(token, token)


def attention_map(picture, x, y, cell, weights, rows, columns, title):
    """One head, with its tokens and a title in the picture's first line; (x, y) is the corner of the cells."""
    width, height = cell * len(columns), cell * len(rows)
    picture.text(x + width / 2, 20, title, "middle", INK, 13)
    picture.image(x, y, width, height, [[shade(weight) for weight in row] for row in weights])
    for i, token in enumerate(rows):
        picture.text(x - 6, y + cell * (i + 0.5) + 4, shown(token), "end", INK, 11)
    for j, token in enumerate(columns):
        picture.text(x + cell * (j + 0.5) + 4, y - 6, shown(token), "start", INK, 11, turned=True)


class Axes:
    """A diagram with a linear or logarithmic y axis in a rectangle of a picture."""

    def __init__(self, picture, left, top, width, height, x_range, y_range, log_y=False):
        self.picture, self.left, self.top, self.width, self.height = picture, left, top, width, height
        self.x_scale = (x_range, float)
        self.y_scale = (y_range, math.log if log_y else float)
        picture.parts.append(f'<rect x="{left}" y="{top}" width="{width}" height="{height}" fill="none" stroke="#cccccc"/>')

    @staticmethod
    def part(value, scale):
        (low, high), function = scale
        return (function(value) - function(low)) / (function(high) - function(low))

    def at(self, x, y):
        return (self.left + self.width * self.part(x, self.x_scale),
                self.top + self.height * (1 - self.part(y, self.y_scale)))

    def labels(self, title, x_title, y_title, xs, ys, form=str):
        picture = self.picture
        picture.text(self.left + self.width / 2, self.top - 8, title, "middle", INK, 13)
        picture.text(self.left + self.width / 2, self.top + self.height + 32, x_title, "middle", PALE, 11)
        picture.text(self.left - 36, self.top + self.height / 2, y_title, "middle", PALE, 11, turned=True)
        for value in xs:
            picture.text(self.at(value, self.y_scale[0][0])[0], self.top + self.height + 15, form(value), "middle", PALE, 10)
        for value in ys:
            y = self.at(self.x_scale[0][0], value)[1]
            picture.line([(self.left, y), (self.left + self.width, y)], "#eeeeee", 1)
            picture.text(self.left - 5, y + 3.5, form(value), "end", PALE, 10)

    def curve(self, xs, ys, colour, width=2.0, dash=None):
        (low, high), _ = self.y_scale
        self.picture.line([self.at(x, max(low, min(high, y))) for x, y in zip(xs, ys)], colour, width, dash)

    def legend(self, names, x, y):
        for i, name in enumerate(names):
            self.picture.line([(x, y + 16 * i - 4), (x + 18, y + 16 * i - 4)], COLOURS[i % len(COLOURS)], 2.5)
            self.picture.text(x + 24, y + 16 * i, name, "start", INK, 11)


def translator_maps(report, heads):
    """Encoder, decoder and cross-attention of one translation; `heads`: (kind, layer, head, title)."""
    cell = 30
    picture = Picture(830, 272, "Attention of an encoder, of a decoder, and between them")
    x = 78
    for kind, layer, head, title in heads:
        weights = next(entry["heads"][head] for entry in report["layers"] if entry["kind"] == kind and entry["layer"] == layer)
        source, target = report["source_tokens"], report["target_tokens"]
        rows, columns = (source, source) if kind == "encoder" else (target, target if kind == "decoder" else source)
        attention_map(picture, x, 82, cell, weights, rows, columns, title)
        x += cell * len(columns) + 110
    return picture.svg()


def heads_of_a_layer(report, layer):
    cell = 13
    picture = Picture(870, 236, f"The four heads of layer {layer + 1} of a GPT")
    tokens = report["source_tokens"]
    heads = next(entry["heads"] for entry in report["layers"] if entry["layer"] == layer)
    for i, weights in enumerate(heads):
        attention_map(picture, 34 + 216 * i, 56, cell, weights, tokens, tokens, f"head {i + 1}")
    return picture.svg()


def positions(numbers):
    picture = Picture(900, 620, "Absolute, rotary and relative positions")
    picture.text(190, 22, "sinusoidal: PE(pos, i)", "middle", INK, 13)
    heat_map(picture, 64, 30, 250, numbers["sinusoidal"], signed)
    picture.text(190, 298, "element i of the vector, 0 … 63", "middle", PALE, 11)
    picture.text(50, 155, "position, 0 … 63", "middle", PALE, 11, turned=True)

    axes = Axes(picture, 480, 30, 250, 250, (0, 31), (5, 1e6), log_y=True)
    axes.labels("rotary: turns once in … tokens", "pair of elements", "tokens", (0, 8, 16, 24, 31), (10, 1e3, 1e5),
                lambda v: f"{v:,.0f}")
    names = list(numbers["rotary"])
    for i, name in enumerate(names):
        axes.curve(range(32), numbers["rotary"][name], COLOURS[i], 2.0, None if name == "none" else "7 3" if i % 2 else "2 2")
    axes.legend(["no scaling", *(f"{name}, factor 8" for name in names[1:])], 745, 60)

    axes = Axes(picture, 64, 350, 250, 210, (0, 32), (-16, 0))
    axes.labels("ALiBi: bias on the score", "distance of key and query", "bias", (0, 8, 16, 24, 32), (0, -4, -8, -12, -16))
    for i, row in enumerate(numbers["alibi"]):
        axes.curve(range(33), row, COLOURS[i])
    axes.legend([f"head {i + 1}" for i in range(len(numbers["alibi"]))], 325, 380)

    axes = Axes(picture, 480, 350, 250, 210, (-160, 160), (0, 32))
    axes.labels("T5: bucket of a distance", "key's position minus query's", "bucket", (-160, -80, 0, 80, 160), (0, 8, 16, 24, 32))
    t5 = numbers["t5"]
    for i, direction in enumerate(("bidirectional", "causal")):
        axes.curve(t5["relative"], t5[direction], COLOURS[i])
    axes.legend(["encoder", "decoder"], 745, 380)
    return picture.svg()


def activations(numbers):
    picture = Picture(560, 300, "Activations")
    axes = Axes(picture, 64, 30, 330, 220, (-4, 4), (-0.5, 4))
    axes.labels("activations", "x", "act(x)", (-4, -2, 0, 2, 4), (0, 1, 2, 3, 4))
    names = ("relu", "gelu", "gelu_tanh", "silu")
    for i, name in enumerate(names):
        axes.curve(numbers["x"], numbers[name], COLOURS[i], 2, "5 4" if name == "gelu_tanh" else None)
    axes.legend(names, 410, 60)
    return picture.svg()


def residual(numbers):
    picture = Picture(620, 300, "Size of the residual stream after each layer, initial weights")
    top = max(max(sizes) for sizes in numbers.values())
    axes = Axes(picture, 64, 30, 350, 220, (0, 24), (0.5, 2 ** math.ceil(math.log2(top))), log_y=True)
    ticks = [2 ** i for i in range(0, math.ceil(math.log2(top)) + 1)]
    axes.labels("root mean square of x after each layer", "layer", "RMS", (0, 6, 12, 18, 24), ticks, lambda v: f"{v:g}")
    for i, (name, sizes) in enumerate(numbers.items()):
        axes.curve(range(len(sizes)), sizes, COLOURS[i], 2, "6 3" if i % 2 else None)
    axes.legend(list(numbers), 430, 60)
    return picture.svg()

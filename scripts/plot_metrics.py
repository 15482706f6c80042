#!/usr/bin/env python3
"""Draws the learning curves of runs as one SVG, using only the standard library.

    scripts/plot_metrics.py RUN... > curves.svg

The training loss is thin, the validation loss thick with a dot at each evaluation, both over the tokens seen.
"""
import json
import math
import os
import sys
from html import escape

WIDTH, HEIGHT = 760, 380
LEFT, RIGHT, TOP, BOTTOM = 56, 170, 24, 48
COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"]  # Okabe and Ito: for colour-blind readers


def curves(run):
    rows = [json.loads(line) for line in open(os.path.join(run, "metrics.jsonl"), encoding="utf-8")]
    return {key: [(row["tokens"], row[key]) for row in rows if row.get(key) is not None]
            for key in ("train_loss", "valid_loss")}


def names_of(runs):
    """The last part of each path, or the whole path where two last parts are equal."""
    short = [os.path.basename(os.path.normpath(run)) for run in runs]
    return [name if short.count(name) == 1 else os.path.normpath(run) for name, run in zip(short, runs)]


def ticks(low, high, n=5):
    step = 10 ** math.floor(math.log10((high - low) / n))
    step *= next(f for f in (1, 2, 5, 10) if (high - low) / (step * f) <= n)
    return [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def short(tokens):
    return f"{tokens / 1e6:g} M" if tokens >= 1e6 else f"{tokens / 1e3:g} k" if tokens >= 1e3 else f"{tokens:g}"


def draw(runs):
    data = list(zip(names_of(runs), map(curves, runs)))
    for name, run in data:
        if not any(run.values()):
            raise ValueError(f"{name}: there is no loss in metrics.jsonl yet: train it for longer")
    points = [point for _, run in data for curve in run.values() for point in curve]
    x_max = max(x for x, _ in points)
    y_min, y_max = min(y for _, y in points), max(y for _, y in points)
    if y_min == y_max:  # one point
        y_min, y_max = y_min - 0.5, y_max + 0.5
    x_at = lambda x: LEFT + (WIDTH - LEFT - RIGHT) * x / x_max
    y_at = lambda y: TOP + (HEIGHT - TOP - BOTTOM) * (y_max - y) / (y_max - y_min)
    path = lambda curve: " ".join(f"{'M' if i == 0 else 'L'}{x_at(x):.1f} {y_at(y):.1f}" for i, (x, y) in enumerate(curve))

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
           f'font-size="13" role="img" aria-label="Learning curves">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>']
    for y in ticks(y_min, y_max):
        out.append(f'<path d="M{LEFT} {y_at(y):.1f}H{WIDTH - RIGHT}" stroke="#dddddd"/>'
                   f'<text x="{LEFT - 8}" y="{y_at(y) + 4:.1f}" text-anchor="end" fill="#444444">{y:g}</text>')
    for x in ticks(0, x_max):
        out.append(f'<text x="{x_at(x):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle" fill="#444444">{short(x)}</text>')
    out.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle" fill="#222222">tokens seen</text>'
               f'<text x="14" y="{(TOP + HEIGHT - BOTTOM) / 2}" text-anchor="middle" fill="#222222" '
               f'transform="rotate(-90 14 {(TOP + HEIGHT - BOTTOM) / 2})">loss, nats per token</text>')
    for i, (name, run) in enumerate(data):
        colour = COLOURS[i % len(COLOURS)]
        out.append(f'<path d="{path(run["train_loss"])}" fill="none" stroke="{colour}" opacity="0.35"/>'
                   f'<path d="{path(run["valid_loss"])}" fill="none" stroke="{colour}" stroke-width="2.5"/>')
        out += [f'<circle cx="{x_at(x):.1f}" cy="{y_at(y):.1f}" r="3.5" fill="{colour}"/>' for x, y in run["valid_loss"]]
        y = TOP + 14 + 22 * i
        out.append(f'<path d="M{WIDTH - RIGHT + 14} {y - 4}h22" stroke="{colour}" stroke-width="2.5"/>'
                   f'<text x="{WIDTH - RIGHT + 42}" y="{y}" fill="#222222">{escape(name)}</text>')
    out.append(f'<text x="{WIDTH - RIGHT + 14}" y="{HEIGHT - BOTTOM - 18}" font-size="11" fill="#666666">thick: validation</text>'
               f'<text x="{WIDTH - RIGHT + 14}" y="{HEIGHT - BOTTOM - 4}" font-size="11" fill="#666666">thin: training</text></svg>')
    return "\n".join(out)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        print(draw(sys.argv[1:]))
    except (OSError, ValueError) as error:
        sys.exit(f"plot_metrics: {error}")

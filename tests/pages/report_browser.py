#!/usr/bin/env python3
"""Opens the report of `zoo compare` in a headless Chromium without a network and uses it as a reader would.

    report_browser.py PAGE.html RESULTS.json [PAGE.html RESULTS.json]...

Fails where the page logs an error, requests anything, shows a number that is not in RESULTS.json, or where an axis, a
table, a filter or an attention map does not work. Without a Chromium the exit code is 77, or 1 if
ZOO_REQUIRE_REFERENCES is set.
"""

import base64
import csv
import io
import json
import math
import re
import sys
from pathlib import Path
from xml.etree import ElementTree

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "support"))
from chromium import check, check_pages  # noqa: E402

PREFIXES = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18, "Z": 1e21}
TIMES = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600}


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


# ---- RESULTS.json ----------------------------------------------------------------------------------------------------


class Results:
    def __init__(self, path):
        self.document = json.loads(Path(path).read_text(encoding="utf-8"))
        self.runs = self.document["runs"]
        self.metric = self.document["metric"]
        self.factor = 100 if self.metric["percent"] else 1

    def finals(self):
        return {run["name"]: (run["metric"] or {}).get("mean") for run in self.runs}

    def expected(self, run):
        """Every number that the table shows for a run: field → value."""
        metric, versus, speed = (run.get(key) or {} for key in ("metric", "versus_baseline", "speed"))
        seconds = [seed.get("seconds") for seed in run["seeds"] if seed["end"] != "failed"]
        seconds = list(filter(is_number, seconds))
        half = (metric["high"] - metric["low"]) / 2 if is_number(metric.get("high")) else None
        numbers = {
            "metric.mean": metric.get("mean"), "metric.half": half,
            "versus_baseline.difference": versus.get("difference"), "versus_baseline.p_corrected": versus.get("p_corrected"),
            "parameters": run.get("parameters"), "flops_per_token": run.get("flops_per_token"),
            "peak_memory_bytes": run.get("peak_memory_bytes"),
            "seconds": sum(seconds) / len(seconds) if seconds else None,
        }
        for key in ("train_tokens_per_second", "prompt_tokens_per_second", "decode_tokens_per_second"):
            numbers[f"speed.{key}"] = speed.get(key)
        return {field: value for field, value in numbers.items() if is_number(value)}


# ---- The page --------------------------------------------------------------------------------------------------------


def parse_shown(text):
    """The meaning of a text such as "1.23 M", "2 min 31 s" or "−0.12": (value, half a unit of its last digit)."""
    text = text.replace("\u202f", " ").replace("−", "-").strip()
    parts = re.findall(r"([-+±]?\d[\d.]*(?:e[-+]\d+)?) ?([a-zA-Zµ%]*)", text)
    check(parts, f"no number in {text!r}")
    value = step = 0.0
    for number, unit in parts:
        factor = TIMES.get(unit) or PREFIXES.get(unit[:-1] if unit.endswith("B") else unit)
        check(factor, f"unknown unit in {text!r}")
        mantissa, _, power = number.lstrip("±").partition("e")
        digits = len(mantissa.partition(".")[2])
        step = factor * 10.0 ** (int(power or 0) - digits)
        value += factor * float(number.lstrip("±"))
    return value, step / 2


def check_number(run, field, text, raw, expected, factor):
    where = f"{run}: {field} is shown as {text!r}"
    check(math.isclose(float(raw), expected, rel_tol=1e-9, abs_tol=1e-300), f"{where}, made from {raw}, not {expected}")
    if field.endswith("p_corrected"):
        if text == "p < 0.001":
            return check(expected < 0.001, f"{where}, is {expected}")
        text = text.removeprefix("p = ")
    scale = factor if field.startswith(("metric.", "versus_baseline.diff")) else 1
    value, tolerance = parse_shown(text)
    # Half a unit of the last digit, or of the third: 647 k may be 646,900.
    near = abs(value - expected * scale) <= max(tolerance * 1.0001, abs(expected * scale) * 0.00501)
    check(near if scale == 1 else abs(value - expected * scale) <= tolerance * 1.0001 + 1e-12,
          f"{where}, is {expected * scale}")


def check_table(page, results):
    shown = page.run("""[...document.querySelectorAll('#results-table .number')].map(
        ({dataset, textContent}) => [dataset.run, dataset.field, textContent, dataset.value])""")
    verdicts = dict(page.run("[...document.querySelectorAll('.verdict')].map("
                             "({dataset}) => [dataset.run, dataset.value])"))
    found = {(run, field): (text, raw) for run, field, text, raw in shown if raw != ""}
    for run in results.runs:
        expected = results.expected(run)
        for field, value in expected.items():
            check((run["name"], field) in found, f"{run['name']}: {field} is not in the table")
            check_number(run["name"], field, *found[run["name"], field], value, results.factor)
        extra = {field for name, field in found if name == run["name"]} - set(expected)
        check(not extra, f"{run['name']}: {extra} in the table but not in the results")
        verdict = (run.get("versus_baseline") or {}).get("verdict")
        check(verdicts.get(run["name"]) == verdict,
              f"{run['name']}: the verdict is {verdicts.get(run['name'])}, not {verdict}")


def check_best(page, results):
    """A run that failed with every seed is never the best."""
    failed = [run["name"] for run in results.runs if run["seeds"] and all(s["end"] == "failed" for s in run["seeds"])]
    best = page.run("[...document.querySelectorAll('#results-table tbody tr')].filter(row => row.querySelector('.best'))"
                    ".map(row => row.querySelector('bdi').textContent)")
    check(not set(failed) & set(best), f"a failed run is the best: {failed} failed, {best} are best")


def check_top(page, results):
    document = results.document
    shown = page.run("document.getElementById('title').textContent")
    check(shown == (document.get("title") or document["name"]), f"the title is shown as {shown!r}")
    for key in ("folklore", "measured", "note"):
        shown = page.run(f"(node => node.checkVisibility() ? node.textContent : '')(document.getElementById('{key}'))")
        check(shown == (document.get(key) or ""), f"{key} is shown as {shown!r}")
    notices = page.run("[...document.querySelectorAll('.notice span')].map(node => node.textContent)")
    for notice in document.get("notices") or []:
        check(notice["text"] in notices, f"this notice is missing: {notice['text']}")
    fair = page.run("document.querySelector('.notice.fair span')?.textContent ?? ''")
    sizes = [run["parameters"] for run in results.runs if run.get("parameters")]
    differ = len(sizes) > 1 and max(sizes) > 1.02 * min(sizes)
    check(not fair or ("Their parameters differ" in fair) == differ, f"with {sizes} parameters it says {fair!r}")
    if document.get("command"):
        check(page.run("document.getElementById('command').textContent") == document["command"], "the command")
    if document.get("yaml"):
        check(page.run("document.getElementById('yaml').textContent") == document["yaml"], "the comparison file")
    if (document.get("versions") or {}).get("commit"):
        check(document["versions"]["commit"] in page.run("document.getElementById('reproduce').textContent"), "the commit")


def check_sections(page, results):
    """The page has exactly the sections that have data."""
    runs = results.runs
    there = set(page.run("[...document.querySelectorAll('#sections > section')].map(node => node.id)"))
    has_curve = any((seed.get("curve") or {}).get("step") or (seed.get("train_curve") or {}).get("step")
                    for run in runs for seed in run["seeds"])
    has_metric = any(is_number(mean) for mean in results.finals().values())
    expected = {"results": True, "quality": has_metric, "curves": has_curve,
                "confusion": any(run.get("confusion") for run in runs),
                "experts": any(run.get("experts") for run in runs),
                "lengths": any(len(run.get("lengths") or []) > 1 for run in runs),
                "scaling": any(run.get("scaling") for run in runs), "samples": any(run.get("samples") for run in runs),
                "examples": any(run.get("examples") for run in runs),
                "translations": any(run.get("translations") for run in runs),
                "slices": any(run.get("slices") for run in runs),
                "attention": any((run.get("attention") or {}).get("maps") for run in runs),
                "differences": bool(results.document.get("differences")) and len(runs) > 1}
    for section, wanted in expected.items():
        check((section in there) == wanted, f"the section {section} is {'missing' if wanted else 'there without data'}")
    linked = set(page.run("[...document.querySelectorAll('#contents a')].map(node => node.hash.slice(1))"))
    check(linked == there, f"the contents name {linked}, the page has {there}")
    return there


# ---- What a reader does ----------------------------------------------------------------------------------------------


def choose(page, name, value):
    page.run(f"document.querySelector('input[name={json.dumps(name)}][value={json.dumps(value)}]').click()")
    page.settle()


def values_of(page, name):
    return page.run(f"[...document.querySelectorAll('input[name={json.dumps(name)}]')].map(input => input.value)")


def chart(page, host):
    """Labels, ticks and drawn lines of a chart."""
    return page.run(f"""(() => {{
        const chart = document.querySelector('#{host} svg'), text = what => chart.querySelector(what).textContent;
        const all = (what, value) => [...chart.querySelectorAll(what)].map(value).join(' ');
        return {{x: text('.x-label'), y: text('.y-label'),
                 ticks: all('.axes text:not(.label)', node => node.textContent),
                 lines: all('.curve, .mark', node => node.getAttribute('d'))}}; }})()""")


def check_lines(page, axis):
    """No line goes back, and every highlighted run has a mark, even if its curve is a single point."""
    drawn = page.run("""(() => {
        const chart = document.querySelector('#curves-chart svg'), all = what => [...chart.querySelectorAll(what)];
        return {lines: all('.curve').map(node => node.getAttribute('d')),
                marks: new Set(all('.mark').map(node => node.getAttribute('fill'))).size,
                chosen: new Set(all('.curve:not(.faded):not(.failed):not(.uncounted)').map(
                    node => node.getAttribute('stroke'))).size}; })()""")
    for line in drawn["lines"]:
        places = [float(x) for x in re.findall(r"[ML](-?[\d.]+),", line)]
        check(places == sorted(places), f"against {axis} a line goes back: {line}")
    check(drawn["marks"] == drawn["chosen"], f"against {axis} {drawn['marks']} of {drawn['chosen']} colours are marked")


def check_curves(page, results):
    page.run("document.getElementById('curves').scrollIntoView()")
    before = chart(page, "curves-chart")
    check("NaN" not in before["lines"] and before["lines"], "the learning curves are not drawn")
    labels = set()
    for value in values_of(page, "curve-x"):
        choose(page, "curve-x", value)
        labels.add(chart(page, "curves-chart")["x"])
        check_lines(page, value)
    check(len(labels) == 4, f"four axes are labelled {labels}")
    choose(page, "curve-x", "steps")
    check(chart(page, "curves-chart") == before, "the curves against steps are not the same as at first")
    choose(page, "curve-scale", "log")
    log = chart(page, "curves-chart")
    check(log["lines"] != before["lines"] and log["x"] == before["x"], "the logarithmic scale draws the same lines")
    choose(page, "curve-scale", "linear")
    for value in values_of(page, "curve-y")[1:]:
        choose(page, "curve-y", value)
        other = chart(page, "curves-chart")
        # Bits per byte are a multiple of the loss: the lines may be the same, but not the axis.
        drawn = (other["ticks"], other["lines"]) != (before["ticks"], before["lines"])
        check(other["y"] != before["y"] and drawn, f"{value} is drawn like the first choice")
        noisy = value not in ("metric", "valid_loss", "lr")
        smooths = page.run("document.querySelector('input[name=\"curve-smoothing\"]').checkVisibility()")
        check(smooths == noisy, f"{value} can{' not' * (not smooths)} be smoothed")
        if noisy:
            choose(page, "curve-smoothing", "0.93")
            check(chart(page, "curves-chart")["lines"] != other["lines"], f"smoothing does not change {value}")
            choose(page, "curve-smoothing", "0")
    choose(page, "curve-y", values_of(page, "curve-y")[0])
    check_end_of_curves(page, results)
    page.run("document.getElementById('curves-chart').focus()")
    title = "document.querySelector('#curves .entry-title').textContent"
    at_end = page.run(title)
    page.press("ArrowRight")
    check(page.run(title) != at_end, "the arrow keys do not move along the curves")
    page.press("Escape")
    check(page.run(title) == at_end, "Escape does not leave the curves")
    page.move_to(*page.run("(({x, y, width, height}) => [x + width / 2, y + height / 2])("
                           "document.getElementById('curves-chart').getBoundingClientRect())"))
    check(page.run(title).startswith("step"), "pointing at the curves shows nothing")
    page.move_to(2, 2)


def check_end_of_curves(page, results):
    """The last point of each highlighted curve, where its seeds took equal steps, and its interval are those of the table."""
    shown = page.run("""[...document.querySelectorAll('#curves .entry')].map(
        entry => [entry.querySelector('bdi').textContent, entry.querySelector('b').textContent,
                  entry.querySelector('.quiet')?.textContent ?? ''])""")
    check(shown, "the end of the curves is not shown")
    runs = {run["name"]: run for run in results.runs}
    for name, text, band in shown:
        learnt = any(seed.get("learnt") for seed in runs[name]["seeds"])
        curves = [seed["curve"] for seed in runs[name]["seeds"] if seed["end"] != "failed" and seed.get("curve")
                  and not (learnt and seed.get("learnt") is False)]
        ends = [curve["metric"][-1] for curve in curves if curve.get("metric") and is_number(curve["metric"][-1])]
        if len({tuple(curve["step"]) for curve in curves}) != 1 or len(ends) != len(curves):
            continue
        value, tolerance = parse_shown(text.removesuffix("%"))
        mean = results.factor * sum(ends) / len(ends)
        near = abs(value - mean) <= tolerance * 1.01 + abs(mean) * 1e-5
        check(near, f"{name}: its curve ends at {mean}, shown as {text}")
        # If no evaluation before it is better, the table shows the last one.
        if len(ends) > 1 and math.isclose(mean, results.factor * runs[name]["metric"]["mean"], rel_tol=1e-6):
            for key, part in zip(("low", "high"), band.removesuffix("%").split(" – ")):
                expected = results.factor * runs[name]["metric"][key]
                check(abs(parse_shown(part)[0] - expected) <= tolerance * 1.01 + abs(expected) * 2e-5,
                      f"{name}: {key} of the band is {part}, of the table {expected}")


def check_lengths(page, results):
    before = chart(page, "lengths-chart")["lines"]
    check(before and "NaN" not in before, "the metric against the length is not drawn")
    shown = page.run("""[...document.querySelectorAll('#lengths .entry')].map(
        entry => [entry.querySelector('bdi').textContent, entry.querySelector('b').textContent])""")
    runs = {run["name"]: run for run in results.runs}
    longest = max(entry["length"] for run in results.runs for entry in run.get("lengths") or [])
    for name, text in shown:
        expected = results.factor * next(entry["mean"] for entry in runs[name]["lengths"] if entry["length"] == longest)
        value, tolerance = parse_shown(text.removesuffix("%"))
        check(abs(value - expected) <= tolerance * 1.01, f"{name} at {longest} tokens: {expected}, shown as {text}")


def check_costs(page):
    before = None
    for value in values_of(page, "cost-x"):
        choose(page, "cost-x", value)
        drawn = chart(page, "cost-chart")
        check(drawn["x"] != (before or {}).get("x"), f"the axis of {value} has the label of another axis")
        check("NaN" not in drawn["lines"], f"{value} is drawn at NaN")
        before = drawn


def check_sorting(page, results):
    finals = results.finals()
    names = "[...document.querySelectorAll('#results-table tbody th bdi')].map(node => node.textContent)"
    at_first = page.run(names)
    check(at_first == [run["name"] for run in results.runs], "the table does not begin in the order of the results")
    for best_first in (True, False):
        page.run("document.querySelectorAll('#results-table thead button')[1].click()")
        order = [finals[name] for name in page.run(names) if is_number(finals[name])]
        lowest_first = best_first == (results.metric["better"] == "lower")
        check(order == sorted(order, reverse=not lowest_first), "sorting by the metric does not sort")
    sort = page.run("document.querySelectorAll('#results-table thead th')[1].getAttribute('aria-sort')")
    check(sort in ("ascending", "descending"), f"aria-sort is {sort}")
    page.run("document.querySelectorAll('#results-table thead button')[1].click()")
    check(page.run(names) == at_first, "a third click does not bring the first order back")


def check_choice_of_runs(page, results):
    """A click dims a run; with many runs a filter finds some of them."""
    lines = "document.querySelectorAll('#curves .curve:not(.faded), #quality .row:not(.faded)').length"
    before = page.run(lines)
    page.run("document.querySelector('.chip').click()")
    page.settle()
    check(page.run(lines) < before, "a run that was clicked is still highlighted")
    page.run("document.getElementById('key-reset').click()")
    page.settle()
    check(page.run(lines) == before, "reset does not highlight it again")
    if not page.run("document.getElementById('filter').checkVisibility()"):
        return
    wanted = results.runs[-1]["name"]
    page.run(f"""(() => {{ const filter = document.getElementById('filter'); filter.value = {json.dumps(wanted)};
                 filter.dispatchEvent(new Event('input')); }})()""")
    page.settle()
    names = page.run("[...document.querySelectorAll('#results-table tbody th bdi')].map(node => node.textContent)")
    check(wanted in names and len(names) < len(results.runs), f"the filter {wanted!r} leaves {len(names)} rows")
    page.run("document.getElementById('key-reset').click()")
    page.settle()


def check_attention(page, results):
    page.run("document.getElementById('attention').scrollIntoView()")
    name = page.run("document.querySelector('.tile').dataset.run")
    page.run("document.querySelector('.tile').click()")
    page.settle()
    check(page.run("document.getElementById('map-dialog').open"), "a click on a map does not open it")
    check(page.run("document.querySelector('#map-plot canvas').width") > 10, "the large map is not drawn")
    page.press("ArrowRight")  # chooses the first cell
    shown = page.run("document.querySelector('#map-readout .value').textContent")
    attention = next(run["attention"] for run in results.runs if run["name"] == name)
    last_layers = [entry["layers"][-1] for entry in attention["maps"]]
    firsts = [sum(head[0] for head in heads) / len(heads) / 999 for heads in last_layers]
    near = any(abs(float(shown) - first) <= 0.00501 for first in firsts)
    check(near, f"{name}: the first weight is one of {firsts}, but is shown as {shown}")
    page.run("document.getElementById('map-head-before').click()")
    check("head" in page.run("document.getElementById('map-title').textContent"), "a single head cannot be opened")
    page.run("document.getElementById('map-numbers').open = true")
    page.settle()
    check(page.run("document.querySelectorAll('#map-table td').length") > 1, "there is no table of the weights")
    page.run("document.getElementById('map-plot').focus()")
    page.press("ArrowRight")
    page.press("Escape")
    check(page.run("document.getElementById('map-dialog').open"), "Escape closes the map instead of leaving the cell")
    page.press("Escape")
    check(not page.run("document.getElementById('map-dialog').open"), "Escape does not close the map")
    if not attention.get("heads"):
        return
    page.run("document.querySelectorAll('#attention .sortable thead button')[1].click()")
    entropies = page.run("[...document.querySelectorAll('#attention .sortable tbody tr')].map("
                         "row => Number(row.cells[1].textContent))")
    check(entropies and entropies == sorted(entropies, reverse=True), "the heads are not sorted by their entropy")


def check_confusion(page, results):
    """Every count of every matrix, its shade, and the most frequent confusions."""
    runs = [run for run in results.runs if run.get("confusion")]
    page.load("pages/page.js", "pageModule")
    page.run("document.querySelectorAll('#confusion details').forEach(node => { node.open = true; })")
    page.settle()
    for run in runs:
        labels, counts = run["confusion"]["labels"], run["confusion"]["counts"]
        card = f"document.querySelector('#confusion .output[data-run={json.dumps(json.dumps(run['name']))[1:-1]}]')"
        shown = page.run(f"[...{card}.querySelectorAll('tbody tr')].map(row => [...row.cells].map(cell => cell.textContent))")
        check(shown == [[label, *map(str, row)] for label, row in zip(labels, counts)], f"{run['name']}: {shown}")
        heads = page.run(f"[...{card}.querySelectorAll('thead th')].map(cell => [cell.textContent, cell.scope])")
        check(heads == [[label, "col"] for label in labels], f"{run['name']}: the columns are {heads}")
        expected = page.run(f"{json.dumps([[n / max(1, sum(row)) for n in row] for row in counts])}.map(row => row.map("
                            "share => share ? pageModule.colour(share).replace(/ /g, ', ') : 'rgba(0, 0, 0, 0)'))")
        shades = page.run(f"[...{card}.querySelectorAll('tbody tr')].map(row => [...row.querySelectorAll('td')].map("
                          "cell => getComputedStyle(cell).backgroundColor))")
        check(shades == expected, f"{run['name']}: the shades are {shades}, not {expected}")
        confusions = sorted(((n, i, j) for i, row in enumerate(counts) for j, n in enumerate(row) if i != j and n),
                          key=lambda confusion: -confusion[0])[:5]
        said = page.run(f"[...{card}.querySelectorAll('.confusions-list li')].map(item => item.textContent)")
        check(len(said) == len(confusions), f"{run['name']}: the confusions are {said}")
        for text, (n, i, j) in zip(said, confusions):
            check(text.startswith(f"{labels[i]} taken for {labels[j]} {n} ("), f"{run['name']}: “{text}” is not {n} {labels[i]}")
    page.run("document.querySelectorAll('#confusion details').forEach(node => { node.open = false; })")


def check_experts(page, results):
    """The load of every expert, its shade, and what is said of them."""
    page.load("pages/page.js", "pageModule")
    for run in (run for run in results.runs if run.get("experts")):
        card = f"document.querySelector('#experts .output[data-run={json.dumps(json.dumps(run['name']))[1:-1]}]')"
        loads = [layer["tokens"] for layer in run["experts"]]
        even = [[n * len(row) / sum(row) for n in row] for row in loads]
        numbered = max(map(len, loads)) <= 16
        cells = page.run(f"[...{card}.querySelectorAll('tbody tr')].map(row => [...row.querySelectorAll('td')].map("
                         "cell => [cell.textContent, getComputedStyle(cell).backgroundColor, cell.className]))")
        shades = page.run(f"{json.dumps(even)}.map(row => row.map(value => value ? pageModule.colour(Math.min(1, value / 2))"
                          ".replace(/ /g, ', ') : 'rgba(0, 0, 0, 0)'))")
        for row, (counts, values) in enumerate(zip(loads, even)):
            for e, (n, value) in enumerate(zip(counts, values)):
                text = ("0" if n == 0 else f"{value:.2f}") if numbered else ""
                check(cells[row][e] == [text, shades[row][e], "idle" if n == 0 else ""], f"{run['name']}: {cells[row][e]}")
        said = page.run(f"{card}.querySelector('.loads').textContent").replace("\u202f", " ")
        idle = sum(n == 0 for row in loads for n in row)
        busiest = max(value for row in even for value in row)
        check(said.startswith(f"The busiest has {busiest:.2f} × its share; {f'{idle} of' if idle else 'all had tokens'}"), said)


def check_charts(page):
    """Texts of a chart neither overlap nor leave it, labels differ, and each axis has at least two labelled ticks."""
    charts = page.run("""[...document.querySelectorAll('svg.chart')].filter(chart => chart.checkVisibility()).map(chart => {
        const box = chart.getBoundingClientRect(), texts = [...chart.querySelectorAll('text')].map(node => {
            const {left, right, top, bottom} = node.getBoundingClientRect();
            return {text: node.textContent, style: node.getAttribute('class') ?? node.getAttribute('text-anchor'),
                    box: [left - box.left, top - box.top, right - box.left, bottom - box.top]}; });
        return {id: chart.closest('section').id, texts: texts.filter(({text}) => text),
                wide: box.width}; })""")
    for chart in charts:
        texts, where = chart["texts"], f"the section {chart['id']}"
        for i, one in enumerate(texts):
            a = one["box"]
            check(a[0] > -2 and a[2] < chart["wide"] + 2, f"{where}: {one['text']!r} leaves its chart")
            for other in texts[i + 1:]:
                b, slack = other["box"], 2
                hit = a[0] < b[2] - slack and b[0] < a[2] - slack and a[1] < b[3] - slack and b[1] < a[3] - slack
                check(not hit, f"{where}: {one['text']!r} lies on {other['text']!r}")
        for axis, style in (("x", "middle"), ("y", "end")):
            ticks = [text["text"] for text in texts if text["style"] == style]
            if axis == "x" or chart["id"] != "quality":
                check(len(ticks) > 1, f"{where}: the axis {axis} has the labels {ticks}")
            check(len(set(ticks)) == len(ticks), f"{where}: labels of the axis {axis} are the same: {ticks}")
        labels = [text["text"] for text in texts if text["style"] == "end-label"]
        check(len(set(labels)) == len(labels), f"{where}: labels are the same: {sorted(labels)}")
        rows, heading = [], ""
        for text in texts:
            heading = text["text"] if text["style"] == "row-heading" else heading
            if text["style"] == "row-name":
                rows.append((heading, text["text"]))
        check(len(set(rows)) == len(rows), f"{where}: rows are called the same: {rows}")


def check_legend(page, results):
    """Up to 24 runs are all drawn and explained: by a chip each, or in a grid by a chip for each of its values."""
    chips = page.run("[...document.querySelectorAll('.chip')].map(chip => chip.textContent)")
    check(len(set(chips)) == len(chips), f"chips are the same: {chips}")
    if len(results.runs) > 24:
        return
    drawn = page.run("""[...document.querySelectorAll('#curves .curve[data-run]:not(.faded)')].filter(
        line => line.getAttribute('stroke') !== 'var(--faded)').map(line => line.dataset.run)""")
    check(sorted(drawn) == sorted(run["name"] for run in results.runs), f"only {drawn} have lines of their own")
    grid = results.document.get("grid")
    expected = results.document["variants"] if grid else [run["name"] for run in results.runs]
    for key in grid or []:
        expected = expected + [f"{key['label']}={value}" for value in key["values"]]
    check(sorted(chips) == sorted(expected), f"the legend has {chips}")
    looks = page.run("""[...document.querySelectorAll('#results-table .swatch')].map(swatch => swatch.innerHTML)""")
    panels = max(1, page.run("document.querySelectorAll('#curves .panel').length"))
    check(len(set(looks)) * panels >= len(results.runs), "runs in one chart look the same")


def check_zoom(page):
    page.run("document.getElementById('curves').scrollIntoView()")
    before = chart(page, "curves-chart")
    # From a mark, where the cursor of the chart is, too.
    start, middle, right = page.run("""(() => {
        const chart = document.querySelector('#curves-chart svg');
        const {left, right} = chart.querySelector('.axis').getBoundingClientRect(), centre = left + 0.4 * (right - left);
        const places = [...chart.querySelectorAll('.mark')].map(mark => mark.getBoundingClientRect()).map(
            box => [(box.left + box.right) / 2, (box.top + box.bottom) / 2]).sort(
            (a, b) => Math.abs(a[0] - centre) - Math.abs(b[0] - centre));
        return [...places[0], right]; })()""")
    first = page.run("document.querySelector('#curves-chart .curve[data-run]').getAttribute('d')")
    if re.match(r"M[\d.]+,", first):
        axis = float(page.run("document.querySelector('#curves-chart .axis').getAttribute('x1')"))
        check(abs(float(re.match(r"M([\d.]+),", first).group(1)) - axis) < 1, "the curves do not begin at step 0")
    unzoom = "document.getElementById('curve-unzoom')"
    page.drag((start, middle), (right - 30, middle))
    zoomed = chart(page, "curves-chart")
    check(zoomed["ticks"] != before["ticks"], "dragging does not zoom")
    page.run(f"{unzoom}.click()")
    page.settle()
    check(chart(page, "curves-chart") == before, "the button does not reset the zoom")
    page.run("document.getElementById('curves-chart').focus()")
    page.press("+")
    check(chart(page, "curves-chart")["ticks"] != before["ticks"], "the key + does not zoom")
    page.press("0")
    check(chart(page, "curves-chart") == before and page.run(f"{unzoom}.hidden"), "the key 0 does not reset the zoom")
    page.press("Escape")


def check_saving(page, results):
    """Each chart saves an SVG with all its styles, and the numbers behind it."""
    for section in page.run("[...new Set([...document.querySelectorAll('.save')].map(node => node.closest('section').id))]"):
        button = f"document.querySelectorAll('#{section} .save')"
        page.run(f"document.getElementById('{section}').scrollIntoView()")
        page.settle()
        picture = page.download(lambda: page.run(f"{button}[0].click()"))
        root = ElementTree.fromstring(picture)
        check(root.tag.endswith("}svg"), f"{section}: the picture is a {root.tag}")
        check("var(--" not in picture and 'class="' not in picture, f"{section}: the picture needs a style sheet")
        shapes = [node for node in root.iter() if node.tag.endswith("}path")]
        check(shapes and all("stroke" in node.get("style", "") for node in shapes), f"{section}: paths have no style")
        rows = list(csv.reader(io.StringIO(page.download(lambda: page.run(f"{button}[1].click()")))))
        check(len(rows) > 1 and all(len(row) == len(rows[0]) for row in rows), f"{section}: the numbers have gaps")
        names = {run["name"] for run in results.runs}
        check({row[0] for row in rows[1:]} <= names, f"{section}: numbers of unknown runs")
        if section == "quality":
            check([(row[0], float(row[1])) for row in rows[1:] if row[1]] ==
                  [(name, mean) for name, mean in results.finals().items() if is_number(mean)], "the saved means")


def check_print(page, path):
    """On paper no table is cut off, and the texts of charts are not made smaller."""
    paper = 703  # A4 without its margins
    page.open(path, width=1280)
    wide = page.run("""(() => {
        dispatchEvent(new Event('beforeprint'));  // a browser prints at once after this
        window.emptyOnPaper = [...document.querySelectorAll('.chart-host')].filter(host => host.checkVisibility() &&
            !host.querySelector('svg.chart') && !host.textContent).length;
        return [...document.querySelectorAll('svg.chart')].filter(chart => chart.checkVisibility()).map(
            chart => chart.viewBox.baseVal.width).filter(width => width > %d).length; })()""" % paper)
    check(not wide, f"{wide} charts are made smaller on paper")
    empty = page.run("window.emptyOnPaper")
    check(not empty, f"{empty} charts are gone on paper")
    page.resize(paper, 1000)
    page.send("Emulation.setEmulatedMedia", media="print")
    page.settle()
    cut = page.run("""[...document.querySelectorAll('.scroll')].filter(node => node.checkVisibility() &&
        node.scrollWidth > node.clientWidth + 1).map(node => node.closest('section')?.id ?? node.parentElement.id)""")
    check(not cut, f"tables are cut off on paper: {cut}")
    page.run("dispatchEvent(new Event('afterprint'))")
    page.send("Emulation.setEmulatedMedia", media="")


def check_reload(page, path, results):
    """The page of a comparison that runs loads itself again, and stays as the reader left it."""
    page.stop_clock(results.document["created"])
    page.open(path)
    progress = results.document["progress"]
    text = f"{progress['finished']} of {progress['runs']} runs are finished"
    check(page.run("document.getElementById('progress').textContent").startswith(text), "the progress is not shown")
    choose(page, "curve-y", "train_loss")
    page.run("document.querySelectorAll('.chip')[1].click()")
    page.run("scrollTo(0, 700)")
    page.settle()
    state = """(() => [scrollY, document.querySelector('input[name="curve-y"]:checked').value,
        [...document.querySelectorAll('.chip')].map(chip => chip.getAttribute('aria-pressed'))])()"""
    before = page.run(state)
    check("false" in before[2], "a chip that was clicked is still on")
    page.let_time_pass()
    after = page.run(state)
    check(after == before, f"the page was {before} and is {after} after it loaded itself again")


def check_layout(page, path):
    for width, media in ((390, "light"), (390, "dark"), (1280, "dark")):
        page.open(path, width=width, height=844, media=media)
        wide = page.run("document.documentElement.scrollWidth")
        check(wide <= width, f"the page is {wide} pixels wide in a window of {width}")
        check_charts(page)
    dark = page.run("getComputedStyle(document.body).backgroundColor")
    page.open(path, media="light")
    check(page.run("getComputedStyle(document.body).backgroundColor") != dark, "light and dark look the same")
    check(page.run("[...document.querySelectorAll('#sections button, #sections input, #sections select')]"
                   ".every(node => node.tabIndex >= 0)"), "something cannot be reached with the keyboard")
    page.send("Emulation.setEmulatedMedia", media="print")
    check(not page.run("document.getElementById('key').checkVisibility()"), "buttons are printed")
    paper = base64.b64decode(page.send("Page.printToPDF")["data"])
    n_pages, n_runs = len(re.findall(rb"/Type\s*/Page\b", paper)), page.run("JSON.parse(data.textContent).runs.length")
    check(n_runs > 12 or n_pages <= (5 if n_runs <= 4 else 8), f"{n_runs} runs take {n_pages} pages of paper")
    check(page.run("[...document.querySelectorAll('.heads-table tbody th')].every(node => node.innerText.trim())"),
          "heads have no names on paper")
    page.send("Emulation.setEmulatedMedia", media="")


def check_page(page, path, results):
    page.problems.clear()
    if results.document.get("progress"):
        check_reload(page, path, results)
        return
    page.open(path)
    check_top(page, results)
    sections = check_sections(page, results)
    check_table(page, results)
    check_best(page, results)
    check_sorting(page, results)
    if "curves" in sections:
        check_curves(page, results)
        check_choice_of_runs(page, results)
    if "lengths" in sections:
        check_lengths(page, results)
    if "cost" in sections:
        check_costs(page)
    if "attention" in sections:
        check_attention(page, results)
    if "confusion" in sections:
        check_confusion(page, results)
    if "experts" in sections:
        check_experts(page, results)
    check_charts(page)
    if "curves" in sections:
        check_legend(page, results)
        check_zoom(page)
        check_saving(page, results)
    check_layout(page, path)
    check_print(page, path)


def main(arguments):
    if not arguments or len(arguments) % 2:
        print(__doc__, file=sys.stderr)
        return 2
    pages = zip(arguments[::2], map(Results, arguments[1::2]))
    return check_pages(pages, check_page)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

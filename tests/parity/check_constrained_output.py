"""Outputs under regular expressions and JSON schemas, judged by Python's re and by jsonschema.

CASES OUTPUTS: CASES is a file of one JSON document a line, {"regex": …} or {"json_schema": …}; OUTPUTS has a line for each
output that ended by itself, {"case": number, "text": …}. Prints the number of outputs that were judged for each case, and
fails at the first that does not match.
"""

import json
import re
import sys
from collections import Counter

import jsonschema


def judge(case):
    if "regex" in case:
        modes = [re.compile(case["regex"]), re.compile(case["regex"], re.ASCII)]
        return lambda text: all(mode.fullmatch(text) for mode in modes)
    schema = case["json_schema"]
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    return lambda text: validator.is_valid(json.loads(text))


def lines(path):
    with open(path, encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]


def main():
    cases, outputs = lines(sys.argv[1]), lines(sys.argv[2])
    judges = [judge(case) for case in cases]
    judged = Counter()
    for output in outputs:
        if not judges[output["case"]](output["text"]):
            sys.exit(f"{cases[output['case']]} does not describe {output['text']!r}")
        judged[output["case"]] += 1
    print(json.dumps([judged[number] for number in range(len(cases))]))


main()

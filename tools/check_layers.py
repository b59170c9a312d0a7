#!/usr/bin/env python3
"""Holds src/ to the layering of docs/ARCHITECTURE.md: a file includes its own room and rooms of a lower number only.

Also checks lengths: no .cc over 900 lines, no header over 500, the median .cc of src/ at most 250.
Usage: check_layers.py [ROOT]
"""
import pathlib
import re
import statistics
import sys

ROOMS = {"base": 0, "net": 1, "formats": 1, "text": 2, "kernels": 2, "model": 2, "engine": 3, "quantize": 4, "speculate": 4,
         "evaluate": 5, "serve": 5, "lab": 6, "report": 7, "cli": 8}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def faults(src):
    lengths = []
    for path in sorted(p for p in src.rglob("*") if p.suffix in (".cc", ".h")):
        room = path.relative_to(src).parts[0]
        lines = path.read_text(encoding="utf-8").splitlines()
        if room not in ROOMS:
            yield f"{path}: room {room} is not in the plan"
            continue
        for number, line in enumerate(lines, 1):
            m = INCLUDE.match(line)
            if not m:
                continue
            target = m.group(1).split("/")[0]
            if target not in ROOMS or not (src / m.group(1)).exists():
                yield f"{path}:{number}: {m.group(1)} is not a path below src/"
            elif target != room and ROOMS[target] >= ROOMS[room]:
                yield f"{path}:{number}: {room} may not include {target}"
        limit = 900 if path.suffix == ".cc" else 500
        if len(lines) > limit:
            yield f"{path}: {len(lines)} lines, at most {limit}"
        if path.suffix == ".cc":
            lengths.append(len(lines))
    if lengths and statistics.median(lengths) > 250:
        yield f"median length of .cc files is {statistics.median(lengths)} lines, at most 250"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    found = list(faults(root / "src"))
    print("\n".join(found) or "layers and lengths hold")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

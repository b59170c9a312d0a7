"""Runs a program for the scripts that measure and check: its output, or its error and the end of the script."""
import subprocess
import sys


def run(*args):
    args = [str(a) for a in args]
    done = subprocess.run(args, capture_output=True, encoding="utf-8")
    if done.returncode:
        shown = " ".join(a if len(a) <= 200 else a[:200] + "…" for a in args)
        sys.exit(f"{done.stderr[-2000:]}\nerror: {args[0]} ended with status {done.returncode} — {shown} — see above")
    return done.stdout

#!/usr/bin/env python3
"""Runs a Python script that limits its programs' address space, without that limit: sanitizers map far more than they use.

    without_address_limit.py SCRIPT [ARGUMENTS]
"""
import resource
import runpy
import sys

setrlimit = resource.setrlimit
resource.setrlimit = lambda kind, limits: kind == resource.RLIMIT_AS or setrlimit(kind, limits)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")

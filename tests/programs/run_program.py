#!/usr/bin/env python3
"""Runs text programs: run_program.py SHEAF PROGRAM ... [-- OPTION ...]

programs.py tells their form. Each is verified against the oracle and across batch sizes, orders
and threads, and its results are compared with those that it states.
"""
import sys

import programs


def main():
    arguments = sys.argv[1:]
    extra = []
    if "--" in arguments:
        at = arguments.index("--")
        arguments, extra = arguments[:at], arguments[at + 1:]
    runner = programs.Runner(arguments[0])
    failed = 0
    for path in arguments[1:]:
        problems = runner.run(programs.Program(path), extra)
        if problems:
            failed += 1
            print(f"FAILED: {path}\n{problems}")
    print(f"{len(arguments) - 1 - failed} of {len(arguments) - 1} programs passed")
    sys.exit(1 if failed else 0)


main()

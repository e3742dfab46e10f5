"""All static checks except clang-tidy: /usr/bin/python3 tools/lint/run.py. Exit status 1 if there is a problem."""
import subprocess
import sys
import unittest

import built
import clocks
import co_await
import coroutines
import layering
import man
import paths
import sizes
import sources
import throwing
import units
import words

CPP = (".cpp", ".hpp")
C = (".c", ".h")
CODE = (*CPP, *C, ".py", ".sh")
TEXT = (*CODE, ".md", ".yaml", ".cmake", ".in", ".conf", ".service", ".json", "CMakeLists.txt")


def _each(suffixes, check):
    problems = []
    for path in sources.files(*suffixes):
        problems += check(path.relative_to(sources.ROOT).as_posix(), path.read_text(errors="replace"))
    return problems


def _tool(arguments, paths):
    done = subprocess.run([*arguments, *paths], cwd=sources.ROOT, capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else [(done.stdout + done.stderr).strip() or f"{arguments[0]} failed"]


def self_test():
    found = unittest.defaultTestLoader.loadTestsFromNames(["test_layering", "test_lint", "test_paths"])
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=0).run(found)
    return [str(case) for case, _ in result.failures + result.errors]


def lengths():
    warnings = []

    def check(path, text):
        errors, more = sizes.check(path, text)
        warnings.extend(more)
        return errors

    problems = _each(CODE, check) + _each(CPP, sizes.check_classes)
    problems += sizes.check_folders([path.relative_to(sources.ROOT).as_posix() for path in sources.files(*CPP, *C)])
    for warning in warnings:
        print(f"     note: {warning}")
    return problems


def compiled():
    lists = {path.parent.relative_to(sources.ROOT).as_posix(): path.read_text()
             for path in sources.files("CMakeLists.txt")}
    named = built.compiled(lists)
    return _each([".cpp", ".c"], lambda path, _: built.check(path, named))


def header_cycles():
    graph = {path.relative_to(sources.ROOT).as_posix(): [header for _, header, quoted in layering.includes_of(
        path.read_text()) if quoted] for path in sources.files(".hpp", ".h")}
    return layering.check_cycles(graph)


def shell_scripts():
    return [path for path in sources.files()
            if path.suffix == ".sh" or path.read_bytes()[:64].startswith((b"#!/bin/sh", b"#!/bin/bash"))]


def manual():
    def text(path):
        return (sources.ROOT / path).read_text()

    pages = sorted((sources.ROOT / "docs/man").iterdir())
    return (_tool(["mandoc", "-T", "lint", "-W", "warning"], pages)
            + man.check_daemon(text("daemon/main.cpp"), text("docs/man/spark-staged.8"))
            + man.check_keys(text("configs/spark-stage.yaml"), text("docs/man/spark-stage.yaml.5")))


CHECKS = {
    "every check finds its bad samples and spares its good ones": self_test,
    "the staging benchmark counts right": lambda: _tool(
        [sys.executable, "-B", "-m", "unittest", "discover", "-q", "-s"], ["tools/benchmarks/staging"]),
    "arrows between the rooms": lambda: _each((*CPP, *C), layering.check) + header_cycles(),
    "temporaries inside co_await": lambda: _each(CPP, co_await.check),
    "exceptions of coroutines": lambda: _each(CPP, coroutines.check),
    "library calls that throw": lambda: _each(CPP, throwing.check),
    "clocks and timers": lambda: _each(CPP, clocks.check),
    "paths that users may change": lambda: _each(CPP, paths.check),
    "every source file is compiled": compiled,
    "sizes of files, classes, interfaces and folders": lengths,
    "words": lambda: _each(TEXT, words.check),
    "units keep out of mount namespaces": lambda: _each((".service", ".in"), units.check),
    "format of C++ and C": lambda: _tool(["clang-format-14", "--dry-run", "-Werror"], sources.files(*CPP, *C)),
    "shell scripts": lambda: _tool(["shellcheck", "--severity=warning"], shell_scripts()),
    "manual pages": manual,
    "python compiles": lambda: _each([".py"], lambda path, text: compile(text, path, "exec") and []),
}


def main():
    failed = 0
    for name, check in CHECKS.items():
        problems = check()
        failed += bool(problems)
        print(f"{'FAIL' if problems else ' ok '} {name}")
        for problem in problems:
            print("     " + problem.replace("\n", "\n     "))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

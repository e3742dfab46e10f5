"""Text that must not be left behind in a file."""
import re

RULES = [
    (r"\b(T[O]DO|FIXM[E]|X{3}|HAC[K])\b", "unfinished: finish it, or open an issue and take the word out"),
    (r"(?<![\w.~-])/(work|workspace|Users)/\w", "a path of somebody's own machine"),
    (r"\bDISABLED_\w|\bmark\.(skip|xfail)\b(?!.*reason=)", "a test that is switched off without a reason"),
    (r"\bGTEST_SKIP\(\)\s*;", "a test that is skipped without saying why"),
    (r"[ \t]+$", "white space at the end of the line"),
    (r"^(<{7}|>{7})( |$)", "a merge conflict's mark"),
]


def check(path, text):
    return [f"{path}:{number}: {why}"
            for number, line in enumerate(text.split("\n"), 1) for pattern, why in RULES if re.search(pattern, line)]

"""Lists our source files, and blanks everything except code in C++ text."""
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("base", "nvmetcp", "staging", "fleet", "bench", "daemon", "migration", "doctor", "cli", "slurm", "csi", "tests", "tools", "units", "debian",
         "configs", "docs", "cmake")


def files(*endings, root=ROOT):
    """All of our files with one of these name endings, sorted; all files if no ending is given."""
    found = [path for path in root.iterdir() if path.is_file()]
    for room in ROOMS:
        found += [path for path in (root / room).rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return sorted(path for path in found if not endings or path.name.endswith(endings))


_NOT_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/'                                     # comments
    r'|R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"'          # raw strings
    r'|"(?:\\.|[^"\\\n])*"'                                   # strings
    r"|(?<![0-9A-Za-z_])(?:u8|u|U|L)?'(?:\\.|[^'\\\n])+'",    # characters, not digit separators
    re.DOTALL)


def _blank(match):
    text = match.group(0)
    kept = "" if text[0] == "/" else text[-1]
    return kept + re.sub(r"[^\n]", " ", text[len(kept):len(text) - len(kept)]) + kept


def code_of(text):
    """C++ with comments, strings and characters blanked; line numbers stay the same."""
    return _NOT_CODE.sub(_blank, text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1

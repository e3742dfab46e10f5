"""docs/troubleshooting.md quotes the programs: each quoted sentence stands in their source."""
import re

_QUOTED = re.compile(r'^\| "([^"]+)" \|', re.MULTILINE)


def check(page, source):
    """page: the markdown; source: all C++ of ours. A literal that goes on in the next line is one."""
    joined = re.sub(r'"\s*\n\s*"', "", source)
    return [f"docs/troubleshooting.md quotes '{sentence}', which no program says"
            for sentence in _QUOTED.findall(page) if sentence not in joined]

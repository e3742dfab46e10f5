"""docs/troubleshooting.md quotes the programs: each quoted sentence stands in their source, and each refusal of the source
is quoted, or excused with a reason."""
import re

_ROW = re.compile(r'^\| ("[^|]+") \|', re.MULTILINE)
_QUOTED = re.compile(r'"([^"]+)"')
_REFUSAL = re.compile(r"\bErrc::(?:NoSpace|Mismatch|Refused),\s*")
_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')

# Refusals that need no row, and why.
EXCUSED = {
    "no_space": "the name of a kind, for programs",
    "mismatch": "the name of a kind, for programs",
    "refused": "the name of a kind, for programs",
    ": volume  …  is ": "goes on with the volume's own reason, which has a row",
    "key file  … : ": "goes on with what is wrong in the file",
    ": it is not  …  that is mounted there": "of stopping a lost volume's writes: somebody took the mount off before",
    " … :  … ; ": "goes on with a sentence for each file, which have rows",
}


def _joined(source):
    """A literal that goes on in the next line is one."""
    return re.sub(r'"\s*\n\s*"', "", source)


def quoted(page):
    return [sentence for row in _ROW.findall(page) for sentence in _QUOTED.findall(row)]


def check(page, source, excused=None):
    """page: the markdown; source: all C++ of ours."""
    joined = _joined(source)
    unsaid = [f"docs/troubleshooting.md quotes '{sentence}', which no program says"
              for sentence in quoted(page) if sentence not in joined]
    return unsaid + check_refusals(page, source, EXCUSED if excused is None else excused)


def refusals(source):
    """The literals of each refusal's sentence; of one that has none there is nothing to quote."""
    joined = _joined(source)
    found = [_LITERAL.findall(_first_argument(joined[match.end():])) for match in _REFUSAL.finditer(joined)]
    return [literals for literals in found if literals]


def _first_argument(text):
    depth = 0
    for match in re.finditer(r'"(?:[^"\\]|\\.)*"|[({\[]|[)}\]]|,', text):
        token = match[0]
        if token[0] in "({[":
            depth += 1
        elif token[0] in ")}]":
            depth -= 1
        if depth < 0 or (depth == 0 and token == ","):
            return text[:match.start()]
    return text


def _tells(sentence, literal):
    """A word or two are in many sentences."""
    return sentence == literal or (len(sentence.split()) >= 3 and sentence in literal)


def check_refusals(page, source, excused):
    sentences = quoted(page)
    untold = [" … ".join(literals) for literals in refusals(source)
              if not any(_tells(sentence, literal) for sentence in sentences for literal in literals)]
    return ([f"docs/troubleshooting.md has no row for the refusal '{one}'" for one in untold if one not in excused]
            + [f"tools/lint/sentences.py excuses '{one}', which is no refusal without a row"
               for one in excused if one not in untold])

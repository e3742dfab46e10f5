"""The fenced blocks of our documentation pages, for tests that run them."""
import re
from dataclasses import dataclass

from .settings import REPOSITORY

FENCE = "```"


@dataclass(frozen=True)
class Block:
    page: str
    line: int  # line of its fence
    language: str
    lines: tuple

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"

    def __str__(self):
        return f"{self.page}:{self.line}: {self.lines[0]}"


def of_page(page):
    blocks, begin, language = [], None, ""
    lines = (REPOSITORY / page).read_text().splitlines()
    for number, line in enumerate(lines, 1):
        if not line.startswith(FENCE):
            continue
        if begin is None:
            begin, language = number, line[len(FENCE):]
        else:
            blocks.append(Block(page, begin, language, tuple(lines[begin:number - 1])))
            begin = None
    assert begin is None, f"{page}:{begin}: a block that does not end"
    return blocks


def everywhere():
    pages = ["README.md", "CONTRIBUTING.md", "tests/vm/README.md",
             *sorted(path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "docs").glob("*.md"))]
    return [block for page in pages for block in of_page(page)]


def find(page, begin):
    """The only block of a page with this beginning of its first line."""
    found = [block for block in of_page(page) if block.lines[0].startswith(begin)]
    assert len(found) == 1, f"{page} has {len(found)} blocks that begin with {begin!r}"
    return found[0]


def line(page, begin):
    """The only line of a page's blocks with this beginning, without its comment."""
    found = [without_remark(one) for block in of_page(page) for one in block.lines if one.startswith(begin)]
    assert len(found) == 1, f"{page} has {len(found)} lines in blocks that begin with {begin!r}"
    return found[0]


def without_remark(command):
    return re.sub(r"\s{2,}# .*$", "", command)

"""The fenced blocks of our own pages, for those who run them."""
from dataclasses import dataclass

from .settings import REPOSITORY

FENCE = "```"


@dataclass(frozen=True)
class Block:
    page: str
    line: int  # of its fence
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
    pages = ["README.md", "CONTRIBUTING.md", *sorted(path.relative_to(REPOSITORY).as_posix()
                                                     for path in (REPOSITORY / "docs").glob("*.md"))]
    return [block for page in pages for block in of_page(page)]

"""Finds files, functions, classes, interfaces and folders that are too large and should be split."""
import ast
import re
from collections import Counter
from dataclasses import dataclass

WARN, FAIL, FUNCTION = 300, 400, 60
METHODS, MEMBERS, VIRTUALS, FILES = 25, 15, 7, 25


def check(path, text):
    """(errors, warnings) about one file. C++ functions are measured by clang-tidy."""
    errors, warnings = [], []
    lines = text.count("\n")
    if lines > FAIL:
        errors.append(f"{path}: {lines} lines, more than {FAIL}: split it, there is a second room inside")
    elif lines > WARN:
        warnings.append(f"{path}: {lines} lines, more than {WARN}")
    if path.endswith(".py"):
        for node in ast.walk(ast.parse(text, path)):
            length = (getattr(node, "end_lineno", 0) or 0) - getattr(node, "lineno", 0) + 1
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and length > FUNCTION:
                errors.append(f"{path}:{node.lineno}: {node.name} has {length} lines, more than {FUNCTION}: split it")
    return errors, warnings


@dataclass
class Class:
    name: str
    line: int
    methods: int = 0   # without constructors, destructors and operators
    members: int = 0   # data, not static
    virtuals: int = 0  # of an interface; 0: not an interface


def _without_comments(text):
    """Replaces comments and literals by spaces, so that line numbers stay the same."""
    pattern = r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|^[ \t]*#[^\n]*'
    return re.sub(pattern, lambda found: re.sub(r"[^\n]", " ", found.group()), text, flags=re.DOTALL | re.MULTILINE)


def _end_of(text, begin, opening="{", closing="}"):
    """The position after the bracket that closes the one at `begin`."""
    depth = 0
    for at in range(begin, len(text)):
        depth += (text[at] == opening) - (text[at] == closing)
        if depth == 0:
            return at + 1
    return len(text)


def _declarations(body):
    """Each declaration in a class's body, without the content of braces."""
    at = begin = 0
    shown = ""
    while at < len(body):
        if body[at] == "{":
            shown += body[begin:at] + "{}"
            at = begin = _end_of(body, at)
            if "(" in shown and not re.match(r"\s*[,;{]", body[at:]):  # a function's body ends its declaration
                yield shown
                shown = ""
        elif body[at] == ";":
            yield shown + body[begin:at]
            shown, begin, at = "", at + 1, at + 1
        else:
            at += 1


def _without_arguments(declaration):
    """Removes template arguments: std::function<void(int)> is not a function."""
    while (shorter := re.sub(r"<[^<>]*>", "", declaration)) != declaration:
        declaration = shorter
    return declaration


def _count(found, body):
    pure = False
    for declaration in _declarations(body):
        words = re.sub(r"\b(public|private|protected)\s*:(?!:)", "", _without_arguments(declaration)).strip()
        other = r"(using|friend|enum|struct|class|union|static_assert|typedef)\b|.*\boperator\b"
        if not words or re.match(other, words, re.DOTALL):
            continue
        head = words.split("=")[0]
        if "(" not in head:
            found.members += not re.match(r"(inline\s+)?(static|constexpr)\b", words)
        elif not re.search(rf"~|^(explicit\s+|constexpr\s+)*{found.name}\s*\(", head):
            found.methods += 1
            found.virtuals += words.startswith("virtual")
            pure = pure or bool(re.search(r"=\s*0$", words))
    if not pure:
        found.virtuals = 0


def classes(text):
    text = _without_comments(text)
    for begin in re.finditer(r"(?<!enum )\bclass\s+(?:\[\[\w+\]\]\s+)?(\w+)\s*(?:final\s*)?(?::[^;{]*)?\{", text):
        end = _end_of(text, begin.end() - 1)
        found = Class(begin.group(1), text.count("\n", 0, begin.start()) + 1)
        _count(found, text[begin.end():end - 1])
        yield found


def check_classes(path, text):
    problems = []
    for one in classes(text):
        for number, most, what in ((one.methods, METHODS, "methods"), (one.members, MEMBERS, "members"),
                                   (one.virtuals, VIRTUALS, "virtual methods")):
            if number > most:
                problems.append(f"{path}:{one.line}: class {one.name} has {number} {what}, more than {most}: it is two things")
    return problems


def check_folders(paths):
    """For all C++ files."""
    count = Counter(path.rpartition("/")[0] for path in paths)
    return [f"{folder}/: {number} files, more than {FILES}: it is two rooms"
            for folder, number in sorted(count.items()) if number > FILES]

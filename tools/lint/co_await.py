"""g++ 12 destroys some temporaries twice when their full expression contains a co_await, silently at -O2.

Flagged, anywhere in an expression with a co_await: a lambda with captures, and nonempty braces. Give both a name first and
move them in (CONTRIBUTING.md, traps). Also a co_await after a `?`, since its result is destroyed twice: use an if.
"""
import re

from sources import code_of, line_of

_TOKEN = re.compile(r"[A-Za-z_]\w*|\d[\w.']*|::|->|\S")
_OPEN, _CLOSE = set("([{"), set(")]}")
# After one of these a `[` begins a lambda; after any other word or a closing bracket it is an index.
_WORDS_BEFORE_LAMBDA = {"return", "co_return", "co_await", "co_yield", "case", "else"}

LAMBDA = "a lambda with captures inside a co_await expression is destroyed twice by g++ 12: name it first, then move it in"
BRACES = "a braced temporary inside a co_await expression is destroyed twice by g++ 12: name it first, then move it in"

TERNARY = "what a co_await behind a '?' gives is destroyed twice by g++ 12: write an if"


def _is_word(token):
    return token[0].isalpha() or token[0] == "_"


def _matching(tokens, at):
    """The index of the bracket that closes tokens[at]."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += (tokens[i] in _OPEN) - (tokens[i] in _CLOSE)
        if depth == 0:
            return i
    return len(tokens) - 1


def _begin(tokens, at):
    """The beginning of the full expression around tokens[at], as far back as it is certain."""
    depth, i = 0, at
    while i > 0:
        token, after = tokens[i - 1], tokens[i]
        if depth == 0 and (token in ";{" or (token == ")" and _is_word(after))
                           or (token == "}" and (_is_word(after) or after in _OPEN))):
            return i
        depth = max(0, depth + (token in _CLOSE) - (token in _OPEN))
        i -= 1
    return 0


def _is_lambda(tokens, at):
    before, after = tokens[max(at - 1, 0)], tokens[min(at + 1, len(tokens) - 1)]
    if tokens[at] != "[" or "[" in (before, after):  # [[attribute]]
        return False
    return before in _WORDS_BEFORE_LAMBDA or not (_is_word(before) or before in ")]\"'")


def _lambda_body(tokens, at):
    """The index of the `{` of the lambda with its `[` at `at`."""
    i = _matching(tokens, at) + 1
    while i < len(tokens) and tokens[i] not in "{;":
        i = _matching(tokens, i) + 1 if tokens[i] in _OPEN else i + 1
    return min(i, len(tokens) - 1)


def _scan(tokens, begin, wait):
    """Yields (index, problem) in the full expression that holds the co_await at `wait`."""
    depth, i = 0, begin
    while i < len(tokens):
        token = tokens[i]
        if _is_lambda(tokens, i):
            if tokens[i + 1] != "]":
                yield i, LAMBDA
            i = _matching(tokens, _lambda_body(tokens, i)) + 1  # its body is a separate expression
            continue
        if token == "{":
            if tokens[i - 1] == ")" and depth <= 0 and i > wait:
                return  # the body of an if, for, while or switch
            if tokens[i + 1] != "}":
                yield i, BRACES
            i = _matching(tokens, i) + 1
            continue
        if (token == ";" or token == "}") and i > wait:
            return
        depth += (token in _OPEN) - (token in _CLOSE)
        i += 1


def check(path, text):
    code = code_of(text)
    found = list(_TOKEN.finditer(code))
    tokens = [token.group(0) for token in found]
    problems = {}
    for wait, token in enumerate(tokens):
        if token != "co_await":
            continue
        begin = _begin(tokens, wait)
        if "?" in tokens[begin:wait]:
            problems[wait] = f"{path}:{line_of(code, found[wait].start())}: {TERNARY}"
        for at, problem in _scan(tokens, begin, wait):
            problems[at] = f"{path}:{line_of(code, found[at].start())}: {problem}"
    return [problems[at] for at in sorted(problems)]

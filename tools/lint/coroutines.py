"""A detached coroutine may only be started by daemon/launch.hpp: asio::detached drops its exceptions."""
import re

from sources import code_of, line_of

PLACE = "daemon/launch."
PROBLEM = "an exception of a coroutine started with asio::detached vanishes: use launch() of daemon/launch.hpp"

_DETACHED = re.compile(r"\basio::detached(_t)?\b|\bboost/asio/detached\.hpp\b")


def check(path, text):
    if path.startswith((PLACE, "tests/")):
        return []
    code = code_of(text)
    return [f"{path}:{line_of(code, found.start())}: {PROBLEM}" for found in _DETACHED.finditer(code)]

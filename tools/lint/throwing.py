"""Finds calls of the standard library that throw on a system in trouble and have a form that returns an error instead.

std::filesystem without a std::error_code at the end, and threads, which a limit on processes refuses.
"""
import re

from sources import code_of, line_of

FILESYSTEM = "throws: give it a std::error_code"
THREAD = "throws where the system allows no more threads: use base/threads.hpp"
ASYNC = "throws where the system allows no more threads: add std::launch::deferred"

_PATH_CALLS = ("absolute|canonical|weakly_canonical|relative|proximate|current_path|temp_directory_path|copy|copy_file|"
               "copy_symlink|create_directory|create_directories|create_hard_link|create_symlink|"
               "create_directory_symlink|equivalent|exists|file_size|hard_link_count|is_block_file|is_character_file|"
               "is_directory|is_empty|is_fifo|is_other|is_regular_file|is_socket|is_symlink|last_write_time|permissions|"
               "read_symlink|remove|remove_all|rename|resize_file|space|status|symlink_status")
_CALL = re.compile(rf"\b(?:fs|filesystem)::(?P<name>{_PATH_CALLS})\s*\(")
_ITERATOR = re.compile(r"\b(?:fs|filesystem)::(?:recursive_)?directory_iterator\b(?:\s+\w+)?\s*\(")
_CODES = re.compile(r"\bstd::error_code\s*&?\s*([\w, ]+)")
_STATUSES = re.compile(r"\bfile_status\s+(\w+)")
_THREAD = re.compile(r"\bstd::j?thread\b(?!::|&|\s+\w+;)")  # a variable is empty until a thread is assigned
_ASYNC = re.compile(r"\bstd::async\s*\((?![^;]*\bdeferred\b)")


def _arguments(code, begin):
    """The arguments of the call with its opening bracket at begin - 1."""
    depth, found, start = 1, [], begin
    for at in range(begin, len(code)):
        depth += (code[at] in "([{") - (code[at] in ")]}")
        if depth == 0 or (depth == 1 and code[at] == ","):
            found.append(code[start:at].strip())
            start = at + 1
        if depth == 0:
            break
    return found


def _takes_error(code, call, codes, statuses):
    arguments = _arguments(code, call.end())
    first, last = arguments[0], arguments[-1]
    if arguments == [""] or last in codes:
        return True
    return first in statuses or re.match(r"(?:std::)?(?:fs|filesystem)::(?:symlink_)?status\(", first) is not None


def check(path, text):
    if path.startswith(("tests/", "base/threads.")):
        return []
    code = code_of(text)
    codes = {name.strip() for found in _CODES.finditer(code) for name in found.group(1).split(",")}
    statuses = set(_STATUSES.findall(code))
    problems = [(call.start(), FILESYSTEM) for pattern in (_CALL, _ITERATOR) for call in pattern.finditer(code)
                if not _takes_error(code, call, codes, statuses)]
    problems += [(found.start(), THREAD) for found in _THREAD.finditer(code)]
    problems += [(found.start(), ASYNC) for found in _ASYNC.finditer(code)]
    return [f"{path}:{line_of(code, at)}: this {why}" for at, why in sorted(problems)]

"""A source file that no CMakeLists.txt names is never compiled, and a test in it never runs."""
import posixpath
import re


def compiled(cmake_lists):
    """The files named by {folder: text of its CMakeLists.txt}."""
    return {posixpath.normpath(word.replace("${PROJECT_SOURCE_DIR}", ".") if word.startswith("$") else f"{folder}/{word}")
            for folder, text in cmake_lists.items() for word in re.findall(r"[^\s()]+\.c(?:pp)?\b", re.sub(r"#[^\n]*", "", text))}


def check(path, named):
    return [] if path in named else [f"{path}: no CMakeLists.txt names it: it is never compiled"]

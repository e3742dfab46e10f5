"""Files that have grown a second room inside."""
import ast

WARN, FAIL, FUNCTION = 300, 400, 60


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

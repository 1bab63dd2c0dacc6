"""A cell's way from text to code, made short: every rank goes it, and the text of a check has hundreds of lines.

What IPython does with a cell before it runs was most of what a cell cost that computes little: it cuts the text into
tokens, in Python, to find %magics, !commands and help?, and hashes it, in Python, for the name of its file; and
ipykernel asks for the cell as Python, and whether it awaits anything, before IPython asks both again. The functions
change the shell that they are given, not its class (see launch/rank/_tracebacks.py).

Left out: the notebook's own kernel, where a cell of the ranks is one magic.
"""

from __future__ import annotations

import ast
import zlib
from functools import lru_cache

from ipykernel.compiler import get_tmp_directory


def shorten(shell) -> None:
    """`forget` belongs in front of every cell."""
    skip_tokens_of_python(shell.input_transformer_manager)
    folder = get_tmp_directory()

    def name_of(text: str, *_) -> str:
        return f"{folder}/{zlib.crc32(text.encode(errors='replace'))}.py"

    shell.compile.get_code_name = name_of
    shell.transform_cell = lru_cache(1)(shell.transform_cell)
    shell.should_run_async = lru_cache(1)(shell.should_run_async)


def forget(shell) -> None:
    """A cell begins: what was found out about the last one is not asked again, though the text be the same."""
    shell.transform_cell.cache_clear()
    shell.should_run_async.cache_clear()


def skip_tokens_of_python(manager) -> None:
    """What is Python as it stands has nothing in it that IPython's own transformers look for."""
    transform, usual = manager.do_token_transforms, list(manager.token_transformers)

    def do_token_transforms(lines: list[str]) -> list[str]:
        if manager.token_transformers == usual and is_python("".join(lines)):
            return lines
        return transform(lines)

    manager.do_token_transforms = do_token_transforms


def is_python(text: str) -> bool:
    try:
        # What Python warns of stands under the name that it has when IPython asks for awaits.
        compile(text, "<>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True

"""Attempts at survive."""

BODY = """
import os

def survive(path, w, m, step):
    begin = 0
    if os.path.exists(path):
        saved = torch.load(path)
        {loaded}
    for number in range({begin}, {end}):
        step(number, w, m)
        if {when}:
            {saved}
            {replaced}
"""
GOOD = {
    "loaded": "begin = saved['step']; w.copy_(saved['w']); m.copy_(saved['m'])",
    "begin": "begin",
    "end": "9",
    "when": "rank == 0 and number % 3 == 2",
    "saved": "torch.save({'w': w, 'm': m, 'step': number + 1}, path + '.new')",
    "replaced": "os.replace(path + '.new', path)",
}

RIGHT = {
    "one tensor": """
import os

def survive(path, w, m, step):
    state = torch.load(path) if os.path.exists(path) else torch.zeros(5, dtype=w.dtype)
    w[:], m[:] = state[:2], state[2:4]
    for number in range(int(state[4]), 9):
        step(number, w, m)
        if (number + 1) % 3 == 0 and rank == 0:
            torch.save(torch.cat([w, m, torch.tensor([number + 1.0], dtype=w.dtype)]), path + ".tmp")
            os.rename(path + ".tmp", path)
""",
    "the last step that was done": BODY.format(
        **GOOD
        | {
            "loaded": "begin = saved['done'] + 1; w.copy_(saved['w']); m.copy_(saved['m'])",
            "saved": "torch.save({'w': w, 'm': m, 'done': number}, path + '.new')",
        }
    ),
    "a file object": BODY.format(
        **GOOD
        | {
            "saved": "with open(path + '.new', 'wb') as file: torch.save({'w': w, 'm': m, 'step': number + 1}, file)",
        }
    ),
    "a Path": BODY.format(
        **GOOD
        | {
            "saved": GOOD["saved"].replace("path + '.new'", "new"),
            "replaced": "new.replace(path)",
        }
    ).replace("    begin = 0", "    from pathlib import Path\n\n    begin, new = 0, Path(path + '.new')"),
    "a barrier before it loads": BODY.format(**GOOD).replace("    begin = 0", "    dist.barrier()\n    begin = 0"),
    "rounds of three": """
import os

def survive(path, w, m, step):
    begin = 0
    try:
        begin, old_w, old_m = torch.load(path)
        w += old_w
        m += old_m
    except FileNotFoundError:
        pass
    while begin < 9:
        for _ in range(3):
            step(begin, w, m)
            begin += 1
        if rank == 0:
            torch.save([begin, w, m], path + ".half")
            os.replace(path + ".half", path)
""",
}

WRONG = {
    "never saves": (BODY.format(**GOOD | {"when": "False"}), "the steps that were computed in all three attempts"),
    "saves over the old file": (
        BODY.format(**GOOD | {"saved": GOOD["saved"].replace(" + '.new'", ""), "replaced": "pass"}),
        "now the checkpoint is half a file: save under another name",
    ),
    "saves the weights alone": (
        BODY.format(
            **GOOD
            | {
                "loaded": "begin = saved['step']; w.copy_(saved['w'])",
                "saved": "torch.save({'w': w, 'step': number + 1}, path + '.new')",
            }
        ),
        "rank 0: w ",
    ),
    "does not load": (BODY.format(**GOOD | {"begin": "0"}), "rank 0: w "),
    "begins one step too early": (
        BODY.format(**GOOD | {"saved": GOOD["saved"].replace("number + 1", "number")}),
        "rank 0: w ",
    ),
    "every rank saves": (BODY.format(**GOOD | {"when": "number % 3 == 2"}), "it saves, too, into the same file"),
    "one step too few": (BODY.format(**GOOD | {"end": "8"}), "rank 0: w "),
    "new tensors instead of w and m": (
        BODY.format(**GOOD | {"loaded": "begin = saved['step']; w, m = saved['w'], saved['m']"}),
        "rank 0: w ",
    ),
    "saves after every step": (
        BODY.format(**GOOD | {"when": "rank == 0"}),
        "the steps that were computed in all three attempts",
    ),
}

"""The exercises of chapter 18: ranks of a machine as neighbours, and a training loop that is killed and goes on."""

import numpy as np

from course.exercises.exercise import A_FEW, Exercise, nobody

STEPS, EVERY = 9, 3
"""How many steps a training loop takes, and after how many it saves."""

KILLED = f"""
import os, shutil, tempfile
_trial_folder = os.path.join(tempfile.gettempdir(), f"ringside-{{{{os.getppid()}}}}-{{{{world_size}}}}")
if rank == 0:
    shutil.rmtree(_trial_folder, ignore_errors=True)  # a trial that failed leaves its checkpoint
    os.makedirs(_trial_folder, exist_ok=True)
class _TrialKilled(BaseException):
    pass
def _trial_forces(number, x):  # a gradient that no step has twice
    return x[:2] * (number + 1) / 256
def _trial_survived(survive, x, kill_at):
    path = os.path.join(_trial_folder, "training.pt")
    computed, saves, attempt, w, m = 0, 0, 0, None, None
    def step(number, w, m):
        nonlocal computed
        message = torch.cat([_trial_forces(number, x), x.new_tensor([attempt == 1 and number == kill_at])])
        dist.all_reduce(message)
        if message[2]:
            raise _TrialKilled
        m.mul_(0.5).add_(message[:2])
        w.sub_(m)
        computed += 1
    def save(what, file, *args, **kwargs):
        nonlocal saves
        if rank:
            raise ValueError("it saves, too, into the same file as rank 0: one rank is enough")
        whole(what, file, *args, **kwargs)
        saves += 1
        if attempt == 2 and saves_before == saves - 1:
            name = file
            if hasattr(file, "flush"):  # an open file; a path has a name, too
                file.flush()
                name = file.name
            os.truncate(name, os.path.getsize(name) // 2)
            raise _TrialKilled
    whole, torch.save = torch.save, save
    try:
        for attempt in 1, 2, 3:
            w, m, saves_before = torch.zeros_like(x[:2]), torch.zeros_like(x[:2]), saves
            if attempt == 3 and os.path.exists(path):
                try:
                    torch.load(path)
                except Exception:
                    raise ValueError("rank 0 was killed while it saved, and now the checkpoint is half a file: save "
                        "under another name, and os.replace(new, path) when all of it is written") from None
            killed = False
            try:
                survive(path, w, m, step)
            except _TrialKilled:
                killed = True
            if not killed or saves > saves_before and attempt == 2 and rank == 0:
                dist.all_reduce(torch.ones_like(x[:3]))  # ranks that still train are ended, as torchrun would
    finally:
        torch.save = whole
        dist.barrier()
        shutil.rmtree(_trial_folder, ignore_errors=True)
    return torch.cat([w, m, x.new_tensor([computed])])
def _trial_by_the_book(x, kill_at):
    w, m = torch.zeros_like(x[:2]), torch.zeros_like(x[:2])
    for number in range({STEPS}):
        forces = _trial_forces(number, x)
        dist.all_reduce(forces)
        m = 0.5 * m + forces
        w = w - m
    begun = kill_at // {EVERY} * {EVERY}
    return torch.cat([w, m, x.new_tensor([kill_at + {EVERY} + {STEPS} - begun])])
"""
"""Three attempts: all ranks are killed in a step, rank 0 while it saves, and then nobody."""

KILL_AT = "3 + sum(lengths) % 6"
"""The step in which the first attempt ends: another one in each draw."""

EXERCISES = (
    Exercise(
        name="neighbours_first",
        asks="returns all ranks, sorted by machine number (x); ranks of one machine stay in rank order; with one "
        "all_gather "
        "of one number each; x stays as it is",
        lines=4,
        x="torch.tensor([7 + 5 * (2 * lengths[rank] % 3)]).to(dtype)",
        expected="torch.empty(world_size, dtype=dtype); dist.all_gather_single(expected, x); "
        "expected = expected.argsort(stable=True).to(dtype)",
        in_place=False,
        needs=nobody,  # numbers changed on the way stand in the same order: nothing would be seen by it
        allowed=frozenset({"all_gather", "all_gather_single"}),
        calls=lambda p: 1,
        call_bytes=lambda p: A_FEW * p,
        slips={
            lambda trial, rank: np.sort(np.concatenate(trial.given)): "these are the machines' numbers, sorted; the "
            "task asks for the ranks: argsort",
            lambda trial, rank: np.argsort(trial.expected[rank]): "that is the place of each rank in the order; the "
            "task asks which rank is in each place",
        },
        hints=(
            "Each rank knows its own machine only. Who tells it the others'?",
            "dist.all_gather_single(machines, x) fills a tensor of world_size numbers: machines[r] is that of rank r.",
            "Sort the ranks by their machine's number, so that equals keep their order: machines.argsort(stable=True).",
        ),
    ),
    Exercise(
        name="survive",
        asks=f"it calls step(number, w, m) for number 0 to {STEPS - 1}. Rank 0 saves w, m and the next step in the "
        "file "
        f"path after every {EVERY} steps. Called again with new w and m, it continues from there. The judge kills it "
        "twice: all ranks during a step, then rank 0 during a save. Only step communicates",
        lines=12,
        x="torch.randint(low, high, (3,)).to(dtype) * scale",
        expected=f"_trial_by_the_book(x, {KILL_AT})",
        in_place=False,
        setup=KILLED,
        call="_trial_survived({name}, x, 3 + sum({lengths}) % 6)",
        parts=lambda p: {"w": 2, "m": 2, "the steps that were computed in all three attempts": 1},
        allowed=frozenset({"all_reduce", "barrier"}),
        rtol=1e-5,
        hints=(
            "At the beginning: if os.path.exists(path), torch.load(path), copy the numbers into w and m (w.copy_), and "
            "begin with the step that was saved. Else begin with 0.",
            "A number that is saved after step 5 says where to go on: with step 6.",
            "Rank 0 may be killed while torch.save writes. Save to path + '.new', then os.replace(path + '.new', path) "
            "is all or nothing.",
            "Save m as well as w: without the momentum the steps after a restart differ.",
        ),
        dtypes=("float32", "float64", "float32"),
    ),
)

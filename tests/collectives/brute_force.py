"""The oracle: runs a schedule on plain numbers, and says what a collective must give, in numpy.

Written against the meaning of Transfer alone; it shares no code with `collectives` (no State, no goal, no columns), so
a mistake there does not repeat itself here. Numbers are large and random: different sums do not coincide.
"""

import random

import numpy as np

NOTHING = None  # an empty chunk; it spoils whatever it is added to


def inputs(schedule, seed=0):
    """values[buffer][rank][chunk]: ints where the collective starts with data, else NOTHING."""
    draw = random.Random(seed)
    values = {name: [[NOTHING] * schedule.chunks for _ in range(schedule.ranks)] for name in schedule.buffers}
    block = schedule.chunks // schedule.ranks
    for rank in range(schedule.ranks):
        for chunk in range(schedule.chunks):
            has = {
                "broadcast": rank == schedule.root,
                "scatter": rank == schedule.root,
                "gather": block and rank == chunk // block,
                "all_gather": block and rank == chunk // block,
                "send_recv": schedule.algorithm != "ring_pass" or rank == 0,
            }.get(schedule.collective, True)
            if has:
                values[schedule.buffers[0]][rank][chunk] = draw.randrange(2**60)
    if schedule.collective == "barrier":
        values["data"] = [[{rank}] for rank in range(schedule.ranks)]
    return values


def run(schedule, values):
    """The buffers after all steps; messages of a step read before it and land together, then come local transfers."""
    values = {name: [list(row) for row in rows] for name, rows in values.items()}

    def land(op, number, transfer, i):
        row = values[transfer.dst_buffer][transfer.dst]
        at = transfer.dst_chunk + i
        if op == "copy" or number is NOTHING or row[at] is NOTHING:
            row[at] = number if op == "copy" else NOTHING
        else:
            row[at] = row[at] | number if isinstance(number, set) else row[at] + number

    for step in schedule.steps:
        arriving = []
        for transfer in step.transfers:
            if transfer.src != transfer.dst:
                for i in range(transfer.count):
                    number = values[transfer.src_buffer][transfer.src][transfer.chunk + i]
                    arriving.append((transfer.op, number, transfer, i))
        for item in arriving:
            land(*item)
        for transfer in step.transfers:
            if transfer.src == transfer.dst:
                for i in range(transfer.count):
                    land(transfer.op, values[transfer.src_buffer][transfer.src][transfer.chunk + i], transfer, i)
    return values


def is_right(schedule, seed=0):
    """Whether every rank ends with what the collective promises, in numbers."""
    before = inputs(schedule, seed)
    try:
        after = run(schedule, before)
    except IndexError:
        return False
    p, chunks, result = schedule.ranks, schedule.chunks, after[schedule.result]
    first = np.array(before[schedule.buffers[0]], dtype=object)
    block = chunks // p
    match schedule.collective:
        case "broadcast":
            return all(row == list(first[schedule.root]) for row in result)
        case "scatter":
            return all(
                result[r][c] == first[schedule.root, c] for r in range(p) for c in range(r * block, (r + 1) * block)
            )
        case "gather" | "all_gather":
            whole = [first[c // block, c] for c in range(chunks)]
            return all(result[r] == whole for r in ([schedule.root] if schedule.collective == "gather" else range(p)))
        case "reduce" | "all_reduce":
            total = list(first.sum(axis=0))
            return all(result[r] == total for r in ([schedule.root] if schedule.collective == "reduce" else range(p)))
        case "reduce_scatter":
            total = first.sum(axis=0)
            return all(result[r][c] == total[c] for r in range(p) for c in range(r * block, (r + 1) * block))
        case "all_to_all":
            return np.array_equal(np.array(result, dtype=object), first.T)
        case "barrier":
            return all(row == [set(range(p))] for row in result)
        case "send_recv":
            return _neighbours_are_right(schedule, first, after)
    raise AssertionError(f"no oracle for {schedule.collective}")


def _neighbours_are_right(schedule, first, after):
    p, last = schedule.ranks, schedule.chunks - 1
    match schedule.algorithm:
        case "ring_pass":
            return all(row == [first[0, 0]] for row in after["data"])
        case "shift":
            return all(after["inbox"][(r + 1) % p] == [first[r, 0]] for r in range(p))
        case "halo_exchange":
            left = all(after["left"][r][0] == first[r - 1, last] for r in range(1, p))
            return left and all(after["right"][r][0] == first[r + 1, 0] for r in range(p - 1))

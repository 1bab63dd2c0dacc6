"""Attempts at all_reduce_many."""

RIGHT = {
    "by position": """
def all_reduce_many(tensors):
    bucket = torch.empty(sum(t.numel() for t in tensors), dtype=tensors[0].dtype)
    start = 0
    for t in tensors:
        bucket[start:start + t.numel()] = t.reshape(-1)
        start += t.numel()
    dist.all_reduce(bucket)
    start = 0
    for t in tensors:
        t[...] = bucket[start:start + t.numel()].reshape(t.shape)
        start += t.numel()
""",
    "with torch's own helpers": """
from torch.nn.utils import parameters_to_vector

def all_reduce_many(tensors):
    flat = parameters_to_vector(tensors)
    dist.all_reduce(flat, op=dist.ReduceOp.SUM)
    for t in tensors:
        part, flat = flat[:t.numel()], flat[t.numel():]
        t.data = part.view_as(t)
""",
    "without waiting at once": """
def all_reduce_many(tensors):
    flat = torch.cat([t.flatten() for t in tensors])
    work = dist.all_reduce(flat, async_op=True)
    sizes = [t.numel() for t in tensors]
    work.wait()
    for t, part in zip(tensors, torch.split(flat, sizes)):
        t.zero_().add_(part)
""",
}

WRONG = {
    "as if all were flat": (
        """
def all_reduce_many(tensors):
    bucket = torch.cat(tensors)
    dist.all_reduce(bucket)
    for t, part in zip(tensors, bucket.split([len(t) for t in tensors])):
        t.copy_(part)
""",
        "RuntimeError: Sizes of tensors must match",
    ),
    "a row is not its numbers": (
        """
def all_reduce_many(tensors):
    bucket = torch.cat([t.flatten() for t in tensors])
    dist.all_reduce(bucket)
    for t, part in zip(tensors, bucket.split([len(t) for t in tensors])):
        t.copy_(part)
""",
        "RuntimeError: split_with_sizes expects split_sizes to sum exactly to",
    ),
    "exactly three": (
        """
def all_reduce_many(tensors):
    a, b, c = tensors
    bucket = torch.cat([a.flatten(), b.flatten(), c.flatten()])
    dist.all_reduce(bucket)
    a.copy_(bucket[:a.numel()])
    b.copy_(bucket[a.numel():a.numel() + b.numel()])
    c.copy_(bucket[a.numel() + b.numel():])
""",
        "no  on 2 ranks, float64: ranks 0-1: ValueError: not enough values to unpack",
    ),
    "the first three": (
        """
def all_reduce_many(tensors):
    bucket = torch.cat([t.flatten() for t in tensors[:3]])
    dist.all_reduce(bucket)
    for t, part in zip(tensors[:3], bucket.split([t.numel() for t in tensors[:3]])):
        t.copy_(part)
""",
        "no  on 3 ranks",
    ),
    "one call each": (
        """
def all_reduce_many(tensors):
    for t in tensors:
        dist.all_reduce(t)
""",
        "3 calls of built-ins where 1 will do",
    ),
    "sums stay in the bucket": (
        """
def all_reduce_many(tensors):
    bucket = torch.cat([t.flatten() for t in tensors])
    dist.all_reduce(bucket)
    return list(bucket.split([t.numel() for t in tensors]))
""",
        "x is as it was",
    ),
    "the first part everywhere": (
        """
def all_reduce_many(tensors):
    bucket = torch.cat([t.flatten() for t in tensors])
    dist.all_reduce(bucket)
    for t in tensors:
        t.copy_(bucket[:t.numel()])
""",
        "at element 1 is element 0, where element 1 belongs",
    ),
    "the mean": (
        """
def all_reduce_many(tensors):
    bucket = torch.cat([t.flatten() for t in tensors])
    dist.all_reduce(bucket)
    for t, part in zip(tensors, bucket.split([t.numel() for t in tensors])):
        t.copy_(part / world_size)
""",
        "all of it was divided by 4",
    ),
    "in float32, whatever comes": (
        """
def all_reduce_many(tensors):
    bucket = torch.cat([t.flatten().float() for t in tensors])
    dist.all_reduce(bucket)
    for t, part in zip(tensors, bucket.split([t.numel() for t in tensors])):
        t.copy_(part.view_as(t))
""",
        "no  on 2 ranks, float64: it sends float32, but x is float64",
    ),
}

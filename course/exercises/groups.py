"""The exercise of chapter 8: an all-reduce of three collectives, on the groups of a mesh of machines and GPUs."""

from fractions import Fraction

from collectives import all_reduce
from course.exercises.exercise import VECTOR, Exercise

EXERCISES = (
    Exercise(
        name="hierarchical_all_reduce",
        asks="after it every rank's x holds the sum of everyone's x. The mesh has the dimensions machine and gpu. A "
        "machine has g GPUs, and each rank may give only 1/g of x, in all, to collectives between the machines",
        lines=6,
        x=VECTOR,
        expected="x.clone(); dist.all_reduce(expected)",
        in_place=True,
        groups="from torch.distributed.device_mesh import init_device_mesh\n"
        "mesh = init_device_mesh('cpu', (2, {p} // 2), mesh_dim_names=('machine', 'gpu'))\n",
        call="{name}(x, mesh)",
        allowed=frozenset(
            {"all_reduce", "reduce_scatter", "reduce_scatter_single", "all_gather", "all_gather_single", "reduce"}
            | {"broadcast"}
        ),
        across=lambda p: Fraction(2, p),
        textbook=lambda p: all_reduce.hierarchical(2, p // 2),
        hints=(
            'mesh.get_group("gpu") are the GPUs of my machine, mesh.get_group("machine") those in my place on all '
            "machines. Both know their size: dist.get_world_size(group).",
            "First dist.reduce_scatter_single inside the machine: each GPU then holds its machine's sum of one chunk.",
            'Then dist.all_reduce of that chunk in the group "machine": now the chunk is finished.',
            "Last dist.all_gather_single inside the machine brings the finished chunks together; it can write into x.",
        ),
        world_sizes=(4, 8, 2),
        more=(6,),
    ),
)

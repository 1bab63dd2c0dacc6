"""The exercise of chapter 9: a broadcast that leaves the root's machine through all of its NICs."""

from fractions import Fraction

from course.exercises.exercise import VECTOR, Exercise, holding, the_first

EXERCISES = (
    Exercise(
        name="rail_broadcast",
        asks="after it every rank's x is rank 0's. The mesh has the dimensions machine and gpu. A machine has g GPUs, "
        "and each rank may give only 1/g of x, in all, to collectives between the machines",
        lines=8,
        x=VECTOR,
        expected="x.clone(); dist.broadcast(expected, 0)",
        in_place=True,
        needs=the_first,
        groups="from torch.distributed.device_mesh import init_device_mesh\n"
        "mesh = init_device_mesh('cpu', (2, {p} // 2), mesh_dim_names=('machine', 'gpu'))\n",
        call="{name}(x, mesh)",
        allowed=frozenset({"broadcast", "scatter", "scatter_single", "all_gather", "all_gather_single"}),
        across=lambda p: Fraction(2, p),
        textbook=holding(the_first, chunked=True),
        hints=(
            "After the scatter each GPU of machine 0 has one chunk, and a NIC of its own to send it through.",
            "Each chunk has to reach the GPU in the same place on every other machine: that is a dist.broadcast of "
            'chunk in the group "machine". In that group number 0 is the GPU of machine 0, so group_src=0.',
            "Now each machine has all chunks, one on each GPU, in order: dist.all_gather_single inside the machine "
            "puts them into x.",
        ),
        world_sizes=(4, 8, 2),
        more=(6,),
    ),
)

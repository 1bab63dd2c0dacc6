"""Frees a rank that waits in gloo for others that never come, and gives it a new process group under the old objects.

What ends a wait in gloo is the end of the connections it waits on (backends/gloo.py). So the sockets that it opens are
noted while a group is made, and `free` shuts them down from another thread: the call raises RuntimeError at its own
line and the rank goes on with all its variables.

After that the group is of no use. `regroup` puts a new gloo backend into the same ProcessGroup objects, under a backend
type that the group has not used yet (the same type again would keep the old backend), so that DDP modules, meshes and
subgroups that hold these objects work on. torch knows seven types by name, but any small number is one. DDP modules
get a new reducer, since one whose backward was cut short never recovers.
"""

from __future__ import annotations

import mmap
import os
from contextlib import contextmanager

import torch
from torch.distributed import PrefixStore, ProcessGroup, ProcessGroupGloo
from torch.distributed import distributed_c10d as c10d

from launch.backends import gloo
from launch.backends.gloo import connected_sockets, shut_down
from launch.rank import _reducer, interruptible
from launch.rank._stores import PollStore
from launch.rank.patches import replace

FIRST_FREE_TYPE, LAST_TYPE = 8, 255  # backend types are one byte; below 8 are torch's own

ROOM = 32 << 20  # bytes; the stacks of the two threads that a group over gloo has, and what they allocate


class Regrouper:
    """Knows this rank's gloo sockets, its groups and the store in which they meet."""

    def __init__(self):
        self.store: PollStore | None = None  # in which groups are renewed
        self.bare: tuple[int, int] | None = None  # rank and world size, where the student makes the group by himself
        self._worlds = 0  # default groups that were made here; a second one is the student's own
        self._sockets: dict[int, int] = {}  # inode -> file descriptor
        self._sockets_of_stores: dict[int, int] = {}  # of torch's own stores, in which a student's groups meet
        self._before: dict[int, int] | None = None  # while a group or a store is being made: the sockets from before
        self.gathers = 0  # while a store of torch's is being made: how many ranks have to come to it; 0 if unknown
        self.stores: list[int] = []  # the same of each that this cell has made
        self._noted = self._sockets  # and where the new ones go
        self._next_type = FIRST_FREE_TYPE
        self._devices: list = []  # one for all renewed groups, since each has a thread that lives forever
        make, begin = c10d._new_process_group_helper, ProcessGroupGloo.__init__

        def make_and_note(*args, **kwargs):
            self._worlds += not c10d.is_initialized()
            with self._noting_sockets(self._sockets):
                return make(*args, **kwargs)

        def begin_aside(group, *args, **kwargs):
            if "timeout" in kwargs:  # as init_process_group and new_group make it
                options = kwargs["options"] = gloo.options(kwargs.pop("timeout"), gloo.devices())
                if kwargs.pop("enable_reconfigure", False):  # torch 2.14 always gives it, beside the time-out
                    options.enable_reconfigure = True
            # It waits in C++ for every rank to connect; forever for a rank that has read an address of an old group.
            interruptible.wait(begin, group, *args, **kwargs)

        replace(c10d, "_new_process_group_helper", make_and_note)
        replace(ProcessGroupGloo, "__init__", gloo.without_greeting(begin_aside))
        _reducer.note_modules()

    @property
    def making(self) -> bool:
        """Whether a group or a store is being made now."""
        return self._before is not None

    @property
    def _foreign(self) -> bool:
        """Whether the groups meet in a store of the student's."""
        return self.bare is not None or self._worlds > 1

    @contextmanager
    def making_store(self, ranks: int | None):
        """Around the making of a store of torch's for so many ranks: a group may wait in it forever."""
        self.gathers = ranks or 0
        try:
            with self._noting_sockets(self._sockets_of_stores):
                yield
            self.stores.append(self.gathers)
        finally:
            self.gathers = 0

    @contextmanager
    def _noting_sockets(self, noted: dict[int, int]):
        self._noted = noted
        self._before = connected_sockets()
        try:
            yield
        finally:
            self._note_new()
            self._before = None

    def _note_new(self) -> None:
        if self._before is not None:
            now = connected_sockets()
            self._noted.update({inode: now[inode] for inode in now.keys() - self._before.keys()})

    def free(self) -> None:
        """Ends every wait in gloo or in the store. From any thread."""
        if self.store is not None:
            self.store.close()
        self._note_new()  # of a group that is only half made
        ended = [self._sockets]
        if self.making:  # it waits in the student's store, which is of no use after that
            ended.append(self._sockets_of_stores)
        for sockets in ended:
            for inode, fd in sockets.items():
                shut_down(fd, inode)
            sockets.clear()

    def groups(self) -> dict:
        """{"groups": {name: [global ranks]}, "world": its name, "count": how many names torch has given out,
        "threads": of this process, "room": whether it has memory for the threads of new groups}."""
        world = c10d._world
        groups = {
            name: sorted(world.pg_group_ranks[group])
            for group, name in world.pg_names.items()
            if group in world.pg_group_ranks and self._can_renew(group)
        }
        default = world.pg_names.get(world.default_pg, "")
        threads = len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 0
        count, room = world.group_count, has_room((1 + len(groups)) * ROOM)
        return {"groups": groups, "world": default, "count": count, "threads": threads, "room": room}

    def _can_renew(self, group) -> bool:
        """Of groups that the student has made: those over gloo, if he counts the ranks as we do."""
        if self.bare is None:
            return True
        return (c10d.get_rank(), c10d.get_world_size()) == self.bare and "gloo" in c10d.get_backend(group)

    def regroup(self, generation: int, names: list[str], group_count: int) -> None:
        """Meets the other ranks again in the groups `names`, in the order given: the same on every rank."""
        if self._next_type > LAST_TYPE:
            most = LAST_TYPE - FIRST_FREE_TYPE + 1
            raise RuntimeError(f"torch lets a process group be renewed {most} times, and that is used up")
        self.free()
        assert self.store is not None
        self.store.open(generation)
        world = c10d._world
        world.group_count = group_count
        by_name = {name: group for group, name in world.pg_names.items()}
        with self._noting_sockets(self._sockets):
            for name in names:
                if name in by_name:
                    self._renew(by_name[name], ProcessGroup.BackendType(self._next_type))
        self._next_type += 1
        for module in _reducer.modules():
            rebuild_reducer(module)

    def leave(self) -> None:
        """Gives up all groups: a member has died or has left, and the student has to make them again."""
        self.free()
        if c10d.is_initialized():
            c10d.destroy_process_group()

    def _renew(self, group: ProcessGroup, kind) -> None:
        name = c10d._world.pg_names[group]
        backend_name, prefix_store = c10d._world.pg_map[group]
        if self._foreign:  # what is left of the group in the student's store would be taken for new
            prefix_store = PrefixStore(f"{name}/", self.store)
            c10d._world.pg_map[group] = backend_name, prefix_store  # the student's store may be gone; new groups ask it
        # The same keys as torch makes for a new group, so that a rank that was forked anew meets this one.
        self._devices = self._devices or gloo.devices()
        backend = gloo.backend(PrefixStore("cpu/", prefix_store), group, name, self._devices)
        for device in ("cpu", "cuda"):
            group._register_backend(torch.device(device), kind, backend)
        group._set_group_name(name)  # which it asks its backends for
        # The default type stays gloo: it is a name to torch (DDP asks for it), and no call is routed by it.


def has_room(nbytes: int) -> bool:
    """Whether this process can have so many more bytes; they are never written to, so it takes addresses only."""
    try:
        mmap.mmap(-1, nbytes).close()
    except OSError:
        return False
    return True


def rebuild_reducer(module) -> None:
    """Gives a DDP module a new reducer, as after unpickling: one whose backward was cut short never gets out of that
    iteration. On every rank, since reducers agree on their buckets. The student's hooks are registered again, but not
    torch's built-in ones, of which a module keeps no list."""
    parameters, sparse = module._build_params_for_reducer()
    names = module._build_debug_param_to_name_mapping(parameters)
    module._ddp_init_helper(parameters, sparse, names, module.static_graph)
    if module.static_graph:
        module.reducer._set_static_graph()
        module.logger._set_static_graph()
        module._static_graph_delay_allreduce_enqueued = False  # in its first pass a reducer sends all at the end
    hooks, module._comm_hooks = module._comm_hooks, []
    for hook, state in hooks:
        module.register_comm_hook(state, hook)

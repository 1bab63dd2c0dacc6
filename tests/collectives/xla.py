"""Small JAX programs, compiled and run: `python tests/collectives/xla.py` prints, as JSON, name -> text, input, output.

A process of its own: JAX starts threads, and the tests fork. Input and output have a row for each rank.
"""

import json

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

RANKS = 4
RING = [(rank, (rank + 1) % RANKS) for rank in range(RANKS)]


def passed_on(x):
    for _ in range(3):
        x = lax.ppermute(x, "rank", RING)
    return x


def summed_in_two(x):
    return lax.all_gather(lax.psum_scatter(x, "rank", tiled=True), "rank", tiled=True)


ONE_OUTPUT = {
    "psum": lambda x: lax.psum(x, "rank"),
    "all_gather": lambda x: lax.all_gather(x, "rank", tiled=True),
    "psum_scatter": lambda x: lax.psum_scatter(x, "rank", tiled=True),
    "all_to_all": lambda x: lax.all_to_all(x, "rank", 0, 0, tiled=True),
    "pairs": lambda x: lax.ppermute(x, "rank", [(0, 1), (1, 2)]),
    "passed_on": passed_on,
    "summed_in_two": summed_in_two,
    "halves": lambda x: lax.psum(x, "rank", axis_index_groups=[[0, 3], [1, 2]]),
}
"""The last thing that these do is a collective: what it leaves is what they return."""

TEXT_ONLY = {
    "pmax": lambda x: lax.pmax(x, "rank") + x,
    "two_in_one": lambda x: (lax.psum(x, "rank"), lax.psum(2 * x, "rank")),
    "loop": lambda x: lax.fori_loop(0, 3, lambda _, each: lax.ppermute(each, "rank", RING) + each, x),
    "alone": lambda x: 2 * x,
}


def on_ranks(f, mesh):
    return jax.jit(jax.shard_map(f, mesh=mesh, in_specs=P("rank"), out_specs=P("rank"), check_vma=False))


def gradient_of_two_layers(mesh):
    """Columns and rows along "model", the batch along "data"."""

    def loss(weights, x):
        return jnp.square(jnp.tanh(x @ weights[0]) @ weights[1]).mean()

    def put(shape, *axes):
        return jax.device_put(jnp.ones(shape), NamedSharding(mesh, P(*axes)))

    weights = put((8, 8), None, "model"), put((8, 8), "model", None)
    return jax.jit(jax.grad(loss)).lower(weights, put((4, 8), "data"))


def main():
    jax.config.update("jax_num_cpu_devices", RANKS)
    line = jax.make_mesh((RANKS,), ("rank",), axis_types=(AxisType.Auto,))
    square = jax.make_mesh((2, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    x = jnp.concatenate([10 * rank + jnp.arange(4.0) for rank in range(RANKS)])
    found = {}
    for name, f in (ONE_OUTPUT | TEXT_ONLY).items():
        run = on_ranks(f, line)
        found[name] = {"text": run.lower(x).compile().as_text()}
        if name in ONE_OUTPUT:
            rows = {key: np.asarray(array).reshape(RANKS, -1).tolist() for key, array in {"x": x, "y": run(x)}.items()}
            found[name] |= rows
    two_layers = gradient_of_two_layers(square)
    found["two_layers"] = {"text": two_layers.compile().as_text()}
    found["not_compiled"] = {"text": two_layers.as_text()}
    print(json.dumps(found))


if __name__ == "__main__":
    main()

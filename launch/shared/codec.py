"""Values over the wire without pickle: JSON for the shape of a value, raw bytes for the numbers in it.

`encode` turns a value into something that JSON holds, and collects the bytes of tensors and arrays aside; `decode` is
its inverse. Nothing that arrives is ever executed. It knows None, bool, int, float, complex, str, bytes,
list, tuple, set, dict, numpy arrays and numbers, and torch tensors (as plain data in host memory: without gradients,
and contiguous). torch is imported only where a tensor is really there.
"""

from __future__ import annotations

import sys

PLAIN = (bool, int, str, type(None))


def encode(value, buffers: list[bytes], name: str = "value"):
    """A JSON-able form of the value; raw bytes are appended to `buffers`. TypeError names what cannot travel."""

    def walk(value, where: str):
        kind = type(value)
        if kind in PLAIN:
            return value
        if kind is float or kind is complex:
            return {"kind": kind.__name__, "text": repr(value)}
        if kind is bytes:
            return {"kind": "bytes", "buffer": keep(value)}
        if isinstance(value, dict):
            pairs = [[walk(key, where), walk(item, f"{where}[{key!r}]")] for key, item in value.items()]
            return {"kind": "dict", "items": pairs}
        for sequence in (list, tuple, set, frozenset):
            if isinstance(value, sequence):
                items = [walk(item, f"{where}[{i}]") for i, item in enumerate(value)]
                return {"kind": sequence.__name__, "items": items}
        return walk_numbers(value, where)

    def walk_numbers(value, where: str):
        numpy, torch = sys.modules.get("numpy"), sys.modules.get("torch")
        if torch and isinstance(value, torch.Tensor) and value.layout == torch.strided and not value.is_quantized:
            flat = value.detach().resolve_conj().resolve_neg().cpu().contiguous().reshape(-1).view(torch.uint8)
            return {
                "kind": "tensor",
                "dtype": str(value.dtype).removeprefix("torch."),
                "shape": list(value.shape),
                "buffer": keep(flat.numpy().tobytes()),
            }
        if numpy and isinstance(value, (numpy.ndarray, numpy.generic)) and value.dtype.kind in "biufcSUmM":
            kind = "array" if isinstance(value, numpy.ndarray) else "number"
            return {"kind": kind, "dtype": value.dtype.str, "shape": list(value.shape), "buffer": keep(value.tobytes())}
        raise TypeError(
            f"{where} is a {type(value).__name__}; what can travel are tensors, arrays, numbers, text, bytes, None, and"
            " lists, tuples, sets and dicts of them"
        )

    def keep(raw: bytes) -> int:
        buffers.append(raw)
        return len(buffers) - 1

    return walk(value, name)


def decode(form, buffers: list[bytes]):
    """The value that `encode` was given. ValueError where the form is none of this module's."""
    if type(form) in PLAIN:
        return form
    if not isinstance(form, dict):
        raise ValueError(f"not an encoded value: {form!r}")
    kind = form.get("kind")
    if kind in ("float", "complex"):
        return {"float": float, "complex": complex}[kind](form["text"])
    if kind == "bytes":
        return bytes(buffers[form["buffer"]])
    if kind == "dict":
        return {decode(key, buffers): decode(item, buffers) for key, item in form["items"]}
    if kind in ("list", "tuple", "set", "frozenset"):
        items = [decode(item, buffers) for item in form["items"]]
        return {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[kind](items)
    if kind == "tensor":
        import torch

        dtype, raw = getattr(torch, form["dtype"]), bytearray(buffers[form["buffer"]])
        flat = torch.frombuffer(raw, dtype=torch.uint8).view(dtype) if raw else torch.empty(0, dtype=dtype)
        return flat.reshape(form["shape"])
    if kind in ("array", "number"):
        import numpy

        # a bytearray, so that the array can be written to
        array = numpy.frombuffer(bytearray(buffers[form["buffer"]]), dtype=form["dtype"]).reshape(form["shape"])
        return array if kind == "array" else array[()]
    raise ValueError(f"not an encoded value: {form!r}")

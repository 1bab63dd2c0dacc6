"""Values survive the wire, through JSON and raw bytes, and what cannot travel is refused in a sentence."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
import torch

from launch.shared import codec

LEAVES = [None, True, 0, -1, 2**100, -0.0, 0.1 + 0.2, 5e-324, math.inf, -math.inf, 1j]
LEAVES += ["", "\n\0é\U0001f40b", b"", bytes(range(256)), [], (), {}, set(), {1, 2}, frozenset("a")]
NESTS = {
    "list": lambda value: [value, b"other", value],
    "tuple": lambda value: (value, ""),
    "dict": lambda value: {"a": value, 7: value, (True, None): 1},
    "none": lambda value: value,
}


def there_and_back(value):
    buffers = []
    form = json.loads(json.dumps(codec.encode(value, buffers), allow_nan=False))
    return codec.decode(form, [bytes(buffer) for buffer in buffers])


@pytest.mark.parametrize("outer", NESTS)
@pytest.mark.parametrize("inner", NESTS)
def test_python_values_come_back_equal_and_of_the_same_types(outer, inner):
    for leaf in LEAVES:
        value = NESTS[outer](NESTS[inner](leaf))
        assert repr(there_and_back(value)) == repr(value)


def test_nan():
    assert math.isnan(there_and_back(math.nan))


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int8, torch.bool, torch.complex64]
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 4)])
def test_tensors(dtype, shape):
    tensor = torch.arange(max(1, math.prod(shape)))[: math.prod(shape)].reshape(shape).to(dtype)
    back = there_and_back(tensor)
    assert back.dtype == dtype and back.shape == tensor.shape and torch.equal(back, tensor)


def test_a_view_arrives_as_what_it_shows():
    tensor = torch.arange(12).view(3, 4).t()[1:]
    assert torch.equal(there_and_back(tensor), tensor)
    assert torch.equal(there_and_back(torch.tensor([1 + 2j]).conj()), torch.tensor([1 - 2j]))


def test_a_tensor_that_requires_grad_arrives_as_data():
    back = there_and_back(torch.ones(2, requires_grad=True))
    assert not back.requires_grad and back.tolist() == [1, 1]


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3), np.array(["ab", "c"]), np.array(3), np.zeros((0, 2))])
def test_arrays(array):
    back = there_and_back(array)
    assert back.dtype == array.dtype and back.shape == array.shape and (back == array).all()
    back[...] = array  # it can be written to


def test_a_numpy_number_stays_one():
    assert type(there_and_back(np.float32(2.5))) is np.float32


def test_what_cannot_travel_is_named():
    with pytest.raises(TypeError, match=r"model\['layers'\]\[1\] is a Linear; what can travel"):
        codec.encode({"layers": [1, torch.nn.Linear(1, 1)]}, [], "model")
    with pytest.raises(TypeError, match="ndarray"):
        codec.encode(np.array([object()]), [])


def test_a_foreign_form_is_refused():
    with pytest.raises(ValueError, match="not an encoded value"):
        codec.decode({"kind": "pickle"}, [])


def test_values_without_tensors_do_not_import_torch():
    code = "from launch.shared import codec; import sys; b = []; codec.decode(codec.encode([1.5, 'a'], b), b)"
    subprocess.run([sys.executable, "-c", f"{code}; assert 'torch' not in sys.modules"], check=True)

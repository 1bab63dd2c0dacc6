"""Memory of a step of training against the paper's formulas and a replay with one tensor at a time."""

import pytest

from collectives.memory import MODELS, Training

LAYERS = [32, 272, 272]


@pytest.mark.parametrize("p", [2, 4, 16])
@pytest.mark.parametrize("stage, kept", [(0, lambda p: 16), (1, lambda p: 4 + 12 / p), (2, lambda p: 2 + 14 / p),
                                         (3, lambda p: 16 / p)])  # fmt: skip
def test_what_stays_is_what_the_paper_says(stage, kept, p):
    """Rajbhandari et al., 2020, figure 1, in bytes for each parameter."""
    assert Training(LAYERS, p, stage).kept == pytest.approx(sum(LAYERS) * kept(p))


def replayed(layers, p, stage, activation):
    """Bytes after every single allocation and free: the largest total, and the largest of the gradients."""
    held, most, gradients = {"optimizer": 12 * sum(layers) / (p if stage else 1)}, 0.0, 0.0

    def put(name, nbytes):
        nonlocal most, gradients
        held[name] = nbytes
        most = max(most, sum(held.values()))
        gradients = max(gradients, sum(value for (kind, *_), value in held.items() if kind == "g"))

    for i, n in enumerate(layers):
        put(("w", i), 2 * n / (p if stage == 3 else 1))
    for i, n in enumerate(layers):
        put(("w", i), 2 * n)
        put(("a", i), activation)
        put(("w", i), 2 * n / (p if stage == 3 else 1))
    for i, n in reversed([*enumerate(layers)]):
        put(("w", i), 2 * n)
        put(("g", i), 2 * n)
        if stage >= 2:
            put(("g", i), 2 * n / p)
        put(("a", i), 0)
        put(("w", i), 2 * n / (p if stage == 3 else 1))
    return most, gradients


@pytest.mark.parametrize("layers", [LAYERS, [7], [100, 1, 50, 50], [3] * 12], ids=str)
@pytest.mark.parametrize("stage", range(4))
@pytest.mark.parametrize("activation", [0, 40, 5000])
def test_the_peak_is_that_of_a_replay(layers, stage, activation):
    for p in (2, 4, 8):
        run = Training(layers, p, stage, activation=activation)
        most, gradients = replayed(layers, p, stage, activation)
        assert run.peak == pytest.approx(most)
        assert max(run.held(moment)["gradients"] for moment in run.moments) == pytest.approx(gradients)


def test_gradients_of_zero_2_are_what_chapter_12_has_measured():
    """Its hook counted at most 1312 bytes: tensors of 16, 16, 256, 16, 256 and 16 numbers on 4 ranks."""
    run = Training([16, 16, 256, 16, 256, 16], 4, 2, weight=4, gradient=4, optimizer=8)
    assert max(run.held(moment)["gradients"] for moment in run.moments) == 1312


def test_a_model_has_a_name():
    run = Training.of("Llama 3 8B", 16, 3, tokens=1000, units=32)
    assert run.kept / 1e9 == pytest.approx(8.03) and run.activation == 34 * 1000 * 4096
    assert len(run.moments) == 1 + 32 + 32 + 2
    for shape in MODELS.values():  # 12 h² a layer, within the half, says that no number is mistyped
        assert 0.5 < 12 * shape.hidden**2 * shape.layers / shape.parameters < 1.1, shape


@pytest.mark.parametrize(
    "make, words",
    [
        (lambda: Training([], 4), "Training needs the number of parameters of each layer"),
        (lambda: Training([1, 0], 4), "Training needs the number of parameters of each layer"),
        (lambda: Training([1], 1), "Training needs at least 2 ranks, got 1"),
        (lambda: Training([1], 4, 4), "stage is that of ZeRO, 0 to 3; got 4"),
        (lambda: Training.of("Llama", 4), "no model is called 'Llama'; there are GPT-2, Llama 3 8B"),
    ],
)
def test_bad_input_is_one_clear_sentence(make, words):
    with pytest.raises(ValueError) as raised:
        make()
    assert words in str(raised.value)

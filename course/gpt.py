"""What the capstone's GPT is made of before it computes: a text to read, weights, and the pieces that a rank holds.

The text is `prose.txt`: sentences of this course's own chapters, as they stood when it was made. It is a file, so that
a chapter that is reworded does not change what the model learns. The forward pass is in the chapter.

Left out: a tokenizer. A token is one of 32 characters.
"""

import re
from functools import cache
from pathlib import Path

import torch

ALPHABET = "abcdefghijklmnopqrstuvwxyz .,?:'"
CUT = {"q": 1, "k": 1, "v": 1, "out": 0, "up": 1, "up_bias": 0, "down": 0}
"""The weights that are cut among the ranks of a tensor group, and along which dimension. The others are copied."""

Weights = dict[tuple[str, int] | str, torch.Tensor]


def text() -> str:
    """The whole text in small letters, and nothing that is not in the ALPHABET."""
    written = (Path(__file__).parent / "prose.txt").read_text(encoding="ascii").lower()
    return " ".join(re.sub(f"[^{ALPHABET}]", " ", written).split())


def tokens_of(words: str) -> torch.Tensor:
    """The number of each character."""
    return torch.tensor([ALPHABET.index(character) for character in words])


def words_of(tokens: torch.Tensor) -> str:
    """The characters again."""
    return "".join(ALPHABET[token] for token in tokens.tolist())


@cache
def _everything() -> torch.Tensor:
    return tokens_of(text())


def batch(step: int, sequences: int = 16, context: int = 32) -> torch.Tensor:
    """So many sequences of the text, one character longer than the context; the same for a step on every rank."""
    everything = _everything()
    starts = torch.randint(len(everything) - context, (sequences,), generator=torch.Generator().manual_seed(step))
    return torch.stack([everything[start : start + context + 1] for start in starts.tolist()])


def new_weights(layers: int = 2, width: int = 64, vocabulary: int = len(ALPHABET), context: int = 32) -> Weights:
    """All weights of the model, the same on every rank: w["head"], and w["q", 0] for those of a layer."""
    made = torch.Generator().manual_seed(0)

    def random(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=made) / shape[0] ** 0.5

    w: Weights = {"tokens": random(vocabulary, width), "places": random(context, width)}
    for i in range(layers):
        w["norm1", i] = torch.ones(width)
        w |= {(name, i): random(width, width) for name in ("q", "k", "v", "out")}
        w["norm2", i] = torch.ones(width)
        w["up", i], w["up_bias", i] = random(width, 4 * width), torch.zeros(4 * width)
        w["down", i], w["bias", i] = random(4 * width, width), torch.zeros(width)
    return w | {"norm": torch.ones(width), "head": random(width, vocabulary) / 4}


def is_cut(key: tuple[str, int] | str) -> bool:
    """Whether each rank of a tensor group holds a piece of that weight; if not, it has a copy."""
    return key[0] in CUT


def pieces(weights: Weights, part: int, parts: int) -> Weights:
    """What rank `part` of a tensor group of `parts` trains: its pieces of what is cut, and copies of the rest."""
    mine = {
        key: weight.chunk(parts, dim=CUT[key[0]])[part] if is_cut(key) else weight for key, weight in weights.items()
    }
    return {key: weight.clone().requires_grad_() for key, weight in mine.items()}

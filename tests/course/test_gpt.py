"""The capstone's text and weights: what the pieces of all ranks make together, and what the chapter says about them."""

import pytest
import torch

from course.gpt import ALPHABET, CUT, batch, is_cut, new_weights, pieces, text, tokens_of, words_of


def test_the_text_is_of_the_alphabet_and_comes_back():
    assert len(ALPHABET) == len(set(ALPHABET)) == 32
    assert set(text()) == set(ALPHABET) and "  " not in text()
    assert words_of(tokens_of(text()[:200])) == text()[:200]


def test_a_batch_is_pieces_of_the_text_and_another_one_in_each_step():
    for row in batch(3):
        assert words_of(row) in text()
    assert batch(3).shape == (16, 33) and torch.equal(batch(3), batch(3)) and not torch.equal(batch(3), batch(4))


@pytest.mark.parametrize("parts", [1, 2, 4])
def test_the_pieces_of_all_ranks_are_the_weights(parts):
    whole, held = new_weights(), [pieces(new_weights(), part, parts) for part in range(parts)]
    for key, weight in whole.items():
        mine = [each[key] for each in held]
        together = [torch.cat(mine, dim=CUT[key[0]])] if is_cut(key) else mine
        assert all(torch.equal(each, weight) for each in together), key
        assert all(each.requires_grad and each.is_leaf for each in mine)


def test_the_model_has_the_numbers_that_the_chapter_says():
    """105,408 in all; of two ranks each trains 49,408 in pieces and 6,592 in copies."""
    mine = pieces(new_weights(), 0, 2)
    numbers = {yes: sum(weight.numel() for key, weight in mine.items() if is_cut(key) == yes) for yes in (True, False)}
    assert sum(weight.numel() for weight in new_weights().values()) == 105_408
    assert numbers == {True: 49_408, False: 6_592}

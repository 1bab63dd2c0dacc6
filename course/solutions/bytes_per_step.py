"""The tensor group sends activations, f and g twice in each layer. The data group sends gradients: a shard of what
is cut, and all of what is copied.

Two mistakes: to count the forward pass only, in which f sends nothing; and to divide the activations by `parts`: each
rank passes all of them to f and g.
Another way: write down the shape of each weight as this rank holds it, and add up the products.
"""

import torch


def bytes_per_step(layers, tokens, width, vocabulary, context, parts):
    """What one rank hands to the collectives of its tensor group, and of its data group, in one step; float32."""
    activations = 4 * layers * tokens * width  # f and g, in attention and in the MLP
    copies = 2 * vocabulary * width + context * width + width + layers * 3 * width
    cut = layers * (12 * width * width + 4 * width) // parts
    norm, loss = 1, 1
    return torch.tensor([4 * (activations + norm), 4 * (copies + cut + loss)])

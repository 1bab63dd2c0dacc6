import torch


def bytes_per_step(layers, tokens, width, vocabulary, context, parts):
    """What one rank hands to the collectives of its tensor group, and of its data group, in one step; float32."""
    activations = 4 * layers * tokens * width  # f and g, in attention and in the MLP
    copies = 2 * vocabulary * width + context * width + width + layers * 3 * width
    cut = layers * (12 * width * width + 4 * width) // parts
    norm, loss = 1, 1
    return torch.tensor([4 * (activations + norm), 4 * (copies + cut + loss)])

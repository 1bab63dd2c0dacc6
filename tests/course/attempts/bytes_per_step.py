"""Attempts at bytes_per_step."""

RIGHT = {
    "in numbers first": """
def bytes_per_step(layers, tokens, width, vocabulary, context, parts):
    layer = 3 * width + (4 * width**2 + 8 * width**2 + 4 * width) // parts
    numbers = layers * layer + (2 * vocabulary + context + 1) * width
    return torch.tensor([16 * layers * tokens * width + 4, 4 * numbers + 4])
""",
    "from shapes": """
def bytes_per_step(layers, tokens, width, vocabulary, context, parts):
    copied = [(vocabulary, width), (context, width), (width, 1), (width, vocabulary)] + layers * [(width, 3)]
    pieces = layers * ([(width, width // parts)] * 4 + [(width, 4 * width // parts)] * 2 + [(4 * width // parts, 1)])
    data = sum(a * b for a, b in copied + pieces) + 1
    tensor = sum(tokens * width for call in range(4 * layers)) + 1
    return 4 * torch.tensor([tensor, data])
""",
    "a tensor of floats": """
def bytes_per_step(layers, tokens, width, vocabulary, context, parts):
    tensor = 4 * 4 * layers * tokens * width + 4
    whole = layers * (12 * width**2 + 4 * width)
    rest = width * (2 * vocabulary + context + 1 + 3 * layers)
    return torch.tensor([float(tensor), 4 * (whole / parts + rest + 1)]).long()
""",
}

BODY = """
def bytes_per_step(layers, tokens, width, vocabulary, context, parts):
    tensor = {calls} * layers * {activation}{norm}
    copies = 2 * vocabulary * width + context * width + width + layers * {small} * width
    cut = layers * (12 * width * width + 4 * width){divided}
    return torch.tensor([{four} * {tensor}, {four} * {data}])
"""
GOOD = {
    "calls": "4",
    "activation": "tokens * width",
    "norm": " + 1",
    "small": "3",
    "divided": " // parts",
    "four": "4",
    "tensor": "tensor",
    "data": "(copies + cut + 1)",
}

WRONG = {
    "the forward pass alone": (BODY.format(**GOOD | {"calls": "2"}), "bytes in the tensor group"),
    "an activation is cut, too": (
        BODY.format(**GOOD | {"activation": "tokens * width // parts"}),
        "bytes in the tensor group",
    ),
    "forgets the norm": (BODY.format(**GOOD | {"norm": ""}), "bytes in the tensor group"),
    "the whole model's gradients": (BODY.format(**GOOD | {"divided": ""}), "bytes in the data group"),
    "cuts everything": (BODY.format(**GOOD | {"data": "((copies + cut * parts) // parts + 1)"}), "in the data group"),
    "forgets the loss": (BODY.format(**GOOD | {"data": "(copies + cut)"}), "bytes in the data group"),
    "forgets the bias behind g": (BODY.format(**GOOD | {"small": "2"}), "bytes in the data group"),
    "numbers, not bytes": (BODY.format(**GOOD | {"four": "1"}), "bytes in the tensor group"),
    "what a ring sends": (BODY.format(**GOOD | {"tensor": "tensor * 2 * (parts - 1) // parts"}), "no  on 4 ranks"),
    "one after the other": (
        BODY.format(**GOOD | {"tensor": "(copies + cut + 1)", "data": "tensor"}),
        "bytes in the tensor group",
    ),
}

from course.solutions.f_and_g import G


def row_parallel_linear(x, weight, bias):
    """The whole layer's output, from this rank's part of x and of the weight; the bias is whole on every rank."""
    return G.apply(x @ weight.T) + bias

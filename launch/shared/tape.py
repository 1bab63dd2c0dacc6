"""The rows of an account that are no op's: what a rank writes down (`rank._account`), and the driver carries out again.

Left out: the rows of torch's ops, which begin with a number; see `rank._account`.
"""

BEGIN = "b"  # [BEGIN, number of the call]
END = "e"  # the wait for it is over
LOOK = "l"  # [LOOK, number of a look that the film took in between]
BLIND = "x"  # from here on nothing is seen

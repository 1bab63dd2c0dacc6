"""Ways to hold the data of a collective written by hand, for `tests.launch.search`: the same messages, other Python.

Each is a text around a program that goes from `x` to `y`: `{body}` is the program itself, `{f}` the same as a function
`outer(x)` that returns y. A few change calls of the program; a few need numbers of a certain type.
"""

import re

STYLES = {
    "plain": "{body}",
    "a function": "{f}y = outer(x)\n",
    "a clone of x": "{f}z = x.clone()\ny = outer(z)\n",
    "a new name": "{f}data = x\nresult = outer(data)\n",
    "a result that dies": "{f}def around(x):\n    kept = outer(x)\n    return kept\ny = around(x)\n",
    "a closure": "{f}def make(t):\n    def inner():\n        return outer(t)\n    return inner\ny = make(x)()\n",
    "a partial": "{f}import functools\ny = functools.partial(outer, x)()\n",
    "a generator": "{f}def steps():\n    yield outer(x)\ny = next(steps())\n",
    "recursion": "{f}def down(k, t):\n    return down(k - 1, t) if k else outer(t)\ny = down(3, x)\n",
    "a global": "{f}def into():\n    global y\n    y = outer(x)\ninto()\n",
    "a class": "{f}class Job:\n    def __init__(self, x):\n        self.x = x\n"
    "    def run(self):\n        return outer(self.x)\ny = Job(x).run()\n",
    "an attribute": "{f}class Job: pass\njob = Job()\njob.x = x\njob.y = outer(job.x)\ny = job.y\n",
    "a dataclass": "{f}import dataclasses\n@dataclasses.dataclass\nclass Held:\n    t: object\ny = outer(Held(x).t)\n",
    "a named tuple": "{f}import collections\nHeld = collections.namedtuple('Held', 'a b')\ny = Held(x, outer(x)).b\n",
    "a dict": "{f}held = dict(x=x)\nheld['y'] = outer(held['x'])\ny = held['y']\n",
    "a list": "{f}held = [x]\nheld[0] = outer(held[0])\ny = held[-1]\n",
    "a deque": "{f}import collections\nheld = collections.deque([x])\nheld.append(outer(held.pop()))\ny = held.pop()\n",
    "a module": "{f}class Net(torch.nn.Module):\n    def forward(self, x):\n        return outer(x)\ny = Net()(x)\n",
    "a buffer": "{f}net = torch.nn.Module()\nnet.register_buffer('x', x)\ny = outer(net.x)\n",
    "no_grad": "with torch.no_grad():\n{indented}",
    "a parameter": "{f}w = torch.nn.Parameter(x.double())\ny = outer(w.detach())\n",
    "a gradient": "{f}w = torch.zeros(len(x), dtype=torch.float64, requires_grad=True)\n"
    "(w * x.double()).sum().backward()\ny = outer(w.grad)\n",
    "an autograd hook": "{f}w, out = torch.zeros(len(x), dtype=torch.float64, requires_grad=True), []\n"
    "w.register_hook(lambda g: out.append(outer(g.clone())))\n(w * x.double()).sum().backward()\ny = out[0]\n",
    "an autograd function": "{f}class Op(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
    "        got.append(outer(x))\n        return x.clone()\ngot = []\nOp.apply(x)\ny = got[0]\n",
    "a view of rows": "m = x.view(p, -1).clone()\nx = m.view(-1)\n{body}",
    "a part of a larger one": "big = torch.cat([x, x])\nx = big[:len(x)]\n{body}",
    "from numpy": "x = torch.from_numpy(x.numpy().copy())\n{body}",
    "float16": "x = (x % 8).half()\n{body}",
    "bfloat16": "x = (x % 8).bfloat16()\n{body}",
    "float64": "x = x.double()\n{body}",
    "int32": "x = x.to(torch.int32)\n{body}",
    "clones are sent": "{body}",
    "a group": "import functools, types\ng = dist.new_group([*range(p)])\n"
    "d = types.SimpleNamespace(**{{k: functools.partial(getattr(dist, k), group=g) for k in"
    " ('send', 'recv', 'isend', 'irecv')}})\n{body}",
    "torch.compile": "{f}same = torch.compile(lambda t: t + 0, backend='eager')\ny = outer(same(x))\n",
}
SENDS = re.compile(r"dist\.(i?send)\((.*?), ")
CALLS = re.compile(r"dist\.(send|recv|isend|irecv)\(")


def styled(style: str, body: str) -> str:
    """The program in that style."""
    if style == "a group":
        body = CALLS.sub(r"d.\1(", body)
    if style == "clones are sent":
        body = SENDS.sub(r"dist.\1((\2).clone(), ", body)
    indented = "".join(f"    {line}\n" for line in body.splitlines())
    return STYLES[style].format(
        body=body, indented=indented, f=f"def outer(x):\n    y = None\n{indented}    return y\n"
    )

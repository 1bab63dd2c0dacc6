"""Ranks on other machines: all that only this needs, behind the interface of launch/kernel/site.py.

In the notebook's kernel: `attached.py` (the site, `%ranks attach`) and `listener.py` (the connections, the clocks, the
store in which ranks meet). On each machine: `__main__.py`.
"""

"""Ranks on other machines: all that only this needs, behind the interface of launch/kernel/site.py.

In the notebook's kernel: `attached.py` (the site, `%ranks attach`), `listener.py` (the connections and clocks), and
in `kv_store.py` the store in which ranks meet. On each machine: `__main__.py`, and in its ranks `kv_store.RemoteStore`.
"""

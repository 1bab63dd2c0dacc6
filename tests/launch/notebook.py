"""A real notebook kernel for the tests: an ipykernel process driven over the Jupyter protocol, as JupyterLab drives
it."""

import ast
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from jupyter_client.manager import KernelManager

PATIENCE = 120  # seconds of silence after which a cell is taken for hung; a bound, not something that is waited for
LONGEST = 250  # seconds for a cell that says something now and then, as the log does while it runs
AHEAD = f"assert __import__('launch.magics').magics.session().supervisor.agent.ahead.wait({PATIENCE})"
"""A cell that is over when the agent has imported all that ranks may need."""
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Output:
    """What a cell left behind, as the notebook's file would keep it."""

    stdout: str = ""
    stderr: str = ""
    ename: str = ""
    evalue: str = ""
    traceback: str = ""  # without colours
    displays: list[dict] = field(default_factory=list)
    result: str = ""
    seconds: float = 0.0

    @property
    def error(self) -> str:
        return f"{self.ename}: {self.evalue}" if self.ename else ""

    @property
    def rich(self) -> list[dict]:
        """What was displayed, without the live log and what shows while a check runs."""
        return [data for data in self.displays if data and not data.get("text/plain", "").startswith("RankLog(")]


class Notebook:
    """One kernel. `run` executes a cell and returns its Output."""

    def __init__(self, environ: dict | None = None):
        self.manager = KernelManager(kernel_name="python3")
        # In a thread made here, so that the kernel is in this one's network namespace (hosts.py): where Playwright runs
        # an event loop in this thread, jupyter_core takes one that it has kept since.
        with ThreadPoolExecutor(1) as apart:
            apart.submit(self.manager.start_kernel, env={**os.environ, **(environ or {})}).result()
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=PATIENCE)
        self.states = ""  # what the live log said last about each rank
        self.live: list[str] = []  # what went to the live log's trait, in the order of arrival

    @property
    def pid(self) -> int:
        return self.manager.provisioner.pid

    def send(self, code: str, cell: str = "") -> str:
        """Asks for a cell to be run; `cell` is the name by which JupyterLab tells the kernel which one it is."""
        if not cell:
            return self.client.execute(code)
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {}}
        content |= {"allow_stdin": True, "stop_on_error": True}
        message = self.client.session.msg("execute_request", content, metadata={"cellId": cell})
        self.client.shell_channel.send(message)
        return message["header"]["msg_id"]

    def collect(self, msg_id: str, until=None) -> Output:
        """The output of the cell when it has ended, or as soon as `until(output, live)` is true."""
        output, began = Output(), time.monotonic()
        self.live = []
        while True:
            message = self.client.get_iopub_msg(timeout=PATIENCE)
            assert time.monotonic() - began < LONGEST, f"the cell still runs: {self.states}"
            kind, content = message["msg_type"], message["content"]
            if kind == "comm_msg":
                self._note_live(content["data"])
            if message["parent_header"].get("msg_id") == msg_id:
                if kind == "stream":
                    setattr(output, content["name"], getattr(output, content["name"]) + content["text"])
                elif kind == "display_data":
                    output.displays.append(content["data"])
                elif kind == "execute_result":
                    output.result = content["data"]["text/plain"]
                elif kind == "error":
                    output.ename, output.evalue = content["ename"], content["evalue"]
                    output.traceback = COLOURS.sub("", "\n".join(content["traceback"]))
                elif kind == "status" and content["execution_state"] == "idle":
                    output.seconds = time.monotonic() - began
                    return output
            if until and until(output, self.live):
                return output

    def _note_live(self, data: dict) -> None:
        state = data.get("state", {})
        self.states = str(state.get("states", self.states))
        entries = state.get("batch", {}).get("entries", ())
        self.live += [f"{rank}:{text}" for rank, _, text in entries]

    def run(self, code: str, cell: str = "") -> Output:
        return self.collect(self.send(code, cell))

    def value(self, expression: str):
        """The value of an expression in the kernel, for values that Python can read back."""
        output = self.run(f"print(repr({expression}))")
        assert not output.error, output.error
        return ast.literal_eval(output.stdout)

    def interrupt(self) -> None:
        self.manager.interrupt_kernel()

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)

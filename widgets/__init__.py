"""What the browser shows: schedules (Player, Race, Zoo ...), times (Timeline), prints (RankLog). No process."""

from widgets.butterfly import Butterfly
from widgets.cost_explorer import cost_explorer
from widgets.drift import Drift
from widgets.memory import Memory
from widgets.memory_run import MemoryRun
from widgets.mesh import Mesh
from widgets.player import Player
from widgets.question import Question
from widgets.race import Race
from widgets.ranklog import RankLog
from widgets.slot_grid import SlotGrid
from widgets.square import Square
from widgets.timeline import Timeline
from widgets.tokens import Tokens
from widgets.topology_map import TopologyMap
from widgets.wait_for import WaitFor
from widgets.zoo import Zoo

__all__ = [
    "Butterfly",
    "Drift",
    "Memory",
    "MemoryRun",
    "Mesh",
    "Player",
    "Question",
    "Race",
    "RankLog",
    "SlotGrid",
    "Square",
    "Timeline",
    "Tokens",
    "TopologyMap",
    "WaitFor",
    "Zoo",
    "cost_explorer",
]

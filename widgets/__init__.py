"""Shows things in the browser: Player plays a schedule, RankLog shows what ranks print. Knows no process."""

from widgets.player import Player
from widgets.race import Race
from widgets.ranklog import RankLog

__all__ = ["Player", "Race", "RankLog"]

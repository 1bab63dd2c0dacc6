"""Shows things in the browser: schedules (Player, Race), measured times (Timeline), prints (RankLog); no process."""

from widgets.player import Player
from widgets.race import Race
from widgets.ranklog import RankLog
from widgets.timeline import Timeline

__all__ = ["Player", "Race", "RankLog", "Timeline"]

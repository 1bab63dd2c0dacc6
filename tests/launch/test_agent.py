"""What the agent imports before it forks, ranks need not import."""

from launch.ranks import Ranks


def test_ranks_have_what_the_notebook_said_they_will_import(warm):
    ranks = Ranks(beside=warm)
    try:
        ranks.will_import("no_such_module")
        ranks.will_import("this")  # which prints: nobody is to see that
        ranks.ensure(2)
        had = "import sys; had = [name in sys.modules for name in ('this', 'antigravity')]"
        assert [str(answer.out) for answer in ranks.execute(had)] == ["", ""]
        assert ranks.pull("had") == [[True, False]] * 2
    finally:
        ranks.close()

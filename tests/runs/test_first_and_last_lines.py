"""What a run says before it builds anything."""

from music_tf.runs import first_lines
from music_tf.training.actors import Ranks
from tests.kit.cases import cases
from tests.kit.small import HER
from tests.kit.wires import actors_of


@cases(("cores", "said"), (3, "on 3 cores; 1 too few for all to work at once"), (4, "on 4 cores"))
def test_the_first_lines_say_how_many_cores_are_missing(monkeypatch, cores, said):
    monkeypatch.setattr(first_lines, "available_cores", lambda: cores)
    with actors_of(HER, 2) as actors:
        actors.make_environment()  # which ranks do together
        told = first_lines.describe_ranks(Ranks(actors.learning, actors), HER)
        assert told.endswith(f"{said}; a lost actor ends the run")
        monkeypatch.setattr(first_lines, "is_elastic", lambda: True)
        told = first_lines.describe_ranks(Ranks(actors.learning, actors), HER)
        assert told.endswith(f"{said}; a lost actor is survived")

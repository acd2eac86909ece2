"""What a run says before it builds anything, and of its epochs at its end."""

import os

from music_tf.config.settings import CollectConfig, Config
from music_tf.distributed import Communicator
from music_tf.reading.command import TrainCommand
from music_tf.runs import first_lines
from music_tf.runs.first_lines import describe_ranks, last_line, longer
from music_tf.training.actors import Ranks
from music_tf.training.counters import Counters
from tests.kit.cases import cases
from tests.kit.small import HER
from tests.kit.wires import actors_of


@cases(("cores", "said"), (3, "on 3 cores; 1 too few for all to work at once"), (4, "on 4 cores"))
def test_the_first_lines_say_how_many_cores_are_missing(monkeypatch, cores, said):
    monkeypatch.setattr(first_lines, "available_cores", lambda: cores)
    with actors_of(HER, 2) as actors:
        actors.make_environment()  # which ranks do together
        told = describe_ranks(Ranks(actors.learning, actors), HER)
        assert told.endswith(f"{said}; a lost actor ends the run")
        monkeypatch.setattr(first_lines, "is_elastic", lambda: True)
        told = describe_ranks(Ranks(actors.learning, actors), HER)
        assert told.endswith(f"{said}; a lost actor is survived")


@cases(("threads", "said"), (1, "1 process, 1 thread"), (3, "1 process, 3 threads"))
def test_a_single_process_is_told_without_terms_of_parallel_computing(threads, said):
    assert describe_ranks(Ranks(Communicator(alone=True), None), Config(threads=threads)) == said


def test_what_is_one_is_not_many():
    collect = CollectConfig(steps=50, updates_per_step=1.0)
    config = Config(workers=1, rollouts=1, cycles=1, collect=collect)
    lines = first_lines.first_lines(TrainCommand(config=config), Ranks(Communicator()), None)
    assert lines[2] == "an epoch is 1 cycle of 50 steps in 1 environment and 1 update per step"


@cases(
    ("epoch", "load", "said", "option"),
    # 2 of 5 epochs took 6 minutes: all take 15, and one more is for what was rounded
    (2, 4.0, "2 of 5 epochs in 6.0 minutes", ("max_minutes", 16)),
    (
        *(2, 4.1, "2 of 5 epochs in 6.0 minutes; other programs slow this machine down "),
        ("max_minutes", 16),
    ),
    (5, 0.0, "5 of 5 epochs in 6.0 minutes", ("epochs", 10)),
    (0, 0.0, "0 of 5 epochs in 6.0 minutes", ("max_minutes", 31)),
)
def test_the_end_says_how_far_it_came_and_what_goes_on(monkeypatch, epoch, load, said, option):
    monkeypatch.setattr(os, "getloadavg", lambda: (9.0, load, 9.0))
    monkeypatch.setattr(first_lines, "available_cores", lambda: 2)
    counters = Counters(epoch=epoch, elapsed_s=360.0)
    busy = "(load 4 on 2 cores)" * said.endswith(" ")
    assert last_line(Config(epochs=5), counters) == said + busy
    assert longer(Config(epochs=5), counters) == option

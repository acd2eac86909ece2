"""Which mismatched pairs the reward of MUSIC compares with, and on which inputs.

Weights and gains are chosen so that mean rewards should be alike. `random` pays nothing in half of
the minibatches and gets twice the weight of `swap`; `all_pairs` sees half as much to second order
and gets twice its gain. On normalised inputs the scale of the bound is not known beforehand, so
that three gains are tried; what a smaller gain does by itself, raw inputs with a third of it show.
"""

from music_tf.tools.study import Condition, Study, Task

GAIN = 1000


def _pairs(negatives: str, gain: float, more: str = "") -> str:
    return f"--music.pair-negatives {negatives} --music.gain {gain:g} {more}".strip()


STUDY = Study(
    question="Which negatives, and raw or normalised inputs?",
    role="looked at",
    tasks=(Task(env_id="FetchPush-v4", seeds=range(5), epochs=14),),
    conditions=(
        Condition(name="swap", recipe="ddpg_music", arguments=_pairs("swap", GAIN)),
        Condition(
            name="random",
            recipe="ddpg_music",
            arguments=_pairs("random", GAIN, "--music.weight 0 2"),
        ),
        Condition(name="all_pairs", recipe="ddpg_music", arguments=_pairs("all_pairs", 2 * GAIN)),
        Condition(name="swap_gain_300", recipe="ddpg_music", arguments=_pairs("swap", 300)),
        *(
            Condition(
                name=f"normalized_gain_{gain:g}",
                recipe="ddpg_music",
                arguments=_pairs("swap", gain, "--music.normalize-inputs True"),
            )
            for gain in (GAIN, GAIN / 10, GAIN / 100)
        ),
    ),
)

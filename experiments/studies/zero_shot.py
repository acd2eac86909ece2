"""Does a robot that was trained without goals bring a block to a given place?

FetchPush. METRA on the block's x and y starts from the package's MUSIC actor (`push_sac`, 160
thousand steps) and trains for 56 thousand steps; in the first 8 thousand that actor plays and
nothing is learned (`sac_metra`, preset `laptop`). Without relabelling, replayed steps keep the
condition that acted. Two ablations measure the value of the embedding: x and y themselves under a
random rotation, and a frozen random network. Both have about the reward per metre of METRA at its
end, 5 times 30 to 40. Evaluation has 200 goals of the environment, of which training had none. 3 to
5 minutes per run on one core. Settings were chosen on seeds 100 to 104; the scale of the place was
set before its runs, when seed 280 of METRA was known. The scale of the frozen network was 18 at
first, which paid a tenth: seed 280 reached 0.18 of the goals with a brake. 125 follows from the
initial networks of seeds 100 to 104.
"""

from music_tf.tools.study import Condition, Study, Task

_AFTER_MUSIC = "--init-from push_sac --parts actor,normalizer"
_UNLEARNED = f"{_AFTER_MUSIC} --distance.train False --distance.scale"
_FROZEN = f"{_UNLEARNED} 125"
"""A metre is about 1.4 units of the networks of seeds 100 to 104."""
_PLACE = f"{_UNLEARNED} 18 --distance.initializer orthogonal --distance.hidden-sizes"
"""A metre is 10 units of x and y, which differ by 0.1 m in random play."""

STUDY = Study(
    question="Does a robot that was never given a goal bring a block where it is told?",
    role="reported",
    tasks=(Task(env_id="FetchPush-v4", seeds=range(280, 285), epochs=7),),
    conditions=tuple(
        Condition(
            name=name, label=label, recipe="sac_metra", arguments=arguments, measured="--zero-shot"
        )
        for name, label, arguments in (
            ("metra", "MUSIC, then METRA, conditions relabelled", _AFTER_MUSIC),
            ("plain", "the same without relabelling", f"{_AFTER_MUSIC} --condition.relabel 0"),
            ("place", "the place itself in place of an embedding", _PLACE),
            ("frozen", "an embedding that never learns", _FROZEN),
        )
    ),
    shown={
        "zero_shot/ever": "goals reached at any step",
        "zero_shot/end": "at the end",
        "zero_shot/end_with_brake": "at the end, with a brake",
    },
)

"""Does a robot that was trained without goals bring a block to a given place?

FetchPush. METRA on the block's x and y starts from the package's MUSIC actor (`push_sac`, 160
thousand steps) and trains for 56 thousand steps; in the first 8 thousand that actor plays and
nothing is learned. `metra` is `sac_metra` along directions, with a linear embedding that
rests until the policy follows conditions. It was chosen on seeds 100 and 102, after `network`,
which learns at once, had reached less than 0.53 with a brake on three of the five seeds here.
Without relabelling, replayed steps keep the condition that acted. Two ablations measure the value
of the embedding: x and y themselves under a random rotation, and an untrained network. Both have
about the reward per metre of METRA at its end, 5 times 30 to 40. Evaluation has 200 goals of the
environment, of which training had none. 3 to 8 minutes per run on one core, 12 on a busy one.

Settings of `network` were chosen on seeds 100 to 104; the scale of the place was set before its
runs, when seed 280 of `network` was known. The scale of an untrained network was 18, which
paid a tenth: seed 280 reached 0.18 of the goals with a brake. 125 follows from the initial networks
of seeds 100 to 104. Runs before the preset changed are stored with the former one spelt out.
The commit of seed 280 of `network` does not know these options, and none knows `distance.speed`:
leave them out there.

`distance/aligned` ends at 0.91 to 0.97 for METRA, 0.77 to 0.93 for `network`, 0.88 to 0.96 for the
position and 0.70 to 0.85 for the untrained network. `network` reaches 0.83 and 0.90 of goals with a
brake on two seeds, 0.43 to 0.52 on three. Relabelling gains 0.02 ± 0.37 there. Why seeds differ is
known in part: an embedding that is trained from the first update may fit coincidences. On tuning
seed 102 (not stored) a linear one lost an axis within 16 thousand steps and reached 0.26; frozen
until replayed steps aligned with their condition (cosine 0.5), both axes remained, and 0.89 of
goals were reached. Whether a nonlinear embedding can be frozen at first is not known.

Seed 280 of `metra`, with its brake:

![a gripper pushes a block to red goals](../../../docs/images/reach.gif)
"""

from music_tf.tools.study import Condition, Study, Task

_AFTER_MUSIC = """
--init-from push_sac --parts actor,normalizer --condition.kind sphere --distance.speed inf
--agent.discount 0.98
"""
_AT_ONCE = "--distance.rest-until -1"
_NETWORK = f"{_AT_ONCE} --distance.hidden-sizes 64 64 --distance.initializer glorot"
_FROZEN = f"{_AFTER_MUSIC} --distance.train False --distance.scale 125 {_NETWORK}"
"""A metre is about 1.4 units of the networks of seeds 100 to 104."""
_PLACE = f"""
{_AFTER_MUSIC} --distance.train False --distance.scale 18 {_AT_ONCE}
--distance.initializer orthogonal --distance.hidden-sizes
"""
"""A metre is 10 units of x and y, which differ by 0.1 m in random play."""

STUDY = Study(
    question="Does a robot that was never given a goal bring a block where it is told?",
    role="reported",
    tasks=(Task(env_id="FetchPush-v4", seeds=range(280, 285), epochs=7),),
    conditions=Condition.of_rows(
        ("metra", "MUSIC, then METRA", "sac_metra", f"{_AFTER_MUSIC} --distance.rest-until 0.5"),
        ("network", "a network that learns at once", "sac_metra", f"{_AFTER_MUSIC} {_NETWORK}"),
        (
            "plain",
            "a network that learns at once, without relabelling",
            "sac_metra",
            f"{_AFTER_MUSIC} --condition.relabel 0 {_NETWORK}",
        ),
        ("place", "the place itself in place of an embedding", "sac_metra", _PLACE),
        ("frozen", "an embedding that never learns", "sac_metra", _FROZEN),
        measured="--zero-shot",
    ),
    shown={
        "zero_shot/ever": "goals reached at any step",
        "zero_shot/end": "at the end",
        "zero_shot/end_with_brake": "at the end, with a brake",
    },
)

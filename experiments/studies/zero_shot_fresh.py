"""Does `sac_metra` along directions reach goals on fresh seeds, and does relabelling help?

FetchPush, as in `zero_shot`, whose seeds had been seen with a former preset before this one, then
`laptop`, was chosen. The commit of the runs does not know `distance.speed`: leave it out there.
Both conditions have the linear embedding that rests until the policy follows conditions. Nothing
was chosen here.

Relabelling gains 0.04 ± 0.06 with a brake, over pairs of seeds: no significant difference.
"""

from music_tf.tools.study import Condition, Study, Task

_AFTER_MUSIC = """
--init-from push_sac --parts actor,normalizer --condition.kind sphere --distance.speed inf
--agent.discount 0.98 --distance.rest-until 0.5
"""

STUDY = Study(
    question="Does METRA reach goals on fresh seeds, and what does relabelling add?",
    role="reported",
    tasks=(Task(env_id="FetchPush-v4", seeds=range(285, 290), epochs=7),),
    conditions=Condition.of_rows(
        ("metra", "MUSIC, then METRA, fresh seeds", "sac_metra", _AFTER_MUSIC),
        (
            "plain",
            "without relabelling, fresh seeds",
            "sac_metra",
            f"{_AFTER_MUSIC} --condition.relabel 0",
        ),
        measured="--zero-shot",
    ),
    shown={
        "zero_shot/ever": "goals reached at any step",
        "zero_shot/end": "at the end",
        "zero_shot/end_with_brake": "at the end, with a brake",
    },
)

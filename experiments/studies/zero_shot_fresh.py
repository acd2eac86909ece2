"""Does the preset of `sac_metra` reach goals on fresh seeds, and does relabelling help?

FetchPush, as in `zero_shot`, whose seeds had been seen with a former preset before this one was
chosen. Both conditions have the linear embedding that rests until the policy follows conditions.
Nothing was chosen here.
"""

from music_tf.tools.study import Condition, Study, Task

_AFTER_MUSIC = "--init-from push_sac --parts actor,normalizer"

STUDY = Study(
    question="Does METRA reach goals on fresh seeds, and what does relabelling add?",
    role="reported",
    tasks=(Task(env_id="FetchPush-v4", seeds=range(285, 290), epochs=7),),
    conditions=tuple(
        Condition(
            name=name, label=label, recipe="sac_metra", arguments=arguments, measured="--zero-shot"
        )
        for name, label, arguments in (
            ("metra", "MUSIC, then METRA, fresh seeds", _AFTER_MUSIC),
            ("plain", "the same without relabelling", f"{_AFTER_MUSIC} --condition.relabel 0"),
        )
    ),
    shown={
        "zero_shot/ever": "goals reached at any step",
        "zero_shot/end": "at the end",
        "zero_shot/end_with_brake": "at the end, with a brake",
    },
)

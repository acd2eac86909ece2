"""Are skills found in a box within a minute or two?

`sac_diayn`, `sac_dads` and `sac_smerl` on the toy box. `dads` sees changes of the position alone:
episodes have 5 steps and end before a wall, where nothing changes for any skill. The target of
`smerl` is 0.8 of the way to the wall.

Half a minute to two minutes per run on one core, ten skills twice that: at most 30 minutes in all.
"""

from music_tf.tools.study import Condition, Study, Task

BOX = "music_tf/UnitBox-v0"
FOUR = "--skills 4"

STUDY = Study(
    question="Are four skills told apart in the box after 20 thousand steps, and ten after 40?",
    role="reported",
    tasks=(Task(env_id=BOX, seeds=range(240, 243), epochs=20),),
    conditions=(
        Condition(name="four", label="DIAYN, four skills", recipe="sac_diayn", arguments=FOUR),
        Condition(
            name="ten",
            label="DIAYN, ten skills",
            recipe="sac_diayn",
            arguments="--skills 10",
            epochs={BOX: 40},
        ),
        Condition(
            name="dads",
            label="DADS, four skills",
            recipe="sac_dads",
            arguments=f"{FOUR} --dads.omit 2 --env.max-episode-steps 5",
        ),
        Condition(
            name="smerl",
            label="SMERL, four skills",
            recipe="sac_smerl",
            arguments=f"{FOUR} --skill.target 4 --skill.margin 0.5",
        ),
    ),
    shown={
        "skills/mean/skill/accuracy_heldout": "recognised",
        "skills/least/eval/return": "least return of a skill",
        "skills/most/eval/return": "most",
    },
)

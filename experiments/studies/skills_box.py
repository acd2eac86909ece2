"""Are skills found in a box within a minute or two?

`sac_diayn`, `sac_dads` and `sac_smerl` on the toy box. `dads` sees changes of the position alone:
episodes have 5 steps and end before a wall, where nothing changes for any skill. The target of
`smerl` is 0.8 of the way to the wall.

Half a minute to two minutes per run on one core, ten skills twice that: at most 30 minutes in all.

Runs have 20 thousand steps and as many updates, 40 thousand with ten skills. Four and ten skills of
DIAYN are recognised within 66 seconds, SMERL's solve the task within 85; DADS met its threshold on
one seed of three. Seed 240 of SMERL: three of four skills reach the maximum at different places
along the wall, the fourth stops a tenth short. A discriminator that learned from shuffled skills
names 0.33 of steps correctly, mean of three seeds (`experiments/shuffled.py` of commit 13deee0).

Resumed without the replay after ten thousand steps (`experiments/resume_skills.py` of commit
b14ee01): if the discriminator waits for 500 fresh steps of each skill, the default, its loss on
evaluation episodes stays within 22 %. Trained at once it memorises a few fresh episodes, and its
loss on them falls to about a third or less within an epoch.
"""

from music_tf.tools.study import Condition, Study, Task

BOX = "music_tf/UnitBox-v0"
DADS = "--skills 4 --dads.omit 2 --env.max-episode-steps 5"
SMERL = "--skills 4 --skill.target 4 --skill.margin 0.5"

STUDY = Study(
    question="Are four skills recognised in the box after 20 thousand steps, and ten after 40?",
    role="reported",
    tasks=(Task(env_id=BOX, seeds=range(240, 243), epochs=20),),
    conditions=tuple(
        Condition(name=name, label=label, recipe=recipe, arguments=arguments, epochs=epochs)
        for name, label, recipe, arguments, epochs in (
            ("four", "DIAYN, four skills", "sac_diayn", "--skills 4", {}),
            ("ten", "DIAYN, ten skills", "sac_diayn", "--skills 10", {BOX: 40}),
            ("dads", "DADS, four skills", "sac_dads", DADS, {}),
            ("smerl", "SMERL, four skills", "sac_smerl", SMERL, {}),
        )
    ),
    shown={
        "skills/mean/skill/accuracy_heldout": "recognised",
        "skills/least/eval/return": "least return of a skill",
        "skills/most/eval/return": "most",
    },
)

"""Does SMERL run in several ways at 0.9 of the return of `sac`, and do they outlive a fault?

300 thousand steps on the cheetah, a quarter update a step. The gate opens at a return of 3600, and
rewards for skills count once. Chosen on seed 100, where `sac` came to 7169: with this gate skills
are named in 0.60 of steps after 160 thousand and in 0.80 after 200. Nothing came by then of one at
4500 with half the weight, nor of one at 3600 with 0.3 of it. Returns were alike, 4600 to 4700, also
while no gate was open.

`closed` is what was tried first: a target of 6700, the mean of `sac` on seeds 100 and 101
(`skills_smerl_target`), and a margin of a tenth. Seed 241 came to 5470, and its gate never opened.
The other seeds of it were cut.

The temperature is learned, as that of `sac` is. With 0.1 throughout, which the recipe had then,
seed 240 came to 2266, where `sac` came to 5514. Seed 240 is left out, since it was looked at.

About 12 minutes a run on one core.

Robustness is measured afterwards, joint after joint, the best skill against plain `sac`:

    runs=runs/studies/skills_smerl
    python -m experiments.broken_joints "$runs/smerl/*/seed*" "$runs/sac/*/seed*"
"""

from music_tf.tools.study import Condition, Study, Task

CHEETAH = "music_tf/HalfCheetah-v0"
SLOWLY = "--collect.updates-per-step 0.25"
LEARNED = "--agent.learn-temperature True --agent.temperature 1"

STUDY = Study(
    question="What do skills add to a task that is solved, and what when a joint breaks?",
    role="reported",
    tasks=(Task(env_id=CHEETAH, seeds=range(241, 244), epochs=60),),
    conditions=(
        Condition(name="sac", label="SAC, no skills", recipe="sac", arguments=SLOWLY),
        Condition(
            name="smerl",
            label="SMERL, five skills",
            recipe="sac_smerl",
            arguments=f"{SLOWLY} {LEARNED} --skill.target 4000 --skill.margin 400",
        ),
        Condition(
            name="closed",
            label="SMERL, gate at 6030",
            recipe="sac_smerl",
            arguments=f"{SLOWLY} {LEARNED} --skill.target 6700 --skill.margin 670",
        ),
    ),
    shown={
        "eval/return": "return",
        "skills/mean/skill/accuracy_heldout": "recognised",
        "skills/mean/skill/diversity_return": "diversity return",
    },
    compared_with="sac",
)

"""Does `sac_diayn` reach the log q of the PyTorch DIAYN after the same number of episodes?

Its own preset, `diayn_torch`, on the tasks of that code; steps and updates alternate in turns of 50
instead of one by one, which is faster and gives the same numbers of both.
`skill/log_likelihood_running` is the average that the original logs: in sample, of the state before
the action, over finished episodes. On MountainCarContinuous the prior is not subtracted, because
with a positive reward it would pay to never arrive.

There are fewer than three seeds per task, for want of time. At most an hour per run on one core:
Hopper about 25 minutes, MountainCarContinuous 30 (its 200 episodes), BipedalWalker 60 (its extra is
`box2d`), HalfCheetah 60. Four to five hours in all.

Hopper's skills stand, or hop and fall: eleven and thirteen of twenty return 300 or more, mostly by
standing. Ten of twenty skills of MountainCarContinuous reach the flag, all in one way. No skill of
BipedalWalker or HalfCheetah walks or runs. Runs had `--skill.batch own` and `--collect.update-after
0`; presets now follow the original codes.

Paths of skills, which skill is taken for which, returns by skill, and some of them as films.

![skills of Hopper](../../../docs/images/skills_hopper.png)

![three of them](../../../docs/images/skills_hopper_strip.png)

![skills of MountainCarContinuous](../../../docs/images/skills_car.png)

![three of them](../../../docs/images/skills_car_strip.png)

![skills of HalfCheetah](../../../docs/images/skills_cheetah.png)

![three of them](../../../docs/images/skills_cheetah_strip.png)

![skills of BipedalWalker](../../../docs/images/skills_walker.png)
"""

from music_tf.tools.study import Condition, Study, Task

HOPPER, CAR = "Hopper-v5", "MountainCarContinuous-v0"
WALKER, CHEETAH = "BipedalWalker-v3", "HalfCheetah-v5"
_TURNS = "--preset diayn_torch --collect.steps 50 --updates 50"
_TWENTY = "--skills 20 --evaluation.episodes 20"
_ARRIVING = f"{_TURNS} --cycles 20 {_TWENTY} --skill.subtract-prior False"
_FIFTY = f"{_TURNS} --cycles 100 --skills 50 --evaluation.episodes 50 --env.max-episode-steps 1000"

STUDY = Study(
    question="What is the running log q of sac_diayn after as many episodes as the original?",
    role="reported",
    tasks=(
        Task(env_id=HOPPER, seeds=(240, 241), epochs=20, minutes=60),
        Task(env_id=CAR, seeds=(240, 241), epochs=200, minutes=60),
        Task(env_id=WALKER, seeds=(240,), epochs=60, minutes=60),
        Task(env_id=CHEETAH, seeds=(240,), epochs=60, minutes=60),
    ),
    conditions=tuple(
        Condition(name=name, label=label, recipe="sac_diayn", arguments=arguments, tasks=tasks)
        for name, label, arguments, tasks in (
            ("twenty", "20 skills", f"{_TURNS} --cycles 100 {_TWENTY}", (HOPPER, CHEETAH)),
            ("arriving", "20 skills, prior not subtracted", _ARRIVING, (CAR,)),
            ("fifty", "50 skills", _FIFTY, (WALKER,)),
        )
    ),
    shown={
        "skills/mean/skill/log_likelihood_heldout": "log q, held out (nats)",
        "skills/mean/skill/accuracy_heldout": "recognised",
        "skills/most/eval/return": "best return of a skill",
    },
    followed=("skill/log_likelihood_running",),
)

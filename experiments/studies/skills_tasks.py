"""Does `sac_diayn` reach the log q of the PyTorch DIAYN after the same number of episodes?

Its own preset, `diayn_torch`, on the tasks of that code; steps and updates alternate in turns of 50
instead of one by one, which is faster and gives the same numbers of both.
`skill/log_likelihood_running` is the average that the original logs: in sample, of the state before
the action, over finished episodes. On MountainCarContinuous the prior is not subtracted, because
with a positive reward it would pay to never arrive.

There are fewer than three seeds per task, for want of time. At most an hour per run on one core:
Hopper about 25 minutes, MountainCarContinuous 30 (its 200 episodes), BipedalWalker 60 (its extra is
`box2d`), HalfCheetah 60. Four to five hours in all.
"""

from music_tf.tools.study import Condition, Study, Task

HOPPER, CAR = "Hopper-v5", "MountainCarContinuous-v0"
WALKER, CHEETAH = "BipedalWalker-v3", "HalfCheetah-v5"
TURNS = "--preset diayn_torch --collect.steps 50 --updates 50"

STUDY = Study(
    question="What is the running log q of sac_diayn after as many episodes as the original?",
    role="reported",
    tasks=(
        Task(env_id=HOPPER, seeds=(240, 241), epochs=20, minutes=60),
        Task(env_id=CAR, seeds=(240, 241), epochs=200, minutes=60),
        Task(env_id=WALKER, seeds=(240,), epochs=60, minutes=60),
        Task(env_id=CHEETAH, seeds=(240,), epochs=60, minutes=60),
    ),
    conditions=(
        Condition(
            name="twenty",
            label="20 skills",
            recipe="sac_diayn",
            arguments=f"{TURNS} --cycles 100 --skills 20 --evaluation.episodes 20",
            tasks=(HOPPER, CHEETAH),
        ),
        Condition(
            name="arriving",
            label="20 skills, prior not subtracted",
            recipe="sac_diayn",
            arguments=(
                f"{TURNS} --cycles 20 --skills 20 --evaluation.episodes 20 "
                "--skill.subtract-prior False"
            ),
            tasks=(CAR,),
        ),
        Condition(
            name="fifty",
            label="50 skills",
            recipe="sac_diayn",
            arguments=(
                f"{TURNS} --cycles 100 --skills 50 --evaluation.episodes 50 "
                "--env.max-episode-steps 1000"
            ),
            tasks=(WALKER,),
        ),
    ),
    shown={
        "skills/mean/skill/log_likelihood_heldout": "log q, held out (nats)",
        "skills/mean/skill/accuracy_heldout": "recognised",
        "skills/most/eval/return": "best return of a skill",
    },
    followed=("skill/log_likelihood_running",),
)

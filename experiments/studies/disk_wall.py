"""Does a skill that is learned after a wall has opened go behind it?

Square with a wall at x = 0, which opens after two of four skills of 4,000 steps (`sac_disk`, preset
`laptop`). The baseline `sac_diayn` has four skills, the same networks, learning rates and numbers
of steps and updates; it goes on training all skills after the opening. The furthest end is that of
skills learned after the opening, in the open world.

A minute per run on one core. The settings are a prototype's, chosen on seeds 100 to 102.

The later skills of DISk end at x = 9.57 to 9.74 on all five seeds; DIAYN passes 7 on one.
"""

from music_tf.tools.study import Condition, Study, Task

_SIZE = """
--skills 4 --agent.hidden-sizes 64 64 --agent.actor-learning-rate 1e-3
--agent.critic-learning-rate 1e-3 --agent.temperature-learning-rate 1e-3
--skill.hidden-sizes 64 64 --skill.learning-rate 1e-3 --replay.batch-size 128
--collect.random-steps 0 --collect.updates-per-step 0.5
"""
_WALL = '{"set": {"wall": true}}'

STUDY = Study(
    question="Does a skill that is learned after a wall has opened go behind it?",
    role="reported",
    tasks=(Task(env_id="music_tf/Square-v0", seeds=range(290, 295), epochs=16),),
    conditions=(
        Condition(
            name="disk",
            label="DISk, two skills before and two after",
            recipe="sac_disk",
            arguments=f'--env.changes \'[{_WALL}, {{"at": {{"skill": 2}}}}]\'',
        ),
        Condition(
            name="diayn",
            label="DIAYN, four skills, trained on",
            recipe="sac_diayn",
            arguments=f'{_SIZE} --env.changes \'[{_WALL}, {{"at": {{"steps": 8000}}}}]\'',
        ),
    ),
    shown={
        "worlds/furthest": "x of the furthest end",
        "skill/hausdorff_mean": "mean Hausdorff distance",
        "skill/spread": "spread within a skill",
    },
)

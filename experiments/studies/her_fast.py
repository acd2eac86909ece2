"""How soon does `ddpg_her_fast` learn a task?

Ten seeds of FetchPush and five of FetchPickAndPlace, the recipe as it is: 160 and 240 thousand
steps, fixed beforehand. Settings were chosen on seeds 100 to 102. About 10 and 20 minutes a run on
one core.
"""

from music_tf.tools.study import Condition, Study, Task

STUDY = Study(
    question="How soon does ddpg_her_fast learn a task?",
    role="reported",
    tasks=(
        Task(env_id="FetchPush-v4", seeds=range(200, 210), epochs=20),
        Task(env_id="FetchPickAndPlace-v4", seeds=range(200, 205), epochs=30),
    ),
    conditions=(Condition(name="fast", recipe="ddpg_her_fast"),),
)

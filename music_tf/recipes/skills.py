"""Skills that can be told apart, alone and after MUSIC."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from music_tf.config.epochs import with_whole_episodes
from music_tf.config.fields import In, only, with_fields
from music_tf.config.names import ANT_MAZE, WITH_GOALS, episode_steps, is_one_of
from music_tf.config.settings import (
    Config,
    DiversityConfig,
    EnvConfig,
    EvaluationConfig,
    ExplorationConfig,
    GaussianConfig,
    Layers,
    Rate,
    ReplayConfig,
    SacConfig,
    SacValueConfig,
    SkillConfig,
    Source,
    TaskConfig,
    TermConfig,
)
from music_tf.config.telling import Telling
from music_tf.recipes import Preset
from music_tf.recipes.music import sac_music_skills
from music_tf.recipes.tasks import sac

_PICK, _SLIDE = "FetchPickAndPlace-v4", "FetchSlide-v4"
_BOX, _WITHOUT_GOALS = "music_tf/UnitBox-v0", "Hopper-v5"
_SKILLS = 5
_PARTS = ("actor", "critic", "targets")

_WITH_VALUE = ("paper", "diayn_torch")
"""Presets of codes whose critics learn from a state value."""
_RAW = {"normalizer.running": False, "normalizer.clip": 1e6, "normalizer.input_clip": 1e6}
_PUBLIC_CODES: Mapping[str, Mapping[str, Any]] = {
    "paper": {
        **_RAW,
        "skills": 50,
        "agent.hidden_sizes": (300, 300),
        "agent.critics": 1,
        "agent.critic_loss": "half_mean",
        "agent.polyak": 0.99,
        "replay.batch_size": 128,
        "skill.state": "current",
        "skill.batch": "shared",
        "skill.prior_offset": 1e-6,
        "skill.hidden_sizes": (300, 300),
        "collect.random_steps": 0,
        "collect.update_after": 999,  # they wait for 1,000 steps
    },
    "diayn_torch": {
        **_RAW,
        "skills": 50,
        "agent.hidden_sizes": (300, 300),
        "agent.deviation": "clip",
        "agent.squash_correction": "epsilon",
        "agent.initializer": "he_normal",
        "skill.trained_on": "current",
        "skill.batch": "shared",
        "skill.prior_offset": 1e-6,
        "skill.initializer": "he_normal",
        "skill.hidden_sizes": (300, 300),
        "collect.random_steps": 0,
        "collect.update_after": 255,  # it waits for a full batch
    },
    "qdax": {
        **_RAW,
        "skills": 5,
        "agent.temperature": 1.0,
        "agent.learn_temperature": True,
        "agent.target_entropy_per_action": -0.5,
        "agent.discount": 0.97,
        "agent.deviation": "softplus",
        "agent.critic_loss": "half_mean",
        "agent.truncated": "masked",
        "agent.initializer": "lecun_uniform",
        "skill.trained_on": "current",
        "skill.batch": "shared",
        "skill.missing_descriptor": "zeros",
        "skill.initializer": "lecun_uniform",
        "rollouts": 10,  # 250 there; skills are tiled over them
        "condition.sampler": "tiled",
        "collect.steps": 20,
        "collect.random_steps": 0,
        "collect.updates_per_step": 0.25,
    },
}
"""What the authors' code, the PyTorch DIAYN and QDax do differently from `laptop` on any task."""
_PUBLIC_RATE = 3e-4
_LONGEST: Mapping[str, int] = {"qdax": 100, "diayn_torch": 1000}
"""Steps after which public codes cut an episode; a task with shorter ones keeps its own."""
_GATES = {
    "music_tf/UnitBox-v0": (4.0, 0.5, 1.0),
    **dict.fromkeys(("HalfCheetah-v5", "music_tf/HalfCheetah-v0"), (2050.0, 205.0, 5.0)),
    "Walker2d-v5": (1180.0, 118.0, 10.0),
    **dict.fromkeys(("Ant-v5", "music_tf/Ant-v0"), (1700.0, 170.0, 10.0)),
}
"""Target, margin and scale of rewards: of the box ours, else those of the published comparison."""
_ANY_GATE = (1000.0, 100.0, 1.0)


@dataclasses.dataclass(frozen=True, kw_only=True)
class DadsConfig(DiversityConfig):
    """How much better the active skill predicts changes than others do (arXiv:1907.01657)."""

    name: ClassVar[str] = "dads"
    term: ClassVar[str] = "music_tf.intrinsic.dads:Dads"
    networks: ClassVar[Sequence[str]] = ("dynamics",)
    metrics: ClassVar[Mapping[str, str]] = {
        "dads/loss": "loss of the skill dynamics: minus the log-density of replayed changes",
        "dads/log_density": "mean log-density of replayed changes under their skill, in nats",
        "dads/target_mean": "running mean of changes, averaged over their components",
        "dads/target_std": "running deviation of changes, averaged over their components",
        "dads/reward_heldout": "mean raw reward in evaluation episodes, in nats, at most log K",
        "dads/gate_open": "share of replayed steps on which a target lets the reward be paid",
    }

    omit: Annotated[int | Literal["all"], In(0, 10**6)] = 2
    """Numbers at the beginning of the descriptor that the skill dynamics do not see; of all, they
    predict changes from the skill alone."""
    normalize_target: bool = True
    """Learns changes in units of their running moments."""
    normalize_inputs: bool = False
    """Feeds the skill dynamics normalised instead of raw descriptors."""
    components: Annotated[int, In(1, 64)] = 4
    """Gaussians in the mixture."""
    learn_deviations: bool = False
    """Learns the Gaussians' deviations; else they are 1."""
    samples: Annotated[int, In(1, 10**4)] = 20
    """Random conditions that the active one is compared with where they are continuous; one_hot
    ones are compared with all K."""
    hidden_sizes: Layers = (256, 256)
    """Units of each hidden layer of the skill dynamics."""
    learning_rate: Rate = 3e-4
    """Adam step size of the skill dynamics."""

    def foreseen(self, run: Config) -> Mapping[str, str]:
        """Returns its metrics, less those of what it does not learn or gate."""
        there = {
            "dads/loss": self.train,
            "dads/log_density": self.train,
            "dads/gate_open": self.gated,
        }
        return only(super().foreseen(run), there)

    def tells(self, run: Config) -> Sequence[Telling]:
        """Returns how much better a skill predicts changes than others do, on held-out episodes."""
        del run
        scale = "nats a step; guessing earns 0, and no step more than log K"
        return (Telling("dads/reward_heldout", "skill reward", chance=0.0, scale=scale),)


def sac_diayn(
    preset: Literal["laptop", "paper", "music", "qdax", "diayn_torch"], env_id: str = _PICK
) -> Config:
    """Skills that can be told apart by what they lead to, without any task reward.

    Diversity is all you need (arXiv:1802.06070): a discriminator names the skill, and the agent is
    paid log q(z | s) - log p(z). The presets:

    `laptop`: 20 skills, discriminator on the next state. Where there are goals, five skills that
    are told apart by the object. The reward is then clipped at 0, and the discriminator is too
    small to memorise episodes.
    `paper`: sizes, rates and state value of the DIAYN authors; the discriminator sees the present
    state.
    `qdax` and `diayn_torch`: two public codes, whose discriminators learn on the present state and
    pay for the next one. The first has slow critics, the second a state value.
    `music`: as the MUSIC release (arXiv:2103.08107) has it. The discriminator sees the object
    alone, and the reward is half its log-likelihood in [-1, 0] without the prior. Goals are zero,
    but hindsight relabels four of five of them.
    """
    if preset == "music" or (preset == "laptop" and is_one_of(env_id, WITH_GOALS)):
        return _on_objects(preset, env_id)
    return _on_states(preset, env_id)


def sac_dads(preset: Literal["laptop", "qdax"], env_id: str = _BOX) -> Config:
    """Skills with predictable consequences, without any task reward.

    Dynamics-aware discovery of skills (arXiv:1907.01657), the off-policy form of QDax: the mixture
    that predicts changes is learned beside the agent. Its settings are those of `sac_diayn`. There
    is no preset `paper`: the published comparison with QDax has DADS beside a task alone.
    """
    return dataclasses.replace(_compared(preset, env_id), rewards={"dads": _dads(preset)})


def sac_smerl(preset: Literal["laptop", "paper", "qdax"], env_id: str = _BOX) -> Config:
    """The task in several ways: skills that differ where an episode does well enough.

    SMERL (arXiv:2010.14484): the task's reward, and that of `sac_diayn` in episodes whose return
    reaches `skill.target` less `skill.margin`. Targets are those of the published comparison with
    QDax where it has the robot, else 1000 and 100: set yours. `--skill.target -inf` leaves the
    gate open, so that rewards are summed.
    """
    config = _compared(preset, env_id)
    return _gated(config, preset, config.rewards["skill"])


def sac_dads_smerl(preset: Literal["laptop", "paper", "qdax"], env_id: str = _BOX) -> Config:
    """The task in several ways: `sac_smerl` with the reward of `sac_dads`.

    Under `paper` the skill dynamics see the skill alone, as in the published comparison.
    """
    return _gated(_compared(preset, env_id), preset, _dads(preset))


def _on_states(preset: str, env_id: str, longest: int | None = None) -> Config:
    """Returns DIAYN as published, on any task by steps, as `sac` is where there are no goals.

    `longest` replaces the steps after which the preset cuts an episode.
    """
    boxed, goals = is_one_of(env_id, (_BOX,)), is_one_of(env_id, WITH_GOALS)
    with_value, small = preset in _WITH_VALUE, preset == "laptop" and boxed
    steps = sac("paper" if with_value else "laptop", _WITHOUT_GOALS if goals else env_id)
    sizes, rate = ((64, 64), 1e-3) if small else ((256, 256), _PUBLIC_RATE)
    agent = with_fields(
        steps.agent,
        {
            "hidden_sizes": sizes,
            "actor_learning_rate": rate,
            "critic_learning_rate": rate,
            "temperature_learning_rate": rate,
            "temperature": 0.1,
            "learn_temperature": False,
        },
    )
    if with_value:
        shared = {
            field.name: getattr(agent, field.name) for field in dataclasses.fields(GaussianConfig)
        }
        agent = SacValueConfig(**shared, value_learning_rate=rate)
    skill = SkillConfig(
        scale=1.0,
        clip=(-math.inf, math.inf),
        state="next",
        subtract_prior=True,
        normalize_inputs=preset == "laptop",
        hidden_sizes=sizes,
        learning_rate=rate,
    )
    ours = dataclasses.replace(
        steps,
        env_id=env_id,
        agent=agent,
        goals="zero" if goals else "environment",
        skills=20,
        rewards={"skill": skill},
        replay=ReplayConfig(batch_size=128 if small else 256, draw="steps"),
    )
    config = with_fields(ours, _PUBLIC_CODES.get(preset, {}))
    registered = episode_steps(env_id)
    length = min(longest or _LONGEST.get(preset, registered), registered)
    played = (config.collect.steps or 1) * config.rollouts
    longer = dataclasses.replace(
        config,
        cycles=(steps.collect.steps or 1) * steps.cycles // played,  # as many steps in all
        env=EnvConfig(max_episode_steps=length if length < registered else None),
        evaluation=EvaluationConfig(episodes=config.skills, every=1 if boxed else 4),
    )
    return with_whole_episodes(longer)


def _compared(preset: str, env_id: str) -> Config:
    """Returns `_on_states`; as `paper` with the settings of the published comparison."""
    if preset != "paper":
        return dataclasses.replace(_on_states(preset, env_id), skills=5)
    fields = {
        "agent.temperature": 0.1,
        "agent.learn_temperature": False,
        "agent.discount": 0.99,
        "collect.updates_per_step": 1.0,
        "skill.missing_descriptor": "observation",
    }
    longest = 500 if is_one_of(env_id, ANT_MAZE) else 250
    return with_fields(_on_states("qdax", env_id, longest), fields)


def _dads(preset: str) -> DadsConfig:
    """Returns the reward of DADS; on a laptop it sees all of the state, normalised."""
    if preset == "laptop":
        return DadsConfig(omit=0, normalize_inputs=True)
    omit: Literal["all"] | int = "all" if preset == "paper" else DadsConfig.omit
    return DadsConfig(initializer="lecun_uniform", batch="shared", omit=omit)


def _gated(config: Config, preset: str, reward: TermConfig) -> Config:
    """Returns a run that is paid by its task, and by another reward where that went well."""
    target, margin, scale = _GATES.get(config.env_id, _ANY_GATE)
    weight = 2.0 * scale
    if preset == "qdax":
        target, margin, scale, weight = 800.0, 800.0, 1.0, 2.0
    elif preset == "laptop":
        scale, weight = 1.0, 1.0
        learned = {"agent.temperature": 1.0, "agent.learn_temperature": True}
        config = with_fields(config, learned)  # the task's rewards have a unit of their own
    gate = {"target": target, "margin": margin, "weight": ((0.0, weight),)}
    rewards = {"task": TaskConfig(scale=scale), reward.name: with_fields(reward, gate)}
    return dataclasses.replace(config, goals="environment", rewards=rewards)


def _on_objects(preset: str, env_id: str) -> Config:
    """Returns DIAYN of the MUSIC release, and our form of it on a laptop."""
    entropy_scale = 0.03 if env_id == _SLIDE else 0.02
    released = Config(
        env_id=env_id,
        goals="zero",
        skills=_SKILLS,
        agent=SacConfig(entropy_scale=entropy_scale, gradient_reduce="sum"),
        rewards={"skill": SkillConfig()},
        replay=ReplayConfig(relabel_k=4.0),
        evaluation=EvaluationConfig(episodes=320),
    )
    if preset != "laptop":
        return released
    return dataclasses.replace(
        released,
        workers=4,
        epochs=60,
        cycles=20,
        lost_object="absorb",
        agent=SacConfig(
            polyak=0.995,
            polyak_every="update",
            action_l2=0.0,
            entropy_mode="next_state",
            entropy_scale=entropy_scale,
            actor_entropy=True,
            learn_temperature=True,
            next_action="main",
        ),
        rewards={
            "skill": SkillConfig(
                scale=1.0,
                clip=(0.0, math.inf),
                state="next",
                subtract_prior=True,
                normalize_inputs=True,
                hidden_sizes=(32, 32),
            )
        },
        replay=ReplayConfig(batch_size=64),
        exploration=ExplorationConfig(sample=True, noise=0.0),
        evaluation=EvaluationConfig(episodes=40),
    )


def sac_diayn_finetune(preset: Preset, env_id: str = _PICK) -> Config:
    """The task reward for an agent of `sac_diayn`, held to its first skill; no hindsight.

    As the MUSIC release (arXiv:2103.08107) fine-tunes DIAYN: actor, critic and target networks come
    from a run of `sac_diayn` on the same environment. One pinned skill is the input throughout, and
    the entropy weighs more than in pre-training. The preset `laptop` fits runs of that preset.

    Where there are no goals, all is as in `sac_diayn` of the same preset but for the reward. The
    number of skills is that of the run which it starts from, unless `--skills` is typed. No first
    steps are random there, since the skill already acts.
    """
    if not is_one_of(env_id, WITH_GOALS):
        skilled = sac_diayn(preset, env_id)
        parts = (*_PARTS, "normalizer") if skilled.normalizer.running else _PARTS
        return dataclasses.replace(
            skilled,
            rewards={"task": TaskConfig()},
            pinned_skill=0,
            collect=dataclasses.replace(skilled.collect, random_steps=0),
            evaluation=sac("laptop", env_id).evaluation,
            start=Source("sac_diayn", parts, same_skills=True),
        )
    before = _on_objects(preset, env_id)
    task = dataclasses.replace(
        before, goals="environment", rewards={"task": TaskConfig()}, pinned_skill=0
    )
    if preset == "paper":
        return dataclasses.replace(
            task,
            agent=with_fields(before.agent, {"entropy_weight": ((0.0, 0.5),)}),
            replay=ReplayConfig(),
            start=Source("sac_diayn", _PARTS, preset="music"),
        )
    start = Source("sac_diayn", (*_PARTS, "normalizer"))
    return dataclasses.replace(task, lost_object="continue", start=start)


def sac_finetune_skill(preset: Preset, env_id: str = _PICK) -> Config:
    """The task reward for an agent of `sac_diayn`, held to the skill that is best at the task.

    As the authors of DIAYN use skills (arXiv:1802.06070): each is tried in ten episodes, and the
    one with the highest return is the input throughout. Actor, critic and targets go on from there.
    `--best-of` says how many episodes, `--pinned-skill` another skill. All else is as in
    `sac_diayn_finetune`.
    """
    task = sac_diayn_finetune(preset, env_id)
    start = Source("sac_diayn", _PARTS) if task.start is None else task.start
    return dataclasses.replace(task, pinned_skill=None, start=start._replace(best_of=10))


def sac_music_diayn(preset: Preset, env_id: str = _PICK) -> Config:
    """MUSIC first, then the reward of `sac_diayn`: control of the object, then skills in using it.

    As released (arXiv:2103.08107): `sac_diayn` that starts from actor, critic and target networks
    of a run of `sac_music_skills`; mutual information is no longer rewarded. The release leaves
    the running statistics behind.

    `laptop` keeps agent, exploration and horizon of the run that it starts from, but for the action
    penalty. It brings the statistics of observations and the statistics network along. Mutual
    information goes on being learned and counts at 0.3 of its weight. Without it the object is let
    go before the discriminator has found anything to tell skills by.
    """
    alone = _on_objects(preset, env_id)
    if preset == "paper":
        return dataclasses.replace(alone, start=Source("sac_music_skills", _PARTS))
    before = sac_music_skills(preset, env_id)
    quiet = 0.3 * before.rewards["music"].unit_weight
    quieter = with_fields(before, {"music.weight": ((0.0, quiet),), "agent.action_l2": 0.0})
    return dataclasses.replace(
        quieter,
        rewards={**quieter.rewards, **alone.rewards},
        start=Source("sac_music_skills", (*_PARTS, "normalizer", "statistics")),
    )

import pytest

from tests.kit.jobs import EPOCHS, MPIRUN, run, train


@pytest.fixture(autouse=True)
def mpirun_is_there():
    if not MPIRUN.exists():
        pytest.skip("no mpirun beside this Python")


@pytest.fixture(scope="session")
def whole(tmp_path_factory):  # a run on two ranks that nothing disturbed
    return undisturbed(tmp_path_factory.mktemp("whole") / "run")


@pytest.fixture(scope="session")
def whole_alone(tmp_path_factory):  # the same in one process, which sums in another order
    return undisturbed(tmp_path_factory.mktemp("alone") / "run", how="alone")


def undisturbed(path, **how):
    run(train(path, "--epochs", EPOCHS), path, **how)
    return path

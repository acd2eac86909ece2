import numpy as np

from experiments import resume_skills


def test_every_way_goes_on_from_the_same_run(tmp_path, monkeypatch):
    monkeypatch.setattr(resume_skills, "BEFORE", 3)
    monkeypatch.setattr(resume_skills, "AFTER", 1)
    found = {way: np.array(resume_skills.losses(tmp_path, 3, way)) for way in resume_skills.WAYS}
    assert all(losses.shape == (2, 2) and np.isfinite(losses).all() for losses in found.values())
    same = found["with replay"][0]
    np.testing.assert_array_equal(found["guarded"][0], same)
    np.testing.assert_array_equal(found["unguarded"][0], same)
    # what learns on 500 fresh steps alone is not what learns on all 2000
    assert found["unguarded"][1, 0] != found["with replay"][1, 0]

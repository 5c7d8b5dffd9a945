from torch._subclasses.fake_tensor import FakeTensorMode

from colearn.models.tree_attention import Carrier


def test_blocks_are_made_in_a_dry_run_too():
    with FakeTensorMode():
        assert Carrier.of(()).rows == ()

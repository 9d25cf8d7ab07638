"""What tests of several folders ask."""

from inspect import signature

import pytest

from hf_vat.errors import InputError
from hf_vat.explanations import METHODS

ALONE = {name: method for name, method in METHODS.items() if not method.fitted}  # methods that need nothing but a model


def refuses(*cases):
    """A test that has a case for each (call, message): the call, of the fixtures that it names, is refused and says so."""

    @pytest.mark.parametrize(("call", "message"), cases)
    def test(call, message, request):
        fixtures = [request.getfixturevalue(name) for name in signature(call).parameters]
        with pytest.raises(InputError, match=message):
            call(*fixtures)

    return test


def without_time(explanations):
    """All that explanations say, but how long they took."""
    return [{**explanation.to_dict(), "seconds": 0} for explanation in explanations]

"""How near a tie the least certain token of an episode was."""

import pytest
from helpers.episodes import span

from thread_kit import least_lead
from thread_kit.dialect import Stop
from thread_kit.sequence import Provenance
from thread_kit.trace.episode import Episode
from thread_kit.trace.events import GeneratedSpan, TokenProbs


def wrote(*tops: tuple[tuple[str, float], ...]) -> Episode:
    """An episode with a call for each token that was weighed."""
    episode = Episode({})
    for top in tops:
        weighed = TokenProbs(top[0][1] if top else 0.0, {}, top)
        text = span(Provenance.GENERATED, "x")
        episode.events.append(GeneratedSpan(0, text, Stop.END, 0, 1, 0.0, logprobs=(weighed,)))
    return episode


def test_it_is_that_of_the_token_with_the_likeliest_rival():
    sure = (("a", 0.9), ("b", 0.05), ("c", 0.05))
    near = (("b", 0.6), ("a", 0.3))
    assert least_lead(wrote(sure, near, sure)) == pytest.approx(2)


def test_a_rival_without_any_chance_is_no_division_by_zero():
    assert least_lead(wrote((("a", 1.0), ("b", 0.0)))) > 1000


@pytest.mark.parametrize("tops", [(), ((),), ((("a", 1.0),),)])
def test_where_nothing_was_weighed_the_remedy_is_said(tops):
    with pytest.raises(ValueError, match="logprobs=True"):
        least_lead(wrote(*tops))

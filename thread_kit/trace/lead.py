"""Near ties: how far the model was from writing another token."""

from __future__ import annotations

from thread_kit.trace.episode import Episode, must_be_episode
from thread_kit.trace.events import GeneratedSpan

NOTHING = 1e-9  # a rival's chance that is as good as none


def least_lead(episode: Episode) -> float:
    """How many times likelier the likeliest token was than the next, where that was least.

    Logits differ in their last digits from one processor to another, and with what else is in a
    batch, by as much as half a logit (a factor of 1.6): where this is well above that, another
    machine writes the same greedy text. Raises ValueError for an episode in which no token was
    weighed: its session had no `logprobs=True`, or no model wrote.
    """
    calls = [event for event in must_be_episode(episode).events if isinstance(event, GeneratedSpan)]
    weighed = [probs.top for call in calls for probs in call.logprobs if len(probs.top) > 1]
    if not weighed:
        raise ValueError("no token was weighed; play the episode in a session with logprobs=True")
    return min(top[0][1] / max(top[1][1], NOTHING) for top in weighed)

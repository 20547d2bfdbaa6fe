"""Where things lie in ALFWorld: what its packages' rules allow, in the order in which one looks.

For each thing the kinds of places that can hold it or another one of its sort
(`alfworld.gen.constants`, without what can be carried itself, such as a bowl): first open places,
then what has to be opened, last what there are many of. Six lists and no more, since a small model
has to know them by heart; and each goes on with all other places, so that whoever takes the wrong
one still finds the thing. This is the knowledge about households that the lessons teach; nothing in
it comes from an official game.
"""

from __future__ import annotations

_SURFACES = "countertop diningtable desk sidetable coffeetable dresser"
_SEATS = "bed sofa armchair ottoman"

_KINDS = {
    # Food.
    "apple bread egg lettuce potato tomato": "countertop diningtable sidetable coffeetable "
    "sinkbasin garbagecan microwave fridge",
    # What one eats and drinks from.
    "bowl cup glassbottle mug plate winebottle": f"coffeemachine {_SURFACES} sinkbasin cart shelf "
    "garbagecan microwave fridge cabinet",
    # What one cooks in.
    "kettle ladle pan pot": "stoveburner countertop diningtable sidetable coffeetable sinkbasin "
    "shelf fridge cabinet drawer",
    # What one eats and cooks with.
    "butterknife fork knife peppershaker saltshaker spatula spoon": "countertop diningtable "
    "sidetable coffeetable sinkbasin shelf cabinet drawer",
    # What belongs in a bathroom.
    "candle cloth dishsponge handtowel plunger soapbar soapbottle spraybottle tissuebox "
    "toiletpaper toiletpaperroll towel": f"{_SURFACES} {_SEATS} sinkbasin bathtubbasin toilet "
    "handtowelholder towelholder toiletpaperhanger tvstand cart laundryhamper shelf garbagecan "
    "cabinet drawer",
    # All other things of a household.
    "alarmclock baseballbat basketball book box cd cellphone creditcard keychain laptop newspaper "
    "pen pencil pillow remotecontrol statue tennisracket vase wateringcan watch": f"{_SURFACES} "
    f"{_SEATS} toilet cart shelf safe garbagecan cabinet drawer",
}

EVERYWHERE = list(dict.fromkeys(kind for kinds in _KINDS.values() for kind in kinds.split()))
"""All kinds of places, for a thing that is not listed."""

KINDS_OF = {
    thing: list(dict.fromkeys([*kinds.split(), *EVERYWHERE]))
    for things, kinds in _KINDS.items()
    for thing in things.split()
}
"""By a thing's name, as ALFWorld writes it: the kinds of places, first those where it can lie."""

LAMP_STANDS_ON = ["desk", "sidetable", "dresser", "shelf", "coffeetable", "diningtable"]

__all__ = ["EVERYWHERE", "KINDS_OF", "LAMP_STANDS_ON"]

"""Where things lie in ALFWorld: what its packages' rules allow, in the order in which one looks.

For each thing the kinds of places that can hold it (`alfworld.gen.constants`, without what can be
carried itself, such as a bowl), in one order for all: first where a thing has its place, then open
surfaces, then what has to be opened, last what there are many of. This is the knowledge about
households that the lessons teach; nothing in it comes from an official game.
"""

from __future__ import annotations

_TABLES = "countertop diningtable sidetable coffeetable"
_DESKS = "countertop diningtable desk sidetable coffeetable dresser"
_SEATS = "sofa armchair ottoman"
_BATH = "sinkbasin bathtubbasin toilet cart shelf"

_KINDS = {
    "alarmclock": f"{_DESKS} shelf",
    "apple egg potato tomato": f"{_TABLES} sinkbasin garbagecan microwave fridge",
    "baseballbat": f"{_TABLES} bed",
    "basketball laptop": f"{_DESKS} bed {_SEATS}",
    "book": f"{_DESKS} bed {_SEATS} shelf cabinet drawer",
    "bowl cup glassbottle plate": f"{_DESKS} sinkbasin shelf microwave fridge cabinet",
    "box": f"{_DESKS} {_SEATS} shelf cabinet",
    "bread": f"{_TABLES} garbagecan microwave fridge",
    "butterknife fork knife spatula spoon": f"{_TABLES} sinkbasin drawer",
    "cd": f"{_DESKS} shelf garbagecan safe cabinet drawer",
    "candle": f"{_DESKS} toilet cart shelf cabinet drawer",
    "cellphone": f"{_DESKS} bed {_SEATS} shelf safe drawer",
    "cloth": f"{_DESKS} {_SEATS} {_BATH} laundryhamper garbagecan cabinet drawer",
    "creditcard keychain": f"{_DESKS} {_SEATS} shelf safe drawer",
    "dishsponge soapbar": f"{_TABLES} {_BATH} garbagecan cabinet drawer",
    "handtowel": f"handtowelholder {_TABLES} {_BATH} garbagecan cabinet drawer",
    "kettle": f"stoveburner {_TABLES} sinkbasin shelf cabinet",
    "ladle": f"{_TABLES} sinkbasin cabinet drawer",
    "lettuce": f"{_TABLES} sinkbasin garbagecan fridge",
    "mug": f"coffeemachine {_DESKS} sinkbasin cart shelf microwave fridge cabinet",
    "newspaper": f"{_DESKS} bed {_SEATS} toilet shelf garbagecan cabinet drawer",
    "pan": f"stoveburner {_TABLES} sinkbasin fridge cabinet",
    "pen pencil": f"{_DESKS} shelf garbagecan drawer",
    "peppershaker saltshaker": f"{_TABLES} shelf cabinet drawer",
    "pillow": f"bed {_SEATS}",
    "plunger": "cart cabinet",
    "pot": f"stoveburner {_TABLES} sinkbasin shelf fridge cabinet",
    "remotecontrol": f"{_DESKS} {_SEATS} shelf drawer",
    "soapbottle": "countertop diningtable desk sidetable coffeetable toilet cart shelf garbagecan "
    "cabinet drawer",
    "spraybottle": f"{_DESKS} toilet cart shelf garbagecan cabinet drawer",
    "statue": f"{_DESKS} cart shelf safe",
    "tennisracket": f"{_DESKS} bed",
    "tissuebox": f"{_DESKS} toilet tvstand cart shelf garbagecan cabinet drawer",
    "toiletpaper toiletpaperroll": f"toiletpaperhanger {_DESKS} toilet cart shelf garbagecan "
    "cabinet drawer",
    "towel": "towelholder",
    "vase": f"{_DESKS} cart shelf safe cabinet",
    "watch": f"{_DESKS} shelf safe drawer",
    "wateringcan": f"{_DESKS} shelf cabinet drawer",
    "winebottle": f"{_DESKS} shelf garbagecan fridge cabinet",
}

KINDS_OF = {thing: kinds.split() for things, kinds in _KINDS.items() for thing in things.split()}
"""By a thing's name, as ALFWorld writes it: the kinds of places where it can lie."""

LAMP_STANDS_ON = ["desk", "sidetable", "dresser", "shelf", "coffeetable", "diningtable"]

EVERYWHERE = sorted({kind for kinds in KINDS_OF.values() for kind in kinds})
"""For a thing that is not listed."""

__all__ = ["EVERYWHERE", "KINDS_OF", "LAMP_STANDS_ON"]

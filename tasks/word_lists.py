"""The words of Words Collection: closed categories, and the sentences that hide them.

Members are single lower-case words of at least four letters.  None is in two categories, has another common sense
(no may, march, orange, turkey, bear, copper, organ, swallow) or is part of another member (no apple beside pineapple).
Categories do not overlap in meaning either: there are no birds beside animals.  No word of a sentence below is a
member, contains one or is part of one; a test compares them all.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Category:
    """Words of one kind.

    Attributes:
        phrase: its name in a problem, plural.
        members: all its words, lower case.
        capitalised: written with a capital letter in a passage.
        sentences: sentences with one ``{}`` where a member stands.
    """

    phrase: str
    members: tuple[str, ...]
    capitalised: bool
    sentences: tuple[str, ...]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


CATEGORIES: dict[str, Category] = {
    "animals": Category(
        "animals",
        _words(
            "camel deer donkey elephant giraffe goat hedgehog horse kangaroo leopard lion monkey otter rabbit sheep "
            "squirrel tiger wolf zebra"
        ),
        False,
        (
            "The {} slept in the shade until noon.",
            "A child fed the {} through the fence.",
            "Nobody had seen the {} since the storm.",
            "The {} drank from the pond behind the house.",
            "They followed the tracks of the {} down to the stream.",
        ),
    ),
    "clothes": Category(
        "clothes",
        _words(
            "apron blouse cardigan jacket kimono leggings mittens pyjamas raincoat scarf sweater trousers waistcoat"
        ),
        False,
        (
            "Somebody left the {} on the chair.",
            "The {} needed a wash after the long walk.",
            "She packed the {} at the bottom of the suitcase.",
            "He could not find the {} anywhere in the house.",
            "The {} was much too big for him.",
        ),
    ),
    "colours": Category(
        "colours",
        _words("beige black blue brown crimson green grey indigo magenta pink purple scarlet white yellow"),
        False,
        (
            "They painted the door {} in the spring.",
            "The curtains in the hall were {} once.",
            "She chose {} for the cover of her notebook.",
            "The walls of the room had turned {} over the years.",
            "He wrapped the parcel in {} paper.",
        ),
    ),
    "countries": Category(
        "countries",
        _words(
            "argentina australia austria belgium brazil bulgaria canada colombia denmark egypt ethiopia finland france "
            "germany iceland india indonesia ireland italy japan kenya mexico morocco nigeria norway pakistan poland "
            "portugal romania spain sweden switzerland thailand vietnam"
        ),
        True,
        (
            "A letter from {} arrived in the morning.",
            "Her cousin moved to {} twenty years ago.",
            "The next meeting will be held in {} again.",
            "He told us about his long journey through {} that evening.",
            "The stamp on the parcel is from {} as well.",
        ),
    ),
    "elements": Category(
        "chemical elements",
        _words(
            "argon calcium chlorine chromium helium hydrogen iodine krypton lithium magnesium nitrogen oxygen "
            "phosphorus platinum potassium sodium titanium uranium"
        ),
        False,
        (
            "The sample held a little {} after all.",
            "The lesson about {} took longer than planned.",
            "Nobody expected to find {} in the bottle.",
            "The second test showed more {} than the first.",
            "A chapter on {} closes the book.",
        ),
    ),
    "fruits": Category(
        "fruits",
        _words(
            "apricot banana cherry coconut cranberry lemon mango nectarine papaya pineapple pomegranate raspberry "
            "strawberry watermelon"
        ),
        False,
        (
            "She cut the {} in small pieces.",
            "There was still one {} in the bowl.",
            "He asked for a taste of the {} at the market stall.",
            "The {} was not quite ripe yet.",
            "They shared the {} after lunch.",
        ),
    ),
    "instruments": Category(
        "musical instruments",
        _words(
            "accordion banjo bassoon cello clarinet flute guitar harmonica mandolin oboe piano saxophone trombone "
            "trumpet ukulele violin xylophone"
        ),
        False,
        (
            "Somebody upstairs practised the {} all afternoon.",
            "The {} had to be tuned before the concert.",
            "She learned to play the {} when she was six.",
            "The sound of the {} drifted through the open window.",
            "He carried the {} home in its case.",
        ),
    ),
    "professions": Category(
        "professions",
        _words(
            "accountant architect astronaut biologist carpenter dentist electrician firefighter journalist lawyer "
            "librarian pharmacist photographer plumber surgeon teacher veterinarian"
        ),
        False,
        (
            "The {} returned late in the evening.",
            "They asked the {} for help with the form.",
            "The {} next door has a big garden.",
            "Her brother wants to become a good {} one day.",
            "He spoke to the {} for almost an hour.",
        ),
    ),
    "sports": Category(
        "sports",
        _words(
            "badminton baseball basketball football golf gymnastics handball hockey judo karate rugby softball tennis "
            "volleyball"
        ),
        False,
        (
            "The children talked about {} during the break.",
            "She has been good at {} since school.",
            "There was a long report about {} in the newspaper.",
            "He gave up {} after the summer.",
            "The new hall will be used for {} only.",
        ),
    ),
    "vegetables": Category(
        "vegetables",
        _words(
            "artichoke asparagus broccoli cabbage carrot cauliflower celery lettuce onion parsnip potato radish "
            "spinach turnip zucchini"
        ),
        False,
        (
            "He washed the {} in the sink.",
            "The soup needs a little more {} and some salt.",
            "She planted the {} beside the shed.",
            "They forgot to buy the {} at the shop.",
            "The last {} of the season went in the pot.",
        ),
    ),
    "vehicles": Category(
        "vehicles",
        _words(
            "airplane ambulance bicycle canoe helicopter limousine minivan motorcycle scooter submarine taxi tractor "
            "yacht"
        ),
        False,
        (
            "The {} stopped at the end of the street.",
            "They waited until the {} was out of sight.",
            "He wanted to sell the {} before winter.",
            "The noise of the {} woke everybody up.",
            "She took a picture of the {} from the bridge.",
        ),
    ),
    "weekdays": Category(
        "days of the week",
        _words("monday tuesday wednesday thursday friday saturday sunday"),
        True,
        (
            "The shop will open again on {} at nine.",
            "We have not heard from them since {} morning.",
            "The storm should end by {} at the latest.",
            "She promised to call on {} after dinner.",
            "The letter was posted last {} evening.",
        ),
    ),
}
"""By the name that ``--param categories=`` takes."""

LIST_SENTENCES: tuple[str, ...] = (
    'The next two entries on the page were "{}" and "{}".',
    "Two words were underlined in the diary: {}, {}.",
    'First the poster said "{}"; later somebody wrote "{}" over it.',
    "He guessed {} ... and then {}, but neither fitted the puzzle.",
    "(She had noted two things in the margin: {}! {}!)",
)
"""Sentences with two ``{}`` that take members of any category."""

FILLER_SENTENCES: tuple[str, ...] = (
    "It had been a quiet day so far.",
    "Nobody knew what to say about it.",
    "The old house stood at the end of a narrow street.",
    "They talked for a while and then went home.",
    "A cold wind blew across the field.",
    "She looked out of the window and waited.",
    "The clock in the hall had stopped again.",
    "He had forgotten where he put the key.",
    "After a few minutes everything was silent.",
    "It was not the first time that this had happened.",
    "The light went out just before midnight.",
    "There was nothing else on the table.",
    "Some of the pages were missing.",
    "They decided to try once more in the morning.",
    "The story was told in very different ways.",
    "Most of the guests had left by then.",
    "Nothing in the room had been moved.",
    "It took them a long time to find the right road.",
    "She smiled and closed the book.",
    "The lake was deep and very still.",
    "Everybody agreed that it was a good idea.",
    "He read the message twice and put it away.",
    "The village looked just as it did before.",
    "For a moment they thought they were lost.",
    "There were footprints in the snow near the gate.",
    "In the end it did not matter at all.",
    "The answer arrived much later than they had hoped.",
    "She wrote everything down so that she would remember.",
    "Smoke rose somewhere beyond the hills.",
    "The path went up the hill and through the woods.",
)
"""Sentences without a member."""

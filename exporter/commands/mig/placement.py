"""Whether GPU instances fit a GPU side by side, by the places that each profile has. No I/O, no state."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product

from exporter.commands.mig.models import MEDIA, MigModel, MigProfile

Geometry = Mapping[str, int]
"""How many GPU instances of each profile, by its name."""
Placement = list[tuple[MigProfile, int]]
"""GPU instances with the memory slice at which each begins."""


def placement(model: MigModel, geometry: Geometry) -> Placement | None:
    """Where the GPU instances can be; None where they do not fit, or where the model lacks a profile."""
    profiles = [model.profile(name) for name, count in geometry.items() for _ in range(count)]
    if any(each is None for each in profiles) or _media(geometry) > 1:
        return None
    wanted = [found for found in profiles if found is not None]
    if sum(each.memory for each in wanted) > model.memory:
        return None
    # The largest first: they have the fewest places, so that a dead end shows early.
    wanted.sort(key=lambda profile: (-profile.memory, len(profile.starts), profile.name))
    return _placed(wanted, 0)


def _placed(wanted: list[MigProfile], taken: int) -> Placement | None:
    """Place the first and then the rest; `taken` has one bit for each memory slice that is occupied."""
    if not wanted:
        return []
    first, *rest = wanted
    for start in first.starts:
        bits = ((1 << first.memory) - 1) << start
        if taken & bits:
            continue
        found = _placed(rest, taken | bits)
        if found is not None:
            return [(first, start), *found]
    return None


def _media(geometry: Geometry) -> int:
    return sum(count for name, count in geometry.items() if name.endswith(MEDIA))


def refusal(model: MigModel, geometry: Geometry) -> str:
    """Why a geometry does not fit, in words; empty where it does."""
    unknown = [name for name in geometry if model.profile(name) is None]
    if unknown:
        return (
            f"{model.name} has no profile {' and '.join(unknown)}: it has {', '.join(p.name for p in model.profiles)}"
        )
    if placement(model, geometry) is not None:
        return ""
    if _media(geometry) > 1:
        return f"one GPU instance can have the media extensions ({MEDIA}), and {_media(geometry)} are asked for"
    profiles = {name: each for name in geometry if (each := model.profile(name)) is not None}
    needed = sum(profiles[name].memory * count for name, count in geometry.items())
    if needed > model.memory:
        sizes = ", ".join(f"{name} {profiles[name].memory}" for name in geometry)
        return f"they need {needed} memory slices and the GPU has {model.memory} (each {sizes})"
    many = [name for name, count in geometry.items() if count > len(profiles[name].starts)]
    if many:
        return f"the GPU has places for {' and '.join(f'{len(profiles[name].starts)} x {name}' for name in many)}"
    places = "; ".join(f"{name} may begin at memory slice {starts_text(p)}" for name, p in profiles.items())
    return f"they overlap wherever they are: {places}"


def starts_text(profile: MigProfile) -> str:
    """The places of a profile as people read them."""
    return ", ".join(map(str, profile.starts))


def largest_parts(model: MigModel, geometry: Geometry) -> list[Geometry]:
    """The parts of a geometry that fit and to which nothing more of it could be added, the largest first."""
    known = [name for name in geometry if model.profile(name) is not None]
    limits = [range(min(geometry[name], len(_profile(model, name).starts)) + 1) for name in known]
    fitting = [found for counts in product(*limits) if placement(model, found := _of(known, counts)) is not None]
    return sorted(_maximal(fitting), key=lambda each: _rank(model, each))


def combinations(model: MigModel) -> list[Geometry]:
    """Every geometry to which no GPU instance could be added, without those of media extensions."""
    plain = {each.name: len(each.starts) for each in model.profiles if not each.name.endswith(MEDIA)}
    return largest_parts(model, plain)


def _profile(model: MigModel, name: str) -> MigProfile:
    found = model.profile(name)
    assert found is not None
    return found


def _of(names: list[str], counts: tuple[int, ...]) -> Geometry:
    return {name: count for name, count in zip(names, counts, strict=True) if count}


def _maximal(found: list[Geometry]) -> Iterator[Geometry]:
    counters = [Counter(each) for each in found]
    for counter, each in zip(counters, found, strict=True):
        if each and not any(counter < other for other in counters):
            yield each


def _rank(model: MigModel, geometry: Geometry) -> tuple[int, int, list[str]]:
    compute = sum(_profile(model, name).compute * count for name, count in geometry.items())
    return -compute, sum(geometry.values()), sorted(geometry)


def geometry_text(geometry: Geometry) -> str:
    """Write a geometry as `2 x 3g.40gb + 1 x 1g.10gb`."""
    return " + ".join(f"{count} x {name}" for name, count in geometry.items() if count) or "no GPU instance"

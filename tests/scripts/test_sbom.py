"""The bill of materials has every package of the lock file."""

from scripts.sbom import LOCK, bill_of_materials


def test_every_locked_package_is_a_component_with_its_version():
    text = LOCK.read_text()
    document = bill_of_materials(text)
    found = {f"{each['name']}=={each['version']}" for each in document["components"]}
    assert found == {line.split(" ")[0] for line in text.splitlines() if "==" in line and line[0].isalpha()}
    assert len({each["bom-ref"] for each in document["components"]}) == len(found)


def test_a_marker_is_not_taken_for_a_version():
    (component,) = bill_of_materials('tzdata==2026.1 ; sys_platform == "win32" \\\n    --hash=sha256:00\n')[
        "components"
    ]
    assert component["purl"] == "pkg:pypi/tzdata@2026.1"

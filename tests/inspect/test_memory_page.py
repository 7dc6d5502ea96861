"""The memory page: its data, and in a real browser what a person does with it."""

import json

import pytest

import browser
import clew
from clew import nn
from clew.inspect.memory.page import data, in_notebook, page
from clew.inspect.memory.plain import frames
from clew.memory import track
from leftovers import without_leftovers  # noqa: F401  # for all tests of this module


def leaking(steps=6):
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = clew.optim.Adam(model.parameters())
    x = clew.ones(16, 8)
    history = []
    for _ in range(steps):
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        history.append(loss)
    return history


@pytest.fixture(scope="module")
def ledger():
    with track("clew") as m:
        held = leaking()
    del held
    return m


def replayed(found):
    """The totals after each frame."""
    total = sum(found["start"].values())
    totals = []
    for change in found["changes"]:
        total += sum(change[1::2])
        totals.append(total)
    return totals


def test_the_data_hold_every_change(ledger):
    found = data(ledger)
    totals = replayed(found)
    assert totals == ledger.timeline.total.tolist()
    assert max(totals) == found["peak"] == ledger.peak.bytes
    assert [totals[end - 1] for end in found["ends"]] == [i.bytes for i in ledger.iterations]
    lines = {line["text"] for line in found["lines"].values()}
    assert "loss = model(x).pow(2).mean()" in lines
    assert any(
        "loss = model(x)" in text for line in found["lines"].values() for text in line["around"]
    )


@pytest.mark.parametrize("limit", [50, 7])
def test_fewer_frames_keep_peaks_and_ends(ledger, limit, monkeypatch):
    monkeypatch.setattr("clew.inspect.memory.page.LIMIT", limit)
    found = data(ledger)
    totals = replayed(found)
    assert len(totals) < len(ledger.timeline)
    assert max(totals) == ledger.peak.bytes
    assert totals[-1] == ledger.timeline.total[-1]
    assert [totals[end - 1] for end in found["ends"]] == [i.bytes for i in ledger.iterations]
    assert len(frames(ledger.timeline, limit).times) == len(totals)


def test_json_is_complete(ledger, tmp_path):
    ledger.save(tmp_path / "m.json")
    found = json.loads((tmp_path / "m.json").read_text())
    assert found["peak"]["bytes"] == ledger.peak.bytes
    assert sum(e["bytes"] for e in found["peak"]["entries"]) == ledger.peak.bytes
    assert [i["bytes"] for i in found["iterations"]] == [i.bytes for i in ledger.iterations]
    total = 0
    for _, _, before, after, nbytes in found["changes"]:
        total += nbytes * ((after >= 0) - (before >= 0))
    assert total == ledger.now.bytes
    kinds = {place["kind"] for place in found["places"]}
    assert {"parameter", "gradient", "optimizer state", "saved for backward"} <= kinds


def test_a_page_needs_no_other_file(ledger):
    text = page(ledger, "a <title>")
    assert "a &lt;title&gt;" in text
    assert "http://" not in text.replace("http://www.w3.org", "")
    assert "<iframe srcdoc=" in in_notebook(ledger)


# -- in a browser


@pytest.fixture(scope="module")
def driver():
    driver = browser.chromium(1400, 860)
    yield driver
    assert driver.get_log("browser") == []
    driver.quit()


@pytest.fixture
def show(driver, tmp_path):
    def show(ledger):
        ledger.save(tmp_path / "m.html", title="train.py")
        driver.get(f"{(tmp_path / 'm.html').as_uri()}#theme=light")
        return driver

    return show


def texts(driver, selector):
    return [e.text for e in driver.find_elements("css selector", selector)]


def test_a_person_finds_what_grew(ledger, show):
    driver = show(ledger)
    assert driver.title == "train.py · clew memory"
    assert f"{ledger.peak.bytes:,} B" in texts(driver, "#moment-bytes")[0]
    assert "the peak" in texts(driver, "#moment-bytes")[0]
    names = texts(driver, ".row .name")
    assert "test_memory_page.py:" in names[0]
    driver.find_element("css selector", ".row").click()
    assert any("loss = model(x)" in line for line in texts(driver, ".source .here"))

    driver.find_element("id", "tab-compare").click()
    assert texts(driver, "#compare-sum")[0].startswith("+")
    assert texts(driver, ".row .bytes")[0].startswith("+")
    assert "loss = model(x).pow(2).mean()" in texts(driver, ".row .text")[0]

    driver.find_element("id", "tab-saved").click()
    assert any("ReluBackward0 keeps result" in name for name in texts(driver, ".row .name"))
    driver.find_element("id", "tab-modules").click()
    assert "model.1" in texts(driver, ".row .name")
    box = driver.find_element("id", "filter")
    box.send_keys("model.1")
    assert texts(driver, ".row .name") == ["model.1"]
    box.send_keys(" nothing")
    assert texts(driver, ".empty") == ["Nothing here matches the filter."]


def test_moments_zoom_kinds_and_themes(ledger, show):
    driver = show(ledger)
    peak = driver.execute_script("return peak")
    assert driver.execute_script("return chart.picked") == peak
    driver.find_element("tag name", "body").send_keys("\ue014")  # right
    assert driver.execute_script("return chart.picked") == peak + 1
    driver.find_element("tag name", "body").send_keys("p")
    assert driver.execute_script("return chart.picked") == peak
    driver.execute_script("chart.zoom([2, 40])")
    assert driver.find_element("id", "whole").is_displayed()
    driver.find_element("id", "whole").click()
    assert not driver.find_element("id", "whole").is_displayed()
    before = driver.execute_script("return chart.highest")
    driver.find_element("css selector", "#legend button").click()
    assert driver.execute_script("return chart.highest") < before
    driver.find_element("id", "by-time").click()
    driver.find_element("id", "theme").click()
    assert driver.execute_script("return document.documentElement.dataset.theme") == "dark"
    driver.execute_script("hover(3, 200, 100)")
    assert "iteration 0" in driver.find_element("id", "tip").text
    colours = driver.execute_script(
        "const c = chart.canvas, all = chart.context.getImageData(0, 0, c.width, c.height);"
        "return new Set(new Uint32Array(all.data.buffer)).size"
    )
    assert colours > 6


def test_an_empty_ledger_says_so(show):
    with track("clew") as m:
        pass
    m._log._rows.clear()
    m._read = None
    assert "Nothing was allocated" in texts(show(m), ".empty")[0]

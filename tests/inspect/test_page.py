"""The interactive page in a real browser: fold, search, click, keys, and nothing in the console."""

import re

import pytest

import browser
import clew
import clew.inspect
import graph_programs as programs
from clew.inspect.graph_page import data_of, html_of

READY = "return window.page !== undefined && window.page.painter.width > 0"

POINT = """
const box = page.layout.boxes.get(page.tree.visible()[arguments[0]]), camera = page.painter.camera;
const stage = document.getElementById("canvas").getBoundingClientRect();
return [
  stage.left + (box.x + box.w / 2) * camera.scale + camera.x,
  stage.top + (box.y + 10) * camera.scale + camera.y,
];
"""
FRAME = """
const begin = performance.now();
page.painter.paint();
return performance.now() - begin;
"""
COLOURS = """
page.painter.paint();
const copy = new OffscreenCanvas(900, 700).getContext("2d");
copy.drawImage(page.painter.canvas, 0, 0);
return new Set(new Uint32Array(copy.getImageData(0, 0, 900, 700).data.buffer)).size;
"""


@pytest.fixture(scope="module")
def driver():
    driver = browser.chromium()
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def show(driver, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")

    def show(graph):
        path = folder / f"{len(list(folder.iterdir()))}.html"
        graph.save(path)
        driver.get(f"{path.as_uri()}#theme=light")
        assert driver.execute_script(READY)
        return Page(driver)

    yield show
    assert driver.get_log("browser") == []


class Page:
    """What a person does with the page, by mouse and keyboard."""

    def __init__(self, driver):
        self.driver = driver

    def js(self, expression):
        return self.driver.execute_script(f"return {expression}")

    def titles(self):
        return self.js("page.tree.visible().map((i) => page.tree.title(i))")

    def item(self, title):
        return self.titles().index(title)

    def point(self, title):
        """Where an item stands on the screen: the middle of its upper edge, a little lower."""
        return self.driver.execute_script(POINT, self.item(title))

    def mouse(self, title, times=1):
        from selenium.webdriver.common.action_chains import ActionChains

        self.settle()
        x, y = self.point(title)
        actions = ActionChains(self.driver)
        actions.w3c_actions.pointer_action.move_to_location(round(x), round(y))
        for _ in range(times):
            actions.click()
        actions.perform()
        self.settle()

    def keys(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()
        self.settle()

    def settle(self):
        """Wait until nothing moves."""
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, 5).until(lambda _: self.js("!page.painter.moving"))

    def panel(self):
        return self.js("document.getElementById('panel').innerText")

    def button(self, name):
        self.js(f"document.getElementById({name!r}).click()")
        self.settle()


def recorded(name, engine=clew):
    with clew.inspect.record():
        tensors, module = programs.PROGRAMS[name](engine)
    return clew.graph(tensors, params=module)


def test_groups_fold_and_unfold_by_mouse(show):
    page = show(recorded("residual_net"))
    blocks = "layers.0 … layers.3  ×4"
    assert blocks in page.titles()
    assert "layers.2" not in page.titles()
    page.mouse(blocks, times=2)
    assert {"layers.0", "layers.1", "layers.2", "layers.3"} <= set(page.titles())
    page.mouse(blocks, times=2)
    assert "layers.2" not in page.titles()
    page.button("fold-all")
    assert page.titles() == ["net", "LogSoftmax", "NllLoss"]
    page.button("unfold-all")
    assert page.titles().count("Gelu") == 4


def test_a_click_shows_what_is_known_of_a_node(show):
    page = show(recorded("residual_net"))
    page.mouse("NllLoss")
    panel = page.panel()
    assert "NllLossBackward0" in panel
    assert "loss = nn.functional.cross_entropy(net(T.randn(4, 8)), T.tensor([0, 1, 1, 0]))" in panel
    assert "Kept because the gradient of self is computed from it." in panel
    assert "Freed when a backward pass without retain_graph=True goes through it" in panel
    page.mouse("net")
    assert "What one call of this module's forward recorded." in page.panel()


def test_search_finds_modules_ops_and_lines_and_unfolds(show):
    page = show(recorded("residual_net"))
    page.keys("/", "layers.2 gelu")
    assert "Gelu" in page.js("document.getElementById('results').innerText")
    page.keys("\ue007")  # Enter
    assert "GeluBackward0" in page.panel()
    assert "net.layers.2" in page.panel()
    assert "layers.2" in page.titles()
    page.keys("\ue00c")  # Escape
    assert page.js("document.getElementById('search').value") == ""
    page.keys("/", "block layers.1")
    page.keys("\ue007")
    assert page.js("page.tree.group(page.painter.selected).path") == "net.layers.1"
    page.keys("\ue00c")
    page.keys("/", "nowhere to be found")
    assert "Nothing has that name" in page.js("document.getElementById('results').innerText")
    page.keys("\ue00c")


def test_the_keyboard_alone_will_do(show):
    page = show(recorded("chain"))
    page.keys("\ue00c")
    page.keys("\ue015")  # arrow down: the end of the computation first
    assert "SumBackward0" in page.panel()
    page.keys("\ue013")  # arrow up: its input
    assert "MulBackward0" in page.panel()
    page.keys("\ue013")
    assert "ExpBackward0" in page.panel()
    page.keys("2")
    assert page.js("page.painter.colourBy") == "bytes"
    page.keys("t")
    assert page.js("document.documentElement.dataset.theme") == "dark"
    page.keys("?")
    assert "show all" in page.js("document.getElementById('help').innerText")
    page.keys("\ue00c")


def test_the_canvas_is_painted_in_both_themes(show):
    page = show(recorded("gan"))
    light = page.driver.execute_script(COLOURS)
    page.js("clew.setTheme('dark')")
    assert light > 50
    assert page.driver.execute_script(COLOURS) > 50


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("nothing", "No graph leads to this tensor"),
        ("only_a_leaf", "leaf"),
        ("freed", "A backward pass has freed what it kept"),
        ("written_in_place", "Backward will raise"),
        ("double_backward", "The graph"),
        ("gan", "The graph"),
        ("recurrent", "The graph"),
        ("custom_function", "The graph"),
    ],
)
def test_every_kind_of_graph_has_a_page(show, name, text):
    page = show(recorded(name))
    assert text in page.js("document.body.innerText")


def test_a_write_in_place_names_both_lines(show):
    page = show(recorded("written_in_place"))
    page.mouse("Exp")
    assert re.search(r"written to in place by add_, .*graph_programs.py:\d+", page.panel())


def test_two_thousand_layers_stay_folded_and_fluid(show):
    layers = [m for _ in range(2000) for m in (clew.nn.Linear(2, 2), clew.nn.Tanh())]
    with clew.inspect.record():
        loss = clew.nn.Sequential(*layers)(clew.ones(1, 2)).sum()
    graph = clew.graph(loss)
    assert len(graph) > 10_000
    page = show(graph)
    assert len(page.titles()) < 60
    page.js("(page.tree.openUpTo(3000, true), page.relayout(), page.fit())")
    page.settle()
    assert 500 < len(page.titles()) < 3500
    page.js("page.zoom(40)")
    assert min(page.driver.execute_script(FRAME) for _ in range(5)) < 100  # milliseconds


def test_a_real_torch_model_has_a_page(show):
    torch = pytest.importorskip("torch")
    page = show(recorded("convolutional", torch))
    assert "torch" in page.js("page.tree.data.engine")
    page.button("unfold-all")
    assert {"Convolution", "NativeBatchNorm", "Relu"} <= set(page.titles())


def test_the_page_needs_no_network():
    text = html_of(recorded("chain"))
    assert not re.search(r"""(?:src|href)\s*=\s*["']?https?:""", text)
    assert "default-src 'none'" in text


def test_text_of_the_program_cannot_end_the_script():
    x = clew.ones(2, requires_grad=True)
    graph = clew.graph((x * 2).sum(), params={"</script><b>": x})
    assert "</script><b>" not in html_of(graph)
    assert data_of(graph)["nodes"][-1]["label"] == "</script><b>"


def test_a_notebook_gets_the_page_in_a_frame():
    shown = recorded("chain")._repr_html_()
    assert shown.startswith("<iframe srcdoc=")
    assert shown.count("<iframe") == 1

"""The doctor itself: it changes nothing, its outputs, its options."""

import json
import subprocess
import sys

import pytest

import clew
from clew.inspect.doctor import Doctor, Finding
from clew.inspect.doctor.report import print_findings, summary
from clew.inspect.doctor.sarif import as_sarif
from clew.site import SourceLine
from doctor.scripts import ENGINES, examine, examine_text
from engines import ENGINES as MODULES

engines = pytest.mark.parametrize("torch", MODULES.values(), ids=MODULES)

# -- it changes nothing


def train(torch, steps=6):
    """Losses of a small network with most that a training has; the seed is set."""
    nn = torch.nn
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(inplace=True), nn.Flatten(),
        nn.Dropout(0.2), nn.Linear(48, 4),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    losses = []
    for _ in range(steps):
        x, y = torch.randn(5, 1, 6, 6), torch.randint(0, 4, (5,))
        loss = nn.functional.cross_entropy(net(x), y)
        penalty = torch.autograd.grad(loss, net[0].weight, create_graph=True)[0].pow(2).sum()
        optimizer.zero_grad()
        (loss + penalty).backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses, [p.detach().clone() for p in net.parameters()]


@engines
def test_results_are_the_same(torch):
    plain, weights = train(torch)
    with Doctor(show=False) as doctor:
        watched, theirs = train(torch)
    assert watched == plain
    assert all(torch.equal(a, b) for a, b in zip(weights, theirs))
    assert not doctor.troubles
    assert not doctor.findings


@engines
def test_errors_are_those_of_the_engine(torch):
    def broken():
        h = torch.ones(3, requires_grad=True) * 2
        y = h**2
        h.add_(1)
        y.sum().backward()

    texts = []
    for watched in (False, True):
        with pytest.raises(RuntimeError) as info:
            if watched:
                with Doctor(show=False):
                    broken()
            else:
                broken()
        texts.append(str(info.value))
    assert texts[0] == texts[1]


@engines
def test_nothing_is_left_behind(torch):
    before = (
        torch.optim.Optimizer.zero_grad, torch.nn.Module.__setattr__, torch.nn.Module.parameters,
        torch.autograd.Function.apply, list(clew.observers.observers),
    )  # fmt: skip
    with Doctor(show=False):
        train(torch, 2)
    after = (
        torch.optim.Optimizer.zero_grad, torch.nn.Module.__setattr__, torch.nn.Module.parameters,
        torch.autograd.Function.apply, list(clew.observers.observers),
    )  # fmt: skip
    assert before == after
    y = torch.ones(3, requires_grad=True).exp()
    y.sum().backward()


@engines
def test_graphs_die_as_without_it(torch):
    import gc
    import weakref

    gc.disable()
    try:
        with Doctor(show=False):
            x = torch.ones(3, requires_grad=True)
            y = (x * 2).exp()
            seen = weakref.ref(y)
            y.sum().backward()
            del y
            assert seen() is None
    finally:
        gc.enable()


@engines
def test_a_long_chain_is_watched(torch):
    with Doctor(show=False) as doctor:
        y = torch.ones(1, requires_grad=True)
        for _ in range(5000):
            y = y * 1.0
        y.backward()
        del y
    assert not doctor.troubles


def test_a_rule_that_fails_does_not_break_the_program():
    with Doctor("clew", show=False) as doctor:
        patient = doctor._patients[0]
        patient.stream._heard.clear()
        patient.stream._heard["on_backward"] = [lambda *_: 1 / 0]
        clew.ones(1, requires_grad=True).exp().backward()
    assert "ZeroDivisionError" in doctor.troubles[0]


# -- the running example: the GAN


GAN = """
G, D = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4)), nn.Sequential(
    nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer_g, optimizer_d = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
for _ in range(4):
    fake = G(torch.randn(5, 3))
    loss_d = D(fake.detach()).mean() - D(torch.randn(5, 4)).mean()
    optimizer_d.zero_grad()
    loss_d.backward(retain_graph=True)
    optimizer_d.step()
    loss_g = -D(fake).mean()
    optimizer_g.zero_grad()
    loss_g.backward()
    optimizer_g.step()
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_gan_with_retain_graph(engine):
    (finding,) = examine_text(GAN, engine).findings
    assert finding["rule"] == "R05"
    assert finding["line"] == 13  # loss_d.backward(retain_graph=True)
    assert finding["later_unpacks"] == 0
    assert finding["calls"] == 4
    # Inputs of both passes through D and what tanh gave: 2 * (5 * 4 + 5 * 8) numbers.
    assert finding["held_bytes"] == 2 * (5 * 4 + 5 * 8) * 4
    assert [at["line"] for at in finding["lines"]] == [13, 11]


# -- outputs


def finding():
    place = SourceLine("train.py", 3, "", "loss.backward(retain_graph=True)")
    return Finding(
        "R05", "warning", "It is needless.", "Leave it out.", place,
        [("keeps the graph", place)], {"held_bytes": 12},
    )  # fmt: skip


def test_as_dict():
    assert finding().as_dict() == {
        "rule": "R05",
        "severity": "warning",
        "file": "train.py",
        "line": 3,
        "message": "It is needless. Leave it out.",
        "cure": "Leave it out.",
        "lines": [
            {
                "role": "keeps the graph",
                "file": "train.py",
                "line": 3,
                "text": "loss.backward(retain_graph=True)",
            }
        ],
        "held_bytes": 12,
    }


def test_sarif():
    log = as_sarif([finding()], "1.0")
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    assert run["tool"]["driver"]["rules"][0]["id"] == "R05"
    (result,) = run["results"]
    assert result["ruleId"] == "R05"
    assert result["level"] == "warning"
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "train.py"
    assert place["region"]["startLine"] == 3


def test_printed(capsys):
    print_findings([finding()], file=sys.stdout, width=60)
    shown = capsys.readouterr().out
    assert "warning R05 needless retain_graph  train.py:3" in shown
    assert "3 │ loss.backward(retain_graph=True)" in shown
    assert "→ Leave it out." in shown
    assert shown.endswith("clew doctor: 1 warning\n")
    print_findings([], file=sys.stdout)
    assert "nothing to report" in capsys.readouterr().out
    assert summary([finding(), finding()]) == "2 warnings"


def test_findings_are_printed_at_exit(capsys):
    with clew.doctor():
        x = clew.ones(2, requires_grad=True)
        for _ in range(3):
            (x * x).sum().backward(retain_graph=True)
    assert "R05" in capsys.readouterr().err


# -- the command


def command(*words):
    line = [sys.executable, "-m", "clew", "doctor", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, timeout=120)


def test_command(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, torch\nprint('hello', sys.argv[1:])\n"
        "p = torch.rand(3, requires_grad=True) * 0.01\ntorch.optim.SGD([p], lr=0.1)\n"
    )
    sarif = tmp_path / "out.sarif"
    done = command(script, "--lr", "1", "--json", "--sarif", sarif)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["findings"][0]["rule"] == "R18"
    assert report["findings"][0]["line"] == 4
    assert "hello ['--lr', '1']" in done.stderr
    assert "can't optimize a non-leaf Tensor" in done.stderr
    assert json.loads(sarif.read_text())["runs"][0]["results"][0]["ruleId"] == "R18"


def test_status_of_a_clean_script_and_of_none(tmp_path):
    script = tmp_path / "fine.py"
    script.write_text("import torch\nprint(torch.ones(2).sum().item())\n")
    report = examine(script, "clew")
    assert (report.status, report.findings) == (0, [])
    done = command(tmp_path / "missing.py")
    assert done.returncode == 2
    assert "can't open file" in done.stderr


def test_a_crash_without_a_rule_keeps_its_status(tmp_path):
    script = tmp_path / "broken.py"
    script.write_text("import torch\nraise SystemExit(3)\n")
    assert examine(script, "clew").status == 3


# -- options


def test_bptt_length_is_believed():
    program = """
        w = torch.randn(3, requires_grad=True)
        state = torch.zeros(3)
        for i in range(6):
            state = (state * w).tanh() + w
            state.sum().backward(retain_graph=True)
    """
    assert "R06" in examine_text(program, "clew").rules
    assert "R06" not in examine_text(program, "clew", "--bptt", "8").rules


@pytest.mark.parametrize("engine", ENGINES)
def test_checksums_find_writes_through_numpy(engine):
    program = """
        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        y.detach().numpy()[0] = 7.0
        y.sum().backward()
    """
    assert not examine_text(program, engine).rules
    assert examine_text(program, engine, "--checksums").rules == {"R13"}


def test_mark_ends_an_iteration():
    x = clew.ones(2, requires_grad=True)
    kept = []
    with clew.doctor(show=False) as doctor:
        for _ in range(6):
            kept.append((x * 2).sum())
            doctor.mark()
    assert "R01" in {f.rule for f in doctor.findings}


def test_unknown_engine():
    with pytest.raises(ValueError, match="engine is 'clew', 'torch' or None"):
        Doctor("jax")


def test_clew_starts_without_the_doctor():
    code = "import clew, sys; print([m for m in sys.modules if 'doctor' in m or 'watch' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "[]\n"

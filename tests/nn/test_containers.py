"""Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict.  Oracle: PyTorch."""

from collections import OrderedDict

import pytest

import clew
from clew import nn as clew_nn
from twins import assert_same

SEQUENTIAL = [
    "s",
    "s[0], s[-1], s[1:], s[::2]",
    "s[5]",
    "s['a']",
    "len(s), [type(x).__name__ for x in s]",
    "s.append(nn.Tanh())",
    "s.extend([nn.Tanh(), nn.ReLU()])",
    "s.insert(0, nn.Tanh())",
    "s.insert(-1, nn.Tanh())",
    "s.insert(4, nn.Tanh())",
    "s.pop(1)",
    "s.pop(-1), s",
    "s.pop(7)",
    "s + nn.Sequential(nn.Tanh())",
    "s + [nn.Tanh()]",
    "s * 2",
    "2 * s",
    "nn.Sequential()",
    "nn.Sequential(nn.ReLU(), 3)",
    "nn.Sequential(OrderedDict([('a', nn.ReLU()), ('b', nn.Sequential(nn.Tanh()))]))",
    "nn.Sequential(OrderedDict([('a', nn.ReLU()), ('b', nn.Tanh())]))[1:]",
    "nn.Sequential(OrderedDict([('a', nn.ReLU()), ('b', nn.Tanh())])).a",
    "s(m.ones(2, 3)).shape",
]
LISTS = [
    "l",
    "nn.ModuleList()",
    "nn.ModuleList([nn.Linear(1, 1) for _ in range(3)])",
    "nn.ModuleList([nn.Linear(1, 1), nn.ReLU(), nn.ReLU()])",
    "nn.ModuleList([nn.Sequential(nn.ReLU()), nn.Sequential(nn.ReLU())])",
    "l[0], l[-1], l[1:]",
    "l[9]",
    "len(l), list(l)",
    "l.append(nn.Tanh())",
    "l.extend([nn.Tanh()])",
    "l.extend(3)",
    "l.insert(1, nn.Tanh()) or l",
    "l.pop(0), l",
    "l + [nn.Tanh()]",
    "l(1)",
    "list(dict(l.named_parameters()))",
]
DICTS = [
    "d",
    "d['a'], 'a' in d, 'z' in d, len(d), list(d)",
    "list(d.keys()), list(d.values()), list(d.items())",
    "d['z']",
    "d.pop('a'), d",
    "d.pop('z')",
    "d.update({'c': nn.Tanh()}) or d",
    "d.update([('c', nn.Tanh())]) or d",
    "d.update([('c',)]) or d",
    "d.update([3]) or d",
    "d.update(3)",
    "d.update(nn.ModuleDict({'q': nn.ReLU()})) or d",
    "d.clear() or d",
    "nn.ModuleDict({'a.b': nn.ReLU()})",
    "nn.ModuleDict({'keys': nn.ReLU()})",
]
PARAMETERS = [
    "p",
    "p[0], p[-1], p[5:]",
    "p[9]",
    "len(p), [type(x).__name__ for x in p]",
    "p.append(m.ones(2, 3))",
    "p.extend(m.ones(2))",
    "p.extend([1, 'text'])",
    "nn.ParameterList([m.ones(2, 3), 'text', m.zeros(())])",
    "nn.ParameterList()",
    "p[0:1]",
    "p(1)",
    "[k for k, _ in p.named_parameters()]",
    "q",
    "q['a'], 'a' in q, len(q), list(q), list(reversed(q))",
    "q['zz']",
    "q[3]",
    "list(q.keys()), [k for k, _ in q.items()], [v.shape for v in q.values()]",
    "q.pop('a').shape, q",
    "q.popitem()[0], q",
    "nn.ParameterDict().popitem()",
    "q.get('zz'), q.get('zz', 3), q.get('b').shape",
    "q.setdefault('n', m.ones(1)), q",
    "q.setdefault('a').shape",
    "q.update({'z': m.ones(1), 'c': m.ones(2)}) or q",
    "q.update(OrderedDict([('z', m.ones(1)), ('c', 'text')])) or q",
    "q.update([('z', m.ones(1))]) or q",
    "q.update([3])",
    "q.update([(1, 2, 3)])",
    "q.update(3)",
    "q.copy()",
    "q.fromkeys(['u', 'v'], m.ones(1))",
    "q | nn.ParameterDict({'e': m.ones(1)})",
    "nn.ParameterDict({'e': m.ones(1)}) | q",
    "q.clear() or q",
    "q(1)",
]


def members(m):
    nn = m.nn
    return {
        "m": m,
        "nn": nn,
        "OrderedDict": OrderedDict,
        "s": nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)),
        "l": nn.ModuleList([nn.Linear(3, 4), nn.ReLU()]),
        "d": nn.ModuleDict({"a": nn.Linear(1, 2), "b": nn.ReLU()}),
        "p": nn.ParameterList([m.ones(2, 3), m.zeros(4)]),
        "q": nn.ParameterDict({"b": m.ones(2, 3), "a": m.zeros(4)}),
    }


def shown(value):
    if isinstance(value, tuple):
        return [shown(v) for v in value]
    return repr(value)


@pytest.mark.parametrize("expression", SEQUENTIAL + LISTS + DICTS + PARAMETERS)
def test_expression(expression):
    assert_same(lambda m: shown(eval(expression, members(m))))


@pytest.mark.parametrize(
    "statement",
    [
        "s[0] = nn.Tanh()",
        "s[9] = nn.Tanh()",
        "s[-1] = nn.Tanh()",
        "s[0] = 3",
        "del s[0]",
        "del s[0:2]",
        "del s[9]",
        "s += nn.Sequential(nn.Tanh())",
        "s += [nn.Tanh()]",
        "s *= 2",
        "l[0] = nn.Tanh()",
        "del l[0]",
        "del l[:1]",
        "l += [nn.Tanh()]",
        "d['a'] = nn.Tanh()",
        "d['new'] = nn.Tanh()",
        "d['new'] = 3",
        "del d['a']",
        "del d['z']",
        "p[0] = m.ones(7)",
        "p[0] = 'text'",
        "p += [m.ones(1)]",
        "q['b'] = m.ones(9)",
        "q['new'] = 'text'",
        "del q['b']",
        "del q['zz']",
        "q |= nn.ParameterDict({'e': m.ones(1)})",
    ],
)
def test_statement(statement):
    def run(m):
        names = members(m)
        exec(statement, names)
        return [repr(names[k]) for k in "sldpq"], list(names["s"].state_dict())

    assert_same(run)


def test_a_module_list_shares_what_its_slice_holds():
    modules = clew_nn.ModuleList([clew_nn.Linear(1, 1), clew_nn.ReLU()])
    assert modules[:1][0] is modules[0]


def test_iteration_while_calling_uses_the_modules_of_now():
    calls = []

    class Note(clew_nn.Module):
        def forward(self, x):
            calls.append(x.shape)
            return x

    clew_nn.Sequential(Note(), Note())(clew.ones(2))
    assert len(calls) == 2


def test_container_is_deprecated():
    with pytest.warns(FutureWarning, match="`nn.Container` is deprecated"):
        assert repr(clew_nn.Container(a=clew_nn.ReLU())) == "Container(\n  (a): ReLU()\n)"

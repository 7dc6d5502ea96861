"""clew as it is installed, its modules run as Python."""

import os
from typing import Any

from workloads.step import Step

from adapters.named import Named


class Clew(Named):
    """clew's graphs tell what they keep; saved-tensor hooks are given whole tensors instead."""

    def saved_bytes(self, step: Step) -> int | None:
        if step.forward is None:
            return None
        from clew.storage import root

        parameters: Any = step.model.parameters() if step.model is not None else ()
        apart = {id(root(p.detach().numpy())) for p in parameters}
        loss = step.forward()
        kept = [saved for node in self.engine.graph(loss).nodes for saved in node.saved]
        return sum({s.storage: s.storage_nbytes for s in kept if s.storage not in apart}.values())


def load(threads: int, compiled: str = "0") -> Named:
    """The engine; `compiled` says whether it uses what ``clew compile`` has made."""
    os.environ["CLEW_COMPILED"] = compiled
    import clew

    clew.set_num_threads(threads)
    return Clew(clew)

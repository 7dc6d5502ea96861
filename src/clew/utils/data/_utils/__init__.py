"""The parts of the DataLoader: collating, fetching, worker processes."""

from clew.utils.data._utils import collate as collate
from clew.utils.data._utils import fetch as fetch
from clew.utils.data._utils import worker as worker

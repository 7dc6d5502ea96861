"""`python -m clew` is the `clew` command.  Imports only `clew.cli`."""

import sys

from clew.cli import main

if __name__ == "__main__":
    sys.exit(main())

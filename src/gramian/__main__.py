"""``python -m gramian``: the command."""

import sys

from gramian.command import main

if __name__ == "__main__":
    sys.exit(main())

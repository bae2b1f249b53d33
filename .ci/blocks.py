"""Prints the Nth shell block of a Markdown file: blocks.py FILE N."""

import re
import sys
from pathlib import Path

file, number = sys.argv[1:]
blocks = re.findall(r"^```sh\n(.*?)^```$", Path(file).read_text("utf-8"), re.MULTILINE | re.DOTALL)
print(blocks[int(number) - 1], end="")

"""Looks constraints.txt up for known vulnerabilities with pip-audit, in an environment of its own.

Ends with 0 if there are none, and with a sentence where the service of vulnerabilities, pypi.org, gives no answer.
"""

import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.request import urlopen

CONSTRAINTS = Path(__file__).resolve().parents[2] / "constraints.txt"
PINNED = [line.strip().split("==") for line in CONSTRAINTS.read_text(encoding="utf-8").splitlines() if "==" in line]
SERVICE = "https://pypi.org/pypi/{}/{}/json".format(*PINNED[0])  # what pip-audit asks for each of them

try:
    with urlopen(SERVICE, timeout=10) as answer:
        answer.read()
except OSError as error:
    print(f"pip-audit is skipped: {SERVICE} gives no answer ({error}).")
    sys.exit(0)
with TemporaryDirectory() as folder:
    venv.create(folder, with_pip=True)
    python = str(Path(folder, "bin", "python"))
    install = [python, "-m", "pip", "install", "--disable-pip-version-check", "-q", "pip-audit>=2.10,<3"]
    subprocess.run(install, check=True)
    audit = [
        python,
        "-m",
        "pip_audit",
        "-r",
        str(CONSTRAINTS),
        "--no-deps",
        "--disable-pip",
        "--progress-spinner",
        "off",
    ]
    sys.exit(subprocess.run(audit).returncode)

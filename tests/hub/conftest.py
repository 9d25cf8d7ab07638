"""A Hub of one's own for each test, and clients of it: this process, and fresh ones."""

import json
import os
import subprocess
import sys

import pytest
from huggingface_hub import constants, hf_api
from huggingface_hub.utils import _detect_agent
from loopback import TOKEN, LoopbackHub


@pytest.fixture
def hub():
    """A [`LoopbackHub`]; at its end nothing was asked for that it does not have."""
    with LoopbackHub() as hub:
        yield hub
    assert [(request.method, request.path) for request in hub.refused] == []


@pytest.fixture
def online(hub, tmp_path, monkeypatch):
    """This process is a signed-in client of the Hub, with an empty cache.

    huggingface_hub reads its environment when it is imported, so what it read is replaced; a fresh process that reads
    the environment is `run_python`.
    """
    home = tmp_path / "hf home"
    for name, value in {
        "ENDPOINT": hub.url,
        "HUGGINGFACE_CO_URL_TEMPLATE": hub.url + "/{repo_id}/resolve/{revision}/{filename}",
        "HF_HUB_OFFLINE": False,
        "HF_HUB_DISABLE_XET": True,
        "HF_HUB_CACHE": str(home / "hub"),
        "HF_TOKEN_PATH": str(home / "token"),
        "HF_STORED_TOKENS_PATH": str(home / "stored_tokens"),
    }.items():
        monkeypatch.setattr(constants, name, value)
    monkeypatch.setattr(hf_api.api, "endpoint", hub.url)
    monkeypatch.setattr("transformers.utils.hub._hf_api", None)
    monkeypatch.setattr(_detect_agent, "_registry", {})
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    return hub


@pytest.fixture
def run_python(hub, tmp_path):
    """Run code in a fresh process that knows the Hub by its environment alone and can reach nothing else.

    The code finds `arguments`, and what it assigns to `result` is returned; both pass as JSON.
    """

    def run(code: str, *arguments, token: str | None = TOKEN, **environment: str):
        settings = {
            "HF_ENDPOINT": hub.url,
            "HF_HOME": str(tmp_path / "fresh home"),
            "HF_HUB_DISABLE_XET": "1",
            "TOKENIZERS_PARALLELISM": "false",
            **({"HF_TOKEN": token} if token else {}),
            **environment,
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "TRANSFORMERS_"))}
        finished = subprocess.run(
            [sys.executable, "-c", _ONLY_LOOPBACK + code + _RESULT, json.dumps(arguments)],
            env=kept | settings,
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert finished.returncode == 0, finished.stdout[-1000:] + finished.stderr[-4000:]
        return json.loads(finished.stdout.splitlines()[-1])

    return run


_ONLY_LOOPBACK = """
import json, os, sys
def only_loopback(event, arguments):
    if event == "socket.connect":
        address = arguments[1]
        if isinstance(address, tuple) and address[0] not in ("127.0.0.1", "::1"):
            os.write(2, f"tried to reach {address}".encode())
            os._exit(99)
    elif event == "socket.getaddrinfo" and arguments[0] not in ("127.0.0.1", "localhost", b"localhost"):
        os.write(2, f"tried to look up {arguments[0]}".encode())
        os._exit(99)
sys.addaudithook(only_loopback)
arguments, result = json.loads(sys.argv[1]), None
"""
_RESULT = "\nprint()\nprint(json.dumps(result))\n"

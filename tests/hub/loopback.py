"""A small Hub on 127.0.0.1, so that pushing and loading are tested against what goes over the wire.

It answers what huggingface_hub needs for repositories, commits, pull requests, revisions, files in Git or LFS, and
downloads; it keeps everything in memory and records each request with its bytes. Whatever it does not know it refuses
with 404, and remembers. Files of LFS are served from `localhost`, another host than 127.0.0.1, as the Hub's are from
a CDN, which must not see tokens.
"""

import base64
import json
import os
import re
import socket
import threading
from dataclasses import dataclass, field
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import yaml

USER, TOKEN = "reader", "hf_loopbackSecret"
LARGE = (".safetensors", ".bin", ".pt", ".parquet")
_ATTRIBUTES = "".join(f"*{suffix} filter=lfs diff=lfs merge=lfs -text\n" for suffix in LARGE).encode()


@dataclass
class Request:
    """A request as it arrived, and the status it was answered with (0: the connection was cut)."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes
    status: int = 0


@dataclass(frozen=True)
class File:
    data: bytes
    lfs: bool = False

    @property
    def git_oid(self) -> str:
        data = f"version https://git-lfs\noid {sha256(self.data).hexdigest()}\n".encode() if self.lfs else self.data
        return sha1(b"blob %d\0" % len(data) + data).hexdigest()

    @property
    def etag(self) -> str:
        return sha256(self.data).hexdigest() if self.lfs else self.git_oid


@dataclass(frozen=True)
class Commit:
    sha: str
    parent: str | None
    message: str
    description: str
    files: dict[str, File]


@dataclass
class Repo:
    kind: str  # "models" or "spaces"
    name: str
    private: bool
    sdk: str | None = None
    refs: dict[str, str] = field(default_factory=dict)  # branches and refs/pr/n -> commit
    commits: dict[str, Commit] = field(default_factory=dict)

    def add(self, ref: str, files: dict[str, File], message: str, description: str = "", parent=None) -> Commit:
        content = sorted((path, file.etag) for path, file in files.items())
        sha = sha1(repr((self.name, len(self.commits), parent, message, content)).encode()).hexdigest()
        self.commits[sha] = Commit(sha, parent, message, description, files)
        self.refs[ref] = sha
        return self.commits[sha]

    def at(self, revision: str = "main") -> Commit:
        try:
            return self.commits[self.refs.get(revision, revision)]
        except KeyError:
            raise Refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound") from None

    def history(self, revision: str = "main") -> list[Commit]:
        commit, found = self.at(revision), []
        while commit:
            found.append(commit)
            commit = self.commits.get(commit.parent)
        return found


class Refusal(Exception):
    def __init__(self, status: int, message: str, code: str | None = None):
        super().__init__(message)
        self.status, self.code = status, code


class Answer:
    """Status, headers and body of a response; a body that is not bytes is sent as JSON."""

    def __init__(self, body=b"", status: int = 200, **headers: str):
        self.status, self.headers = status, {name.replace("_", "-"): value for name, value in headers.items()}
        self.body = body if isinstance(body, bytes) else json.dumps(body).encode()


class LoopbackHub:
    """The server; `with LoopbackHub() as hub` runs it in a thread.

    Attributes:
        url: what `HF_ENDPOINT` must be.
        requests: all requests, in the order in which they were read.
        refused: those for which there is no endpoint here.
        repos: by "models/user/name".
        part_size: LFS files of more bytes are uploaded in parts of so many.
    """

    def __init__(self, part_size: int = 10_000_000):
        self.part_size = part_size
        self.requests: list[Request] = []
        self.refused: list[Request] = []
        self.repos: dict[str, Repo] = {}
        self.lfs: dict[str, bytes] = {}  # by SHA-256
        self._parts: dict[str, dict[int, bytes]] = {}
        self._cuts: list[tuple[str, str, int]] = []
        self._lock = threading.RLock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": self}))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self.storage = f"http://localhost:{self._server.server_port}"

    def __enter__(self) -> "LoopbackHub":
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def cut(self, method: str, path: str, after: int) -> None:
        """Cut the connection once, `after` bytes of the body of the next request whose path contains `path`: the bytes
        of a download that are sent, or of an upload that are read."""
        self._cuts.append((method, path, after))

    def cut_for(self, method: str, path: str) -> int | None:
        with self._lock:
            for cut in self._cuts:
                if cut[0] == method and cut[1] in path:
                    self._cuts.remove(cut)
                    return cut[2]
        return None

    def sent(self, method: str, part: str) -> list[Request]:
        """Recorded requests of a method whose path contains `part`."""
        return [request for request in self.requests if request.method == method and part in request.path]

    def files(self, name: str, revision: str = "main", kind: str = "models") -> dict[str, bytes]:
        """The files of a repository, without the .gitattributes that the Hub itself adds."""
        files = self.repos[f"{kind}/{name}"].at(revision).files
        return {path: file.data for path, file in files.items() if path != ".gitattributes"}

    def answer(self, request: Request) -> Answer:
        with self._lock:
            self.requests.append(request)
            try:
                for method, pattern, endpoint in _ENDPOINTS:
                    match = pattern.fullmatch(request.path)
                    if match and request.method in method.split("|"):
                        found = {name: unquote(value or "") for name, value in match.groupdict().items()}
                        return endpoint(self, request, **found)
                self.refused.append(request)
                raise Refusal(404, f"The loopback Hub has no {request.method} {request.path}")
            except Refusal as refusal:
                headers = {"X_Error_Message": str(refusal)} | ({"X_Error_Code": refusal.code} if refusal.code else {})
                return Answer({"error": str(refusal)}, refusal.status, **headers)

    # Who may do what

    def _signed_in(self, request: Request) -> bool:
        return request.headers.get("authorization") == f"Bearer {TOKEN}"

    def _need_token(self, request: Request) -> None:
        if not self._signed_in(request):
            raise Refusal(401, "Invalid username or password.")

    def _repo(self, request: Request, kind: str, name: str) -> Repo:
        repo = self.repos.get(f"{kind or 'models'}/{name}")
        if repo is None or (repo.private and not self._signed_in(request)):
            raise Refusal(404 if self._signed_in(request) else 401, "Repository not found", "RepoNotFound")
        return repo

    # Endpoints

    def _agents(self, request: Request) -> Answer:
        return Answer({})  # huggingface_hub asks once a day for the names of agents to report in its user agent

    def _create(self, request: Request) -> Answer:
        self._need_token(request)
        asked = json.loads(request.body)
        kind, name = f"{asked.get('type', 'model')}s", f"{asked.get('organization') or USER}/{asked['name']}"
        answer = {"url": f"{self.url}/{'' if kind == 'models' else kind + '/'}{name}", "name": name}
        if f"{kind}/{name}" in self.repos:
            return Answer(answer | {"error": "You already created this repo"}, 409)
        repo = Repo(kind, name, asked.get("visibility") == "private", asked.get("sdk"))
        repo.add("main", {".gitattributes": File(_ATTRIBUTES)}, "initial commit")
        self.repos[f"{kind}/{name}"] = repo
        return Answer(answer)

    def _validate_yaml(self, request: Request) -> Answer:
        try:
            _front_matter(json.loads(request.body)["content"])
        except (yaml.YAMLError, ValueError) as error:
            return Answer({"errors": [{"message": str(error)}], "warnings": []}, 400)
        return Answer({"errors": [], "warnings": []})

    def _info(self, request: Request, kind: str, name: str, revision: str = "") -> Answer:
        repo = self._repo(request, kind, name)
        commit = repo.at(revision or "main")
        card = _front_matter(commit.files["README.md"].data.decode()) if "README.md" in commit.files else {}
        return Answer(
            {
                "id": name,
                "modelId": name,
                "author": name.split("/")[0],
                "sha": commit.sha,
                "private": repo.private,
                "tags": card.get("tags") or [],
                "pipeline_tag": card.get("pipeline_tag"),
                "library_name": card.get("library_name"),
                "cardData": card,
                "sdk": repo.sdk,
                "siblings": [
                    {"rfilename": path, "size": len(file.data), "blobId": file.git_oid}
                    for path, file in sorted(commit.files.items())
                ],
            }
        )

    def _tree(self, request: Request, kind: str, name: str, revision: str, folder: str) -> Answer:
        files = self._repo(request, kind, name).at(revision).files
        prefix = f"{folder}/" if folder else ""
        inside = {path: file for path, file in sorted(files.items()) if path.startswith(prefix)}
        if not inside:
            raise Refusal(404, f"{folder} does not exist on {revision}", "EntryNotFound")
        recursive = request.query.get("recursive", "").lower() == "true"
        folders = {prefix + path[len(prefix) :].split("/")[0] for path in inside if "/" in path[len(prefix) :]}
        entries = [
            {"type": "directory", "path": path, "oid": sha1(path.encode()).hexdigest(), "size": 0} for path in folders
        ]
        entries += [_entry(path, file) for path, file in inside.items() if recursive or "/" not in path[len(prefix) :]]
        return Answer(entries)

    def _refs(self, request: Request, kind: str, name: str) -> Answer:
        refs = self._repo(request, kind, name).refs
        branches = [
            {"name": ref, "ref": f"refs/heads/{ref}", "targetCommit": sha}
            for ref, sha in refs.items()
            if not ref.startswith("refs/")
        ]
        pulls = [{"name": ref, "ref": ref, "targetCommit": sha} for ref, sha in refs.items() if ref.startswith("refs/")]
        return Answer({"branches": branches, "tags": [], "converts": [], "pullRequests": pulls})

    def _branch(self, request: Request, kind: str, name: str, revision: str) -> Answer:
        self._need_token(request)
        repo = self._repo(request, kind, name)
        if revision in repo.refs:
            raise Refusal(409, f"Reference already exists: {revision}")
        start = json.loads(request.body or b"{}").get("startingPoint", "main")
        repo.refs[revision] = repo.at(start).sha
        return Answer({})

    def _preupload(self, request: Request, kind: str, name: str, revision: str) -> Answer:
        self._need_token(request)
        files = self._repo(request, kind, name).at(revision).files
        answers = []
        for asked in json.loads(request.body)["files"]:
            path = asked["path"]
            mode = "lfs" if path.endswith(LARGE) or b"\0" in base64.b64decode(asked["sample"]) else "regular"
            oid = files[path].etag if path in files else None
            answers.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        return Answer({"files": answers})

    def _commit(self, request: Request, kind: str, name: str, revision: str) -> Answer:
        self._need_token(request)
        repo = self._repo(request, kind, name)
        before = repo.at(revision)
        header, files = {}, dict(before.files)
        for line in request.body.splitlines():
            item = json.loads(line)
            value = item["value"]
            if item["key"] == "header":
                header = value
            elif item["key"] == "file":
                files[value["path"]] = File(base64.b64decode(value["content"]))
            elif item["key"] == "lfsFile":
                if value["oid"] not in self.lfs:
                    raise Refusal(400, f"{value['path']} points to LFS file {value['oid']}, which was not uploaded")
                files[value["path"]] = File(self.lfs[value["oid"]], lfs=True)
            else:
                raise Refusal(400, f"The loopback Hub does not know the operation {item['key']} on {value['path']}")
        if header.get("parentCommit", before.sha) != before.sha:
            raise Refusal(412, "A commit has happened since. Please refresh and try again.")
        ref, pull = revision, {}
        if request.query.get("create_pr") == "1":
            number = 1 + sum(ref.startswith("refs/pr/") for ref in repo.refs)
            ref, pull = f"refs/pr/{number}", {"pullRequestUrl": f"{self.url}/{name}/discussions/{number}"}
        commit = repo.add(ref, files, header["summary"], header.get("description", ""), before.sha)
        prefix = "" if kind == "models" else f"{kind}/"
        url = f"{self.url}/{prefix}{name}/commit/{commit.sha}"
        return Answer({"success": True, "commitOid": commit.sha, "commitUrl": url, "hookOutput": "", **pull})

    def _lfs_batch(self, request: Request, kind: str, name: str) -> Answer:
        self._need_token(request)
        self._repo(request, kind, name)
        objects = []
        for asked in json.loads(request.body)["objects"]:
            oid, size = asked["oid"], asked["size"]
            answer = {"oid": oid, "size": size}
            if oid not in self.lfs:
                upload = {"href": f"{self.storage}/lfs/{oid}"}
                if size > self.part_size:
                    parts = range(1, -(-size // self.part_size) + 1)
                    urls = {str(part): f"{self.storage}/lfs/{oid}/{part}" for part in parts}
                    upload = {"href": f"{self.url}/lfs/{oid}", "header": {"chunk_size": str(self.part_size), **urls}}
                answer["actions"] = {"upload": upload, "verify": {"href": f"{self.url}/lfs/{oid}/verify"}}
            objects.append(answer)
        return Answer({"transfer": "basic", "objects": objects})

    def _lfs_put(self, request: Request, oid: str, part: str) -> Answer:
        if part:
            self._parts.setdefault(oid, {})[int(part)] = request.body
            return Answer(ETag=f'"{sha256(request.body).hexdigest()}"')
        return self._store(oid, request.body)

    def _lfs_complete(self, request: Request, oid: str) -> Answer:
        asked = json.loads(request.body)["parts"]
        parts = self._parts.pop(oid, {})
        found = [{"partNumber": n, "etag": f'"{sha256(data).hexdigest()}"'} for n, data in sorted(parts.items())]
        if asked != found:
            raise Refusal(400, f"The parts {asked} were announced, and {found} uploaded")
        return self._store(oid, b"".join(data for _, data in sorted(parts.items())))

    def _store(self, oid: str, data: bytes) -> Answer:
        if sha256(data).hexdigest() != oid:
            raise Refusal(400, f"The {len(data)} bytes uploaded for {oid} are others")
        self.lfs[oid] = data
        return Answer()

    def _lfs_verify(self, request: Request, oid: str) -> Answer:
        if len(self.lfs.get(oid, b"")) != json.loads(request.body)["size"]:
            raise Refusal(404, f"LFS file {oid} is not complete")
        return Answer()

    def _resolve(self, request: Request, kind: str, name: str, revision: str, path: str) -> Answer:
        commit = self._repo(request, kind, name).at(revision)
        if path not in commit.files:
            return Answer({"error": "Entry not found"}, 404, X_Error_Code="EntryNotFound", X_Repo_Commit=commit.sha)
        file = commit.files[path]
        if file.lfs:
            linked = {"X_Linked_Etag": f'"{file.etag}"', "X_Linked_Size": str(len(file.data))}
            location = f"{self.storage}/cdn/{file.etag}"
            return Answer(b"", 302, X_Repo_Commit=commit.sha, Location=location, **linked)
        return _part(file.data, request, ETag=f'"{file.etag}"', X_Repo_Commit=commit.sha)

    def _cdn(self, request: Request, oid: str) -> Answer:
        return _part(self.lfs[oid], request, ETag=f'"{oid}"')


def assert_nothing_private(hub: LoopbackHub, *private: str) -> None:
    """No file in any commit, and no other byte that was sent, holds what is nobody's business."""
    everything = [
        (f"{repo.name}: {path}", file.data)
        for repo in hub.repos.values()
        for commit in repo.commits.values()
        for path, file in commit.files.items()
    ] + [(f"{request.method} {request.path}", request.body) for request in hub.requests]
    for name, data in everything:
        for secret in (TOKEN, str(Path.home()) + os.sep, os.getcwd(), *private):
            assert secret.encode() not in data, f"{secret} is in {name}"


_REPO = r"(?P<kind>models|spaces)/(?P<name>[^/]+/[^/]+)"
_PAGE = r"/(?:(?P<kind>spaces)/)?(?P<name>[^/]+/[^/]+)"
_REVISION = r"(?P<revision>(?:refs/pr/\d+)|[^/]+)"
_ENDPOINTS = [
    (methods, re.compile(pattern), endpoint)
    for methods, pattern, endpoint in [
        ("GET", "/api/agent-harnesses", LoopbackHub._agents),
        ("POST", "/api/repos/create", LoopbackHub._create),
        ("POST", "/api/validate-yaml", LoopbackHub._validate_yaml),
        ("GET", f"/api/{_REPO}", LoopbackHub._info),
        ("GET", "/api/(?P<kind>models)/(?P<name>[^/]+)", LoopbackHub._info),  # without a user: there is none
        ("GET", f"/api/{_REPO}/revision/{_REVISION}", LoopbackHub._info),
        ("GET", f"/api/{_REPO}/tree/{_REVISION}(?:/(?P<folder>.+))?", LoopbackHub._tree),
        ("GET", f"/api/{_REPO}/refs", LoopbackHub._refs),
        ("POST", f"/api/{_REPO}/branch/{_REVISION}", LoopbackHub._branch),
        ("POST", f"/api/{_REPO}/preupload/{_REVISION}", LoopbackHub._preupload),
        ("POST", f"/api/{_REPO}/commit/{_REVISION}", LoopbackHub._commit),
        ("POST", rf"{_PAGE}\.git/info/lfs/objects/batch", LoopbackHub._lfs_batch),
        ("PUT", r"/lfs/(?P<oid>\w+)(?:/(?P<part>\d+))?", LoopbackHub._lfs_put),
        ("POST", r"/lfs/(?P<oid>\w+)", LoopbackHub._lfs_complete),
        ("POST", r"/lfs/(?P<oid>\w+)/verify", LoopbackHub._lfs_verify),
        ("GET|HEAD", f"{_PAGE}/resolve/{_REVISION}/(?P<path>.+)", LoopbackHub._resolve),
        ("GET|HEAD", r"/cdn/(?P<oid>\w+)", LoopbackHub._cdn),
    ]
]


def _front_matter(card: str) -> dict:
    match = re.match(r"---\r?\n(.*?)\r?\n---", card, re.DOTALL)
    found = yaml.safe_load(match.group(1)) if match else {}
    if not isinstance(found or {}, dict):
        raise ValueError("The metadata of a card must be a mapping")
    return found or {}


def _entry(path: str, file: File) -> dict:
    entry = {"type": "file", "path": path, "oid": file.git_oid, "size": len(file.data)}
    return entry | ({"lfs": {"oid": file.etag, "size": len(file.data), "pointerSize": 134}} if file.lfs else {})


def _part(data: bytes, request: Request, **headers: str) -> Answer:
    match = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("range", ""))
    if not match:
        return Answer(data, Accept_Ranges="bytes", **headers)
    first, last = int(match.group(1)), int(match.group(2) or len(data) - 1)
    span = f"bytes {first}-{last}/{len(data)}"
    return Answer(data[first : last + 1], 206, Content_Range=span, Accept_Ranges="bytes", **headers)


class _Handler(BaseHTTPRequestHandler):
    hub: LoopbackHub
    protocol_version = "HTTP/1.1"

    def _handle(self):
        url = urlsplit(self.path)  # its path stays quoted, since the name of a revision may hold a slash of its own
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, url.path, query, headers, b"")
        cut = self.hub.cut_for(self.command, url.path)
        request.body = self._read(headers, cut if self.command in ("PUT", "POST") else None)
        if cut is not None and self.command in ("PUT", "POST"):
            self.hub.requests.append(request)
            return self._hang_up()
        answer = self.hub.answer(request)
        request.status = answer.status
        self.send_response(answer.status)
        for name, value in {"Content-Type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body[:cut])
        if cut is not None:
            request.status = 0
            self._hang_up()

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = _handle

    def _read(self, headers: dict[str, str], limit: int | None) -> bytes:
        if headers.get("transfer-encoding") != "chunked":
            size = int(headers.get("content-length", 0))
            return self.rfile.read(size if limit is None else min(size, limit))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
            if limit is not None and len(body) >= limit:
                return body[:limit]
        self.rfile.readline()
        return body

    def _hang_up(self):
        self.close_connection = True
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *_):
        """Nothing on the console: `requests` is the log."""

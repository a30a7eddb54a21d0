"""hub: files over HTTP from a server on this machine."""

from __future__ import annotations

import hashlib
import http.server
import io
import os
import threading
import urllib.error
import zipfile

import pytest

import rushlight
from rushlight import hub


class Handler(http.server.BaseHTTPRequestHandler):
    files: dict[str, bytes] = {}
    asked: list[str] = []

    def do_GET(self):
        self.asked.append(self.path)
        content = self.files.get(self.path.split("?")[0])
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        if "nolength" not in self.path:
            self.send_header("Content-Length", str(len(content) + (10 if "short" in self.path else 0)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    Handler.files, Handler.asked = {}, []
    monkeypatch.setattr(hub, "_dir", str(tmp_path / "hub"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{made.server_port}"
        made.shutdown()
        thread.join()


def weights() -> bytes:
    file = io.BytesIO()
    rushlight.save({"weight": rushlight.arange(4.0)}, file)
    return file.getvalue()


def test_state_dict_is_fetched_once(server, capfd):
    content = weights()
    name = f"net-{hashlib.sha256(content).hexdigest()[:8]}.pth"
    Handler.files["/" + name] = content
    for _ in range(2):
        state = hub.load_state_dict_from_url(f"{server}/{name}?x=1", check_hash=True)
        assert state["weight"].tolist() == [0, 1, 2, 3]
    assert len(Handler.asked) == 1
    assert os.listdir(os.path.join(hub.get_dir(), "checkpoints")) == [name]
    assert f'Downloading: "{server}/{name}?x=1" to' in capfd.readouterr().err


def test_wrong_hash_leaves_nothing(server, tmp_path):
    Handler.files["/net-00000000.pth"] = weights()
    with pytest.raises(RuntimeError, match='invalid hash value \\(expected "00000000", got "'):
        hub.load_state_dict_from_url(f"{server}/net-00000000.pth", str(tmp_path), check_hash=True, progress=False)
    assert os.listdir(tmp_path) == []


def test_missing_and_cut_off_files_leave_nothing(server, tmp_path):
    Handler.files["/short"] = b"123"
    for path, error in (("/nothing", urllib.error.HTTPError), ("/short", RuntimeError)):
        with pytest.raises(error) as caught:
            hub.download_url_to_file(server + path, str(tmp_path / "file"), progress=False)
        if error is urllib.error.HTTPError:
            caught.value.close()
        assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("tqdm", [True, False])
@pytest.mark.parametrize("path", ["/file", "/nolength"])
def test_progress(server, tmp_path, capfd, monkeypatch, tqdm, path):
    if not tqdm:
        monkeypatch.setattr(hub, "_progress_bar", hub._Bar)
    Handler.files[path] = os.urandom(300_000)
    hub.download_url_to_file(server + path, str(tmp_path / "file"))
    assert (tmp_path / "file").read_bytes() == Handler.files[path]
    shown = capfd.readouterr().err
    if tqdm:
        pytest.importorskip("tqdm")
        assert "B/s" in shown
    else:
        assert ("100% of 0.3 MB" if path == "/file" else "0.3 MB") in shown
    hub.download_url_to_file(server + path, str(tmp_path / "quiet"), progress=False)
    assert capfd.readouterr().err == ""


def test_weights_in_an_ordinary_zip(server, tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("net.pth", weights())
    Handler.files["/net.zip"] = packed.getvalue()
    state = hub.load_state_dict_from_url(f"{server}/net.zip", str(tmp_path), progress=False, file_name="other.zip")
    assert state["weight"].tolist() == [0, 1, 2, 3]
    assert os.listdir(tmp_path) == ["other.zip"]


def test_cache_directory(monkeypatch, tmp_path):
    monkeypatch.setattr(hub, "_dir", None)
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    assert hub.get_dir() == str(tmp_path / "hub")
    hub.set_dir(tmp_path / "else")
    assert hub.get_dir() == str(tmp_path / "else")


def test_local_hubconf(tmp_path):
    (tmp_path / "hubconf.py").write_text(
        "dependencies = ['rushlight']\n\ndef net(n):\n    '''A net.'''\n    return n + 1\n\ndef _private(): pass\n"
    )
    assert hub.load(str(tmp_path), "net", 2, source="local") == 3
    assert hub.list(str(tmp_path)) == ["net"]
    assert hub.help(str(tmp_path), "net") == "A net."
    with pytest.raises(RuntimeError, match="Cannot find callable other in hubconf"):
        hub.load(str(tmp_path), "other", source="local")
    with pytest.raises(ValueError, match='source="local"'):
        hub.load("someone/something", "net")


def test_summary_writer(tmp_path):
    pytest.importorskip("tensorboardX")
    from rushlight.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(tmp_path)) as writer:
        writer.add_scalar("loss", rushlight.tensor(0.5, requires_grad=True), 1)
        writer.add_scalars("both", {"a": rushlight.tensor(1.0), "b": 2.0}, 1)
        writer.add_histogram("weights", rushlight.randn(100), 1)
        writer.add_image("image", rushlight.rand(3, 4, 4), 1)
        assert writer.log_dir == str(tmp_path)
    content = b"".join(file.read_bytes() for file in tmp_path.rglob("events*"))
    for tag in (b"loss", b"weights", b"image"):
        assert tag in content


def test_missing_tensorboard_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "tensorboardX", None)
    monkeypatch.delitem(sys.modules, "rushlight.utils.tensorboard", raising=False)
    with pytest.raises(ImportError, match="pip install 'rushlight\\[tensorboard\\]'"):
        import rushlight.utils.tensorboard  # noqa: F401

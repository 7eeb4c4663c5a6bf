import typer
from typer.testing import CliRunner

import pathcast
from pathcast.cli.renew_untrusted_index_command import renew
from pathcast.errors import SnapshotError

app = typer.Typer()
app.command()(renew)


def test_an_index_is_compiled_anew_to_another_folder_or_in_its_place(tmp_path):
    subscriptions = pathcast.Subscriptions()
    subscriptions.add_many(["/a/b", "//c[@d]"], subscribers=["ada", None])
    subscriptions.compile("yfilter").save(tmp_path / "old")
    before = (tmp_path / "old" / "manifest.json").read_bytes()
    done = CliRunner().invoke(app, [str(tmp_path / "old"), str(tmp_path / "new")])
    assert (done.exit_code, done.stdout.strip()) == (
        0,
        f"2 subscriptions, recompiled for 'yfilter': {tmp_path / 'new'}",
    )
    assert pathcast.open_index(tmp_path / "new").match("<a><b/></a>").subscribers == ["ada"]
    assert (tmp_path / "old" / "manifest.json").read_bytes() == before
    assert CliRunner().invoke(app, [str(tmp_path / "old")]).exit_code == 0
    assert (tmp_path / "old" / "manifest.json").read_bytes() != before
    assert pathcast.open_index(tmp_path / "old").match("<c d=''/>").ids.tolist() == [2]


def test_what_is_no_index_is_an_error(tmp_path):
    done = CliRunner().invoke(app, [str(tmp_path)])
    assert isinstance(done.exception, SnapshotError)

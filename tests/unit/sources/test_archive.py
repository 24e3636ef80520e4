"""Packed charts: what is read, what is refused, and that writing is reproducible."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from source_builders import CHART_YAML, chart_tgz, tar_entry, tgz

from becalm.errors import SourceError
from becalm.sources.archive import ArchiveLimits, read_chart_archive, write_chart_archive

CHART = tar_entry("demo/Chart.yaml", CHART_YAML)


def _read(*entries: bytes, **limits: int) -> dict[str, bytes]:
    return read_chart_archive(tgz(*entries), where="charts/x.tgz", limits=ArchiveLimits(**limits))


def _pax(*records: tuple[bytes, bytes], type_: bytes = b"x") -> bytes:
    content = b""
    for key, value in records:
        body = b" " + key + b"=" + value + b"\n"
        length = len(body) + 2
        length += len(str(length)) - 2
        content += b"%d" % length + body
    return tar_entry("PaxHeader", content, type_=type_)


def test_reads_files_below_the_first_folder():
    """The first part of each name is dropped, directories are skipped, content is unchanged."""
    files = _read(
        tar_entry("demo/", type_=b"5"),
        CHART,
        tar_entry("demo/templates/a.yaml", b"\xef\xbb\xbfa: 1\n"),
        tar_entry("other/./templates//b.yaml", b"b"),
    )
    assert files == {
        "Chart.yaml": CHART_YAML,
        "templates/a.yaml": b"\xef\xbb\xbfa: 1\n",
        "templates/b.yaml": b"b",
    }


def test_reads_what_an_ordinary_tar_program_wrote():
    """Long names and names outside of ASCII survive in the pax format of Python's tarfile."""
    long_name = "files/" + "/".join(["é" * 60] * 4)
    assert read_chart_archive(chart_tgz({long_name: b"x"}), where="x")[long_name] == b"x"


def test_reads_gnu_long_names():
    """GNU tar's own way to write a long name is understood."""
    packed = io.BytesIO()
    name = "demo/" + "d" * 200 + "/x"
    with tarfile.open(fileobj=packed, mode="w:gz", format=tarfile.GNU_FORMAT) as archive:
        for path in ("demo/Chart.yaml", name):
            archive.addfile(tarfile.TarInfo(path))
    assert set(read_chart_archive(packed.getvalue(), where="x")) == {"Chart.yaml", "d" * 200 + "/x"}


def test_metadata_is_no_file():
    """Global and extended headers (as in archives from GitHub) leave no file behind."""
    files = _read(
        _pax((b"comment", b"abc"), type_=b"g"), CHART, _pax((b"mtime", b"1.5")), tar_entry("d/x", b"y")
    )
    assert set(files) == {"Chart.yaml", "x"}


def test_an_extended_header_counts_for_one_entry_only():
    """The name in an extended header replaces that of the next entry, not of later ones."""
    files = _read(CHART, _pax((b"path", b"demo/real")), tar_entry("demo/x", b"1"), tar_entry("demo/y", b"2"))
    assert files == {"Chart.yaml": CHART_YAML, "real": b"1", "y": b"2"}


def test_names_from_windows():
    """A name written with backslashes only is read with them as separators, as Helm does."""
    assert set(_read(CHART, tar_entry("demo\\templates\\a.yaml"))) == {"Chart.yaml", "templates/a.yaml"}


def test_a_name_that_is_no_utf8_keeps_its_bytes():
    """Bytes that are no UTF-8 come back when the path is encoded for the file system."""
    files = _read(CHART, tar_entry(b"demo/\xff"))
    assert {os.fsencode(path) for path in files} == {b"Chart.yaml", b"\xff"}


def test_the_same_file_twice_is_fine():
    """An entry that repeats another byte for byte changes nothing."""
    assert _read(CHART, CHART) == {"Chart.yaml": CHART_YAML}


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("../x", "leads out"),
        ("demo/../../x", "leads out"),
        ("demo/a/../b", "leads out"),
        ("demo\\..\\x", "leads out"),
        ("/etc/passwd", "absolute"),
        ("/x", "absolute"),
        ("demo//etc/passwd", "absolute"),
        ("demo/c:/x", "absolute"),
        ("c:/x", "absolute"),
        ("c:\\x", "absolute"),
        ("\\x", "absolute"),
        ("demo/a\\..\\..\\x", "mixes"),
        ("demo\\templates/a", "mixes"),
        ("x", "outside of the chart's folder"),
        ("demo/.", "outside of the chart's folder"),
    ],
)
def test_names_that_are_refused(name, problem):
    """No name leads out of the chart; the message names archive and entry."""
    with pytest.raises(SourceError) as caught:
        _read(CHART, tar_entry(name))
    assert str(caught.value).startswith(f"charts/x.tgz: the entry {name!r}")
    assert problem in str(caught.value)


def test_a_path_hidden_in_metadata_is_refused():
    """The checks see the name that counts, from an extended header or GNU tar's long name."""
    with pytest.raises(SourceError, match="leads out"):
        _read(CHART, _pax((b"path", b"demo/../../x")), tar_entry("demo/x"))
    with pytest.raises(SourceError, match="leads out"):
        _read(CHART, tar_entry("././@LongLink", b"demo/../../x\0", type_=b"L"), tar_entry("demo/x"))


@pytest.mark.parametrize(
    ("type_", "kind"),
    [
        (b"1", "hard link"),
        (b"2", "symbolic link"),
        (b"3", "device"),
        (b"4", "device"),
        (b"6", "named pipe"),
        (b"S", "sparse file"),
        (b"Z", "entry of unknown type"),
    ],
)
def test_kinds_that_are_refused(type_, kind):
    """Links, devices, pipes and anything odd are refused by name."""
    with pytest.raises(SourceError, match=f"the entry 'demo/x' is a {kind}"):
        _read(CHART, tar_entry("demo/x", type_=type_))


def test_a_sparse_file_in_pax_form_is_refused():
    """The other way to write sparse files is refused as well."""
    with pytest.raises(SourceError, match="sparse"):
        _read(CHART, _pax((b"GNU.sparse.major", b"1"), (b"GNU.sparse.minor", b"0")), tar_entry("demo/x"))


@pytest.mark.parametrize(
    ("paths", "problem"),
    [
        (["demo/x", "demo/x/y"], "'x' is a file and a folder at once"),
        (["demo/x/y/z", "demo/x"], "'x' is a file and a folder at once"),
        (["demo/x", "other/x"], "comes twice, with different content"),
    ],
)
def test_names_that_collide_are_refused(paths, problem):
    """An archive that no directory could hold, or that has two versions of a file, is refused."""
    with pytest.raises(SourceError, match=problem):
        _read(CHART, *(tar_entry(path, path.encode()) for path in paths))


@pytest.mark.parametrize("files", [[], ["demo/values.yaml"], ["demo/demo/Chart.yaml"]])
def test_an_archive_without_a_chart_is_refused(files):
    """Chart.yaml has to be there, directly below the first folder."""
    with pytest.raises(SourceError, match=r"holds no Chart\.yaml"):
        _read(*(tar_entry(path) for path in files))


@pytest.mark.parametrize("size", [10, 100, 300])
def test_a_truncated_archive_is_refused(size):
    """A download that broke off is damaged, not a smaller chart."""
    whole = chart_tgz({"templates/a": os.urandom(1000)})
    with pytest.raises(SourceError, match=r"^charts/x.tgz: the archive is damaged or cut off"):
        read_chart_archive(whole[:size], where="charts/x.tgz")


def test_a_truncated_tar_in_a_whole_gzip_is_refused():
    """A tar that ends in the middle of a file or of a header is refused."""
    for cut in (520, 1300):
        with pytest.raises(SourceError, match="damaged or cut off"):
            read_chart_archive(gzip.compress((CHART + CHART)[:cut]), where="x")


def test_corrupt_compression_is_refused():
    """Bits that flipped inside the compressed data are noticed."""
    whole = bytearray(chart_tgz({"templates/a": os.urandom(3000)}))
    whole[60:80] = bytes(20)
    with pytest.raises(SourceError, match="damaged"):
        read_chart_archive(bytes(whole), where="x")


def test_a_broken_header_in_the_middle_is_no_end():
    """What follows a broken header may not be dropped silently."""
    broken = bytearray(tar_entry("demo/templates/a"))
    broken[0] ^= 1
    with pytest.raises(SourceError, match="entry 2 has no valid header"):
        _read(CHART, bytes(broken), tar_entry("demo/templates/b"))


@pytest.mark.parametrize(
    "header",
    [
        tar_entry("demo/x", b"garbage without records", type_=b"x"),
        tar_entry("demo/x", b"99 path=a\n", type_=b"x"),
        _pax((b"path", b"demo/a\0b")),
        _pax((b"size", b"-5")) + tar_entry("demo/x"),
        bytes(512) + CHART,
    ],
    ids=["no record", "wrong length", "NUL in path", "negative size", "a single zero block"],
)
def test_malformed_metadata_is_refused(header):
    """Metadata that Go's reader refuses is refused here."""
    with pytest.raises(SourceError, match="has no valid header"):
        _read(CHART, header, tar_entry("demo/y"))


@pytest.mark.parametrize("data", [b"", b"hello", b"PK\x03\x04", tar_entry("demo/Chart.yaml")])
def test_what_is_not_gzip_is_refused(data):
    """Another format is called what it is not."""
    with pytest.raises(SourceError, match="not a gzipped archive"):
        read_chart_archive(data, where="x")


def test_a_million_entries_are_refused_early():
    """Too many files are refused after the limit's worth of them; the rest is not read."""
    # Members of a gzip file follow each other; what follows the limit is damaged, and never read.
    data = gzip.compress(tar_entry("demo/" + "x" * 50) * 10_000, 1) * 20 + b"damaged" * 1000
    with pytest.raises(SourceError, match="more than 100000 entries"):
        read_chart_archive(data, where="x")


@pytest.mark.parametrize("type_", [b"5", b"x", b"g", b"L"])
def test_entries_of_any_kind_count(type_):
    """Directories and metadata count, so that nobody can hide work in them."""
    content = b"" if type_ == b"5" else b"10 aa=bcd\n"
    with pytest.raises(SourceError, match="more than 10 entries"):
        _read(CHART, *[tar_entry("demo/x", content, type_=type_)] * 10, entries=10)
    if type_ == b"5":
        assert _read(CHART, *[tar_entry("demo/x", type_=type_)] * 9, entries=10)


def test_a_file_above_its_limit_is_refused_unread():
    """A file of 10 GiB that is only claimed costs nothing; the entry is named."""
    header = bytearray(tar_entry("demo/big"))
    header[124:136] = b"%011o\0" % (10 * 1024**3 % 8**11)
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    with pytest.raises(SourceError, match="the entry 'demo/big' is larger than 5 MiB"):
        _read(CHART, bytes(header))


def test_the_limits_of_sizes_are_exact():
    """What is as large as a limit is read; one byte more is refused."""
    total = len(CHART_YAML) + 1000
    assert _read(CHART, tar_entry("demo/x", bytes(1000)), file_bytes=1000, total_bytes=total)
    with pytest.raises(SourceError, match="is larger than"):
        _read(CHART, tar_entry("demo/x", bytes(1001)), file_bytes=1000)
    with pytest.raises(SourceError, match="unpacks to more than"):
        _read(CHART, tar_entry("demo/x", bytes(1001)), total_bytes=total)


@pytest.mark.parametrize("type_", [b"0", b"x", b"L"])
def test_a_gzip_bomb_is_refused_in_bounded_memory(tmp_path, type_):
    """Gigabytes of zeros, as files or as metadata, stop at the total limit."""
    size = 1024**2
    entry = tar_entry(
        "demo/x", b"%d a=%s\n" % (size, b"b" * (size - 11)) if type_ == b"x" else bytes(size), type_=type_
    )
    bomb = tmp_path / "bomb.tgz"
    stream = gzip.compress(entry * 20, 1)
    bomb.write_bytes(stream * 100)  # 2 GiB: members of a gzip file follow each other
    script = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from becalm.errors import SourceError\n"
        "from becalm.sources.archive import ArchiveLimits, read_chart_archive\n"
        "data = Path(sys.argv[1]).read_bytes()\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n"
        "    read_chart_archive(data, where='bomb', limits=ArchiveLimits(total_bytes=30 * 1024 * 1024))\n"
        "except SourceError as error:\n"
        "    print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(bomb)], capture_output=True, text=True, check=True
    )
    message, kilobytes = done.stdout.splitlines()
    assert "unpacks to more than 30 MiB" in message
    assert int(kilobytes) < 60_000


def test_metadata_above_gos_limit_is_refused():
    """One header of metadata may not be larger than Go's reader allows."""
    with pytest.raises(SourceError, match="is larger than 1 MiB"):
        _read(CHART, tar_entry("demo/x", bytes(1024**2 + 1), type_=b"x"))


@given(st.binary(max_size=1500))
def test_no_input_crashes(data):
    """Any bytes, gzipped or not, give a chart or a SourceError."""
    for candidate in (data, b"\x1f\x8b\x08" + data, gzip.compress(CHART + data)):
        message = "x: "
        try:
            read_chart_archive(candidate, where="x")
        except SourceError as error:
            message = str(error)
        assert message.startswith("x: ")


def test_writing_gives_the_same_bytes_for_the_same_files():
    """Neither the order of the files nor the time of day is in the archive."""
    files = {"Chart.yaml": CHART_YAML, "templates/b": b"b", "templates/a": b"a"}
    first = write_chart_archive("demo", files)
    assert first == write_chart_archive("demo", dict(reversed(files.items())))
    assert first[4:8] == bytes(4)
    with tarfile.open(fileobj=io.BytesIO(first)) as archive:
        assert archive.getnames() == ["demo/Chart.yaml", "demo/templates/a", "demo/templates/b"]
        assert {(m.mtime, m.uid, m.mode, m.uname) for m in archive} == {(0, 0, 0o644, "")}


def test_files_are_packed_in_the_order_of_a_directory_walk():
    """A directory comes before its longer-named siblings, as in Helm's own walk."""
    files = {"Chart.yaml": CHART_YAML, "crds/a-b/x": b"", "crds/a/x": b""}
    assert list(read_chart_archive(write_chart_archive("d", files), where="x")) == [
        "Chart.yaml",
        "crds/a/x",
        "crds/a-b/x",
    ]


_PATHS = st.lists(st.text("ab.é\udcff", min_size=1, max_size=90), min_size=1, max_size=4).map("/".join)


@given(
    st.dictionaries(
        _PATHS.filter(lambda path: not {".", ".."} & set(path.split("/"))), st.binary(), max_size=5
    )
)
def test_reading_returns_what_was_written(files):
    """Names of any length and bytes of any kind survive."""
    folders = {path.rsplit("/", n)[0] for path in files for n in range(1, path.count("/") + 1)}
    files = {path: content for path, content in files.items() if path not in folders}
    files["Chart.yaml"] = CHART_YAML
    assert read_chart_archive(write_chart_archive("demo", files), where="x") == files

"""``mlperf-pkg verify``."""

from functools import partial
from pathlib import Path

import click

from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options, secret
from mlperf_pkg.cli.group import EXISTING_FILE, Command, LocalPath
from mlperf_pkg.cli.output import Outputs, refuse_same
from mlperf_pkg.cli.streams import stop_cleanly
from mlperf_pkg.commands.archive.tar import GIB, LARGEST_GIB
from mlperf_pkg.commands.archive.verification import verify_archive, verify_tree
from mlperf_pkg.errors import UserError
from mlperf_pkg.render import FORMATS


@click.command(name="verify", cls=Command)
@click.argument("packed", metavar="ARCHIVE|TREE", type=LocalPath(exists=True))
@options.judged
@click.option(
    "--extract",
    type=LocalPath(),
    metavar="FOLDER",
    help="Unpack the archive into FOLDER, which must not exist yet. If a file has changed since"
    " packing, nothing is unpacked.",
)
@options.count_option(
    "--max-unpacked",
    default=LARGEST_GIB,
    metavar="GIB",
    text="Refuse an archive that unpacks to more than GIB gibibytes.",
)
@secret.option("Decrypt")
@click.option(
    "-i",
    "--identity",
    type=EXISTING_FILE,
    help="Decrypt the archive with the private keys in FILE: identities of the tool age, or SSH"
    " keys.",
)
@options.shown
@options.failing
@options.written(FORMATS, many=True)
def command(
    *,
    packed: Path,
    check_options: Options,
    extract: Path | None,
    max_unpacked: int,
    passphrase_file: Path | None,
    identity: Path | None,
    showing: options.Showing,
    status: options.Status,
    target: Outputs,
) -> int:
    """Verify that an archive or a tree is unchanged and valid.

    An archive is compared with the checksum file beside it, decrypted if necessary, and
    unpacked into a temporary folder. Each file is compared with MANIFEST.json. Then the
    submission is checked as with 'mlperf-pkg check'.

    Exit status: 0 if there is no error, 1 if there is one, 2 if the archive or tree
    could not be verified.

    \b
    Examples:
      mlperf-pkg verify ACME.tar.gz
      mlperf-pkg verify submissions/ACME
      mlperf-pkg verify ACME.tar.gz --extract ACME-unpacked
      mlperf-pkg verify ACME.tar.gz.age --identity key.txt
    """
    with stop_cleanly():
        target.refuse_early([str(packed)])
        refuse_same(extract, *target.files)
        if packed.is_dir() and extract:
            raise UserError("--extract applies only to an archive")
        if packed.is_dir():
            _, report = verify_tree(packed, check_options)
        else:
            ask = partial(secret.passphrase, passphrase_file, new=False)
            largest = max_unpacked * GIB
            report = verify_archive(packed, check_options, ask, identity, extract, largest=largest)
        target.show(report, [str(packed)], showing)
        return status(report)

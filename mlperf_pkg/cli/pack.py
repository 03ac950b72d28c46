"""``mlperf-pkg pack``."""

from __future__ import annotations

from pathlib import Path

import click

from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options, secret
from mlperf_pkg.cli.output import Output, refuse_within
from mlperf_pkg.cli.signals import stop_cleanly
from mlperf_pkg.cli.types import Choice, LocalPath
from mlperf_pkg.commands.archive.encryption import Encryption, Form, recipients
from mlperf_pkg.commands.archive.encryption import command as decrypting
from mlperf_pkg.commands.archive.packing import Packed, default_target, pack, written_names
from mlperf_pkg.commands.archive.verification import integrity_failed, verify_tree
from mlperf_pkg.errors import UserError
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import FORMATS
from mlperf_pkg.results import wording
from mlperf_pkg.results.report import Report


@click.command(name="pack")
@click.argument("tree", type=LocalPath(exists=True, file_okay=False, path_type=Path))
@click.option(
    "-o",
    "--output",
    type=LocalPath(dir_okay=False, path_type=Path),
    help="By default TREE.tar.gz, beside TREE.",
)
@options.judged
@click.option("--encrypt", type=Choice([form.value for form in Form]), help="In which form.")
@click.option(
    "--recipient", multiple=True, metavar="KEY", help="age1... or ssh-..., for age; repeatable."
)
@secret.option("Encrypt")
@click.option("--keep-invalid", is_flag=True, help="Pack what is not valid all the same.")
@click.option("--force", is_flag=True, help="Overwrite files that exist.")
def command(
    *,
    tree: Path,
    output: Path | None,
    how: Options,
    encrypt: str | None,
    recipient: tuple[str, ...],
    passphrase_file: Path | None,
    keep_invalid: bool,
    force: bool,
) -> int:
    """Pack a submission tree into one archive and its checksum file.

    The same tree gives the same bytes, on any machine and at any time. The
    archive holds MANIFEST.json, the SHA-256 of each file; it is made for a
    tree that has none. TREE is checked first and never written to.

    --encrypt age is the age format; openssl is openssl enc -aes-256-cbc
    -pbkdf2; official is what pack_submission.sh --unpack reads, under its name.
    What decrypts it is printed.

    Exit status: 0 if it was packed, 1 if it is not valid, 2 if it could not be
    done.

    \b
    Examples:
      mlperf-pkg pack submissions/ACME
      mlperf-pkg pack submissions/ACME -o /scratch/ACME.tar.gz --force
      mlperf-pkg pack submissions/ACME --encrypt age --recipient age1...
      mlperf-pkg pack submissions/ACME --encrypt openssl --passphrase-file FILE
    """
    with stop_cleanly():
        if not (tree / "results").is_dir():
            raise UserError(f"{tree}: no submission (it holds no results/): build one first")
        form = Form(encrypt) if encrypt else None
        target = output or default_target(tree, form)
        _refuse_early(tree, target, form, force)
        hidden = _encryption(form, recipient, passphrase_file)
        found, report = verify_tree(tree, how, manifest_required=False)
        if refusal := _refusal(report, keep_invalid):
            Output().write(FORMATS["text"](report, Output().view()))
            click.echo(f"nothing was packed: {refusal}", err=True)
            return 1
        for folder in found.empty:
            click.echo(visible(f"note: {folder} is empty and not packed"), err=True)
        Output().write(_text(pack(found, target, hidden, force=force), target, hidden))
        return 0


def _refuse_early(tree: Path, target: Path, form: Form | None, force: bool) -> None:
    refuse_within(target, [str(tree)])
    for name in written_names(target, form):
        Output(target.with_name(name), force).refuse_early([])


def _encryption(
    form: Form | None, keys: tuple[str, ...], passphrase_file: Path | None
) -> Encryption | None:
    if form is not Form.AGE and keys:
        raise UserError("--recipient is for --encrypt age")
    if form is None:
        if passphrase_file:
            raise UserError("--passphrase-file is for --encrypt")
        return None
    if keys:
        if passphrase_file:
            raise UserError("--recipient and --passphrase-file: age takes one or the other")
        recipients(keys)
        return Encryption(form, recipients=keys)
    return Encryption(form, secret.passphrase(passphrase_file, new=True))


def _refusal(report: Report, keep_invalid: bool) -> str | None:
    if integrity_failed(report.findings):
        return "the tree is not what its manifest says, or holds what cannot be packed"
    if keep_invalid or not any(each.is_error for each in report.findings):
        return None
    return "mend this, or pack all the same with --keep-invalid"


def _text(packed: Packed, target: Path, how: Encryption | None) -> str:
    size = f"{wording.counted(packed.files, 'file')}, {packed.unpacked:,} bytes in {packed.size:,}"
    lines = [f"packed {target}: {size}", f"sha256 {packed.sha256}"]
    if how:
        lines.append(f"decrypt with: {decrypting(how, target)}")
    return "".join(f"{visible(line)}\n" for line in lines)

"""``mlperf-pkg pack``."""

from pathlib import Path

import click

from mlperf_pkg.checker.values import Options
from mlperf_pkg.cli import options, secret
from mlperf_pkg.cli.group import Command, LocalPath, SuggestingChoice
from mlperf_pkg.cli.output import Output, note, say
from mlperf_pkg.cli.streams import stop_cleanly
from mlperf_pkg.commands.archive import packing
from mlperf_pkg.commands.archive.encryption import Encryption, Form, recipients
from mlperf_pkg.commands.archive.tar import HashedTree
from mlperf_pkg.commands.archive.verification import integrity_failed, verify_tree
from mlperf_pkg.errors import UserError
from mlperf_pkg.findings import Finding, Severity
from mlperf_pkg.infra.files import refuse_within, sweep
from mlperf_pkg.infra.text import visible
from mlperf_pkg.render import FORMATS
from mlperf_pkg.render.findings import counts_in_words, location, sentence
from mlperf_pkg.results.report import Report
from mlperf_pkg.run.reading import ENDINGS


@click.command(name="pack", cls=Command)
@click.argument("tree", type=LocalPath(exists=True, file_okay=False))
@options.output_option(
    "Write the archive to FILE (default: TREE.tar.gz, beside TREE).", metavar="FILE"
)
@options.judged
@click.option(
    "--encrypt",
    type=SuggestingChoice([form.value for form in Form]),
    help="Encrypt the archive in the format of the tool age (age) or of pack_submission.sh"
    " (official); by default, the archive is not encrypted.",
)
@options.repeatable(
    "--recipient",
    metavar="KEY",
    text="Encrypt for the public key KEY, which begins with age1 or ssh-; only with --encrypt age",
)
@secret.option("Encrypt")
@options.invalid_option
@options.force_option()
def command(
    *,
    tree: Path,
    output: Path | None,
    check_options: Options,
    encrypt: str | None,
    recipient: tuple[str, ...],
    passphrase_file: Path | None,
    invalid: str | None,
    force: bool,
) -> int:
    """Pack a submission tree into one archive with a checksum file.

    The same TREE gives the same bytes on any machine and at any time, if the version of
    the package deflate is the same; the archive records this version. The archive
    contains MANIFEST.json, a list of all files with their SHA-256; if TREE has no such
    list, one is generated for the archive. TREE is checked first, and never changed.

    --invalid drop leaves out the result sets that are not valid, and the system
    descriptions and code that only these sets need. The rest is checked again; the
    tables and MANIFEST.json in the archive list only the rest.

    --encrypt age writes the format of the tool age. --encrypt official writes the
    format that pack_submission.sh --unpack reads, under the file name that this script
    expects. The command that decrypts the archive is printed.

    Exit status: 0 if the tree was packed, 1 if it is not valid, 2 if it could not be
    packed.

    \b
    Examples:
      mlperf-pkg pack submissions/ACME
      mlperf-pkg pack submissions/ACME -o /scratch/ACME.tar.gz --force
      mlperf-pkg pack submissions/ACME --invalid drop
      mlperf-pkg pack submissions/ACME --encrypt age --recipient age1...
      mlperf-pkg pack submissions/ACME --encrypt official --passphrase-file FILE
    """
    with stop_cleanly():
        if not (tree / "results").is_dir():
            raise UserError(f"{tree}: not a submission (no folder results/): build one first")
        form = Form(encrypt) if encrypt else None
        target = output or packing.default_target(tree, form)
        refuse_within(target, [str(tree)])
        sweep(target.parent)
        for name in packing.written_names(target, form):
            Output(target.with_name(name), force).refuse_early([])
        encryption = _encryption(form, recipient, passphrase_file)
        contents, report = verify_tree(tree, check_options, manifest_required=False)
        if invalid == "drop" and not integrity_failed(report.findings):
            contents, report = _without_invalid(contents, report, check_options)
        reason = packing.refusal(report, invalid)
        if reason:
            Output().write(FORMATS["text"](report, Output().view()))
            click.echo(f"nothing was packed, as {reason}", err=True)
            return 1
        for folder in contents.empty:
            if folder in ("results", "systems"):  # without which the archive is not a submission
                raise UserError(f"{tree / folder}: is empty, and an archive has no empty folders")
            note(f"{folder} is empty and not packed")
        lines = packing.pack(contents, target, encryption, force=force)
        lines.append(f"checked: {counts_in_words(report)}")
        for finding in filter(_is_cut_off, report.findings):
            lines.append(f"warning: {location(finding)}: {sentence(finding)}")
        for line in lines:
            Output().write(f"{visible(line)}\n")
        return 0


def _is_cut_off(finding: Finding) -> bool:
    """Return whether a log may be cut off: it ends inside a record or an open run."""
    if finding.severity is not Severity.WARNING:
        return False
    return finding.code == "LOG101" or (finding.code in ENDINGS and finding.found is None)


def _without_invalid(
    tree: HashedTree, report: Report, check_options: Options
) -> tuple[HashedTree, Report]:
    """Leave out the result sets that are not valid, and say why, unless none is valid.

    Repeat this, as the rest may depend on them: weak scaling needs strong scaling.
    """
    while True:
        invalid = packing.reasons(report)
        if not invalid or len(invalid) >= len(report.result_sets):
            return tree, report
        say("note", [f"a result set is left out, because {reason}" for reason in invalid.values()])
        tree, report = packing.without_sets(tree, report, invalid, check_options)


def _encryption(
    form: Form | None, keys: tuple[str, ...], passphrase_file: Path | None
) -> Encryption | None:
    if form is not Form.AGE and keys:
        raise UserError("--recipient applies only to --encrypt age")
    if form is None and passphrase_file:
        raise UserError("--passphrase-file applies only to --encrypt")
    if keys and passphrase_file:
        raise UserError("--recipient and --passphrase-file cannot be used together")
    if form is None:
        return None
    if keys:
        recipients(keys)
        return Encryption(form, recipients=keys)
    return Encryption(form, secret.passphrase(passphrase_file, new=True))

"""The codes of findings that are no rules of the rulebook: what each means and what to do.

A rule's own code is explained by ``rulebook.describe``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from mlperf_pkg.checks import systems
from mlperf_pkg.checks.cases import PACKAGE, RULES
from mlperf_pkg.errors import UserError
from mlperf_pkg.mllog import SOURCE as LOGGING
from mlperf_pkg.rulebook.describe import rulebook_codes

_LOGS = "training_rules, Submission logs"
_SEEDS = "training_rules, Random numbers"
_POINTS = "training_rules, Reference convergence points"
_CODE = "submission_rules, Code"
_STRUCTURE = "submission_rules, Structure"
_OURS = "mlperf-pkg"


@dataclass(frozen=True, slots=True)
class Code:
    """What a code stands for: a title, an explanation in prose, whose rule it is."""

    code: str
    title: str
    explanation: str
    source: str


_SYSTEMS: Mapping[str, str] = {
    "SYS001": "No checker can read the description, and every result of the system fails with it."
    " The line is where reading stopped; a comma before a closing brace is the usual cause.",
    "SYS002": "The official system description checker reads the file as plain UTF-8 and dies of"
    " the mark. Save it as UTF-8 without BOM.",
    "SYS003": "The official checker dies of it. Save the file as UTF-8.",
    "SYS004": "A description is one JSON object: names of fields and their values in braces.",
    "SYS005": "Of a field that is given twice every reader takes the last; a reviewer may see the"
    " first. Keep one.",
    "SYS006": "NaN and Infinity are no JSON; Python reads them, other tools refuse the file.",
    "SYS101": "The official checker asks for every one of these fields, be its value empty. The"
    " hint names a field of nearly the same name, where there is one.",
    "SYS102": "The official summarizer adds this field to others as text and dies of anything"
    " else. Write it in double quotes.",
    "SYS103": "From round 4.0 on the official checker takes one of four texts for the field"
    " 'status', to the letter. The rules take any name of the category, so that another spelling"
    " breaks the checker's rule alone.",
    "SYS104": "The rules know the categories available, preview, and research, development or"
    " internal; nothing is said that names one. No checker looks at it before round 4.0.",
    "SYS201": "The official checkers take every other division for Open: neither seeds nor"
    " convergence are tested then. Reviewers do not.",
    "SYS202": "The rules want a meaningful answer to these fields; none stands there, or a"
    " placeholder such as 'n/a'. Reviewers ask.",
    "SYS301": "The results table multiplies the counts of nodes and processors; it cannot where"
    " one of them is no whole number.",
    "SYS302": "The repository's checker refuses names with spaces or a dot in front.",
    "SYS303": "Readers of descriptions expect a text, or a number where things are counted.",
}

CODES: Mapping[str, Code] = {
    code: Code(code, title, _SYSTEMS[code], source)
    for code, (title, source) in systems.CODES.items()
} | {
    each.code: each
    for each in (
        # ---- logs -------------------------------------------------------------------------
        Code(
            "LOG101",
            "a record is not JSON",
            "What follows ':::MLLOG ' on the line is not JSON. The official parser counts a"
            " parsing error, and the log fails. A run that was killed while it wrote leaves such"
            " a line at the end; several ranks that write one file leave them anywhere.",
            LOGGING,
        ),
        Code(
            "LOG102",
            "a record lacks what every record has",
            "A record is a JSON object with key, value, metadata and a numeric time_ms. Without"
            " one of them the official parser dies, or counts a parsing error where time_ms is a"
            " text that is no number.",
            LOGGING,
        ),
        Code(
            "LOG103",
            "text follows a record on its line",
            "The record can be read, but the official parser wants nothing after it and refuses"
            " the log. Another process printed without a line break: keep other output off the"
            " lines of records.",
            LOGGING,
        ),
        Code(
            "LOG104",
            "two records on one line",
            "The official parser reads only the last record of a line; the others are as if they"
            " were not logged. Log from one rank, or line by line.",
            LOGGING,
        ),
        Code(
            "LOG105",
            "a name stands twice in a record",
            "JSON readers take the last of two values of the same name. Log it once.",
            LOGGING,
        ),
        Code(
            "LOG106",
            "a number that is no JSON",
            "NaN and Infinity are no JSON. The official parser reads them, as Python does; other"
            " tools refuse the line.",
            LOGGING,
        ),
        Code(
            "LOG107",
            "bytes that are no UTF-8",
            "The official parser reads logs as Latin-1, and so accepts any byte; the text may"
            " look wrong to a reader.",
            LOGGING,
        ),
        Code(
            "LOG108",
            "a line that only looks like a record",
            "Records begin with ':::MLLOG' and one space. What begins otherwise, such as ':::MLL'"
            " of the years before 0.7, is not read at all.",
            LOGGING,
        ),
        Code(
            "LOG109",
            "a line too long to be read",
            "So long a line holds no record that a training run writes. It is skipped, and said"
            " to be: nothing on it was checked.",
            LOGGING,
        ),
        Code(
            "LOG110",
            "a file without any record",
            "Not one line of the file holds a record that can be read. Is it the log of the run,"
            " and not that of its launcher?",
            _LOGS,
        ),
        Code(
            "RUN130",
            "a run that did not converge",
            "run_stop says another status than success. One such run (for unet3d four) is"
            " forgiven: it counts as the slowest and is dropped. More of them invalidate the"
            " result, which SET102 says.",
            _LOGS,
        ),
        Code(
            "RUN155",
            "a run that stops before it starts",
            "run_stop carries an earlier time than run_start, so that the run has no time to train."
            " The clocks of two machines, or two runs in one file, are the usual cause.",
            _LOGS,
        ),
        # ---- result sets ------------------------------------------------------------------
        Code(
            "SET101",
            "not the required number of runs",
            "A result is made of a fixed number of runs, files result_0.txt and so on. 'mlperf-pkg"
            " rules list' shows how many each benchmark needs. Of more runs, the rules say which"
            " ones may be submitted.",
            RULES,
        ),
        Code(
            "SET102",
            "too many runs did not converge",
            "As many runs as are dropped at the slow end (one, for unet3d four) may miss the"
            " target. With more of them there is no result.",
            RULES,
        ),
        Code(
            "SET103",
            "too many logs fail the compliance checker",
            "The official package checker forgives as many failing logs as are dropped at one"
            " end, whatever they fail of. This set has more. The findings of the runs say what is"
            " wrong.",
            PACKAGE,
        ),
        Code(
            "SET104",
            "the compliance checker dies of a log",
            "It ends with an exception instead of a verdict, so that the package checker rejects"
            " the set. The message says at which line and why.",
            PACKAGE,
        ),
        Code(
            "SET105",
            "files that nobody reads",
            "Runs are files result_<number>.txt. Other files in the folder of a result set are"
            " read by no checker; a run among them is missing from the result.",
            RULES,
        ),
        Code(
            "SET106",
            "a folder of no benchmark of the round",
            "The official checker skips the folder without a word, and its results with it. Check"
            " the name and the round.",
            RULES,
        ),
        Code(
            "SET107",
            "a run of another benchmark",
            "The log names another benchmark than the folder it lies in.",
            RULES,
        ),
        Code(
            "SET108",
            "runs of different batch sizes",
            "All runs of a result are of one configuration, and the convergence test is made at one"
            " global batch size.",
            RULES,
        ),
        Code(
            "SET110",
            "no system description",
            "Every folder of results is named after a file in systems/, which describes the"
            " machine. Without it the division is unknown.",
            "submission_rules, Systems",
        ),
        Code(
            "SET111",
            "logs and system description disagree on the division",
            "The official checkers believe the description. Correct whichever is wrong.",
            RULES,
        ),
        Code(
            "SET112",
            "a run submitted twice",
            "Two logs have every evaluation with the same value at the same time: they are one"
            " run, copied. Each result file must be a run of its own.",
            RULES,
        ),
        Code(
            "SET113",
            "runs at the same time",
            "A run begins before the one before it has ended. Published results do so where the"
            " system is larger than a run needs; noted, so that a mistake is seen.",
            RULES,
        ),
        Code(
            "SET114",
            "a placeholder instead of a name",
            "submission_org or submission_platform was left as the reference code has it.",
            RULES,
        ),
        Code(
            "SET115",
            "logs and tree name different submitters",
            "submission_org of the logs is unlike the folder of the submitter.",
            RULES,
        ),
        Code(
            "SEED101",
            "a run without a seed",
            "From round 4.1 on every Closed run logs at least one integer seed. The official"
            " package checker asks it of earlier rounds as well.",
            _SEEDS,
        ),
        Code(
            "SEED102",
            "the same seed twice",
            "Two runs of a set logged the same seed from the same line of source: they may be one"
            " run, told twice. Draw seeds from the clock or from the system's entropy.",
            _SEEDS,
        ),
        Code(
            "SEED103",
            "seeds that cannot be read",
            "A seed is an integer, and its record says which file and line logged it (the official"
            " logger adds both). The official seed checker refuses the log otherwise.",
            _SEEDS,
        ),
        Code(
            "SEED104",
            "the same seed from elsewhere",
            "Two runs logged the same seed from different lines of source. The official checker"
            " compares seeds of the same line only; a reviewer may ask.",
            _SEEDS,
        ),
        Code(
            "RCP101",
            "convergence faster than the reference allows",
            "The mean number of epochs or samples to converge is below what reference runs at this"
            " batch size make plausible (a one-sided t-test at 5 %), or there are no reference"
            " points for the batch size. Reviewers decide; 'rcp-bypass' in the set's"
            " package_checker_params asks them to.",
            _POINTS,
        ),
        Code(
            "RCP102",
            "convergence faster than the reference, by request not counted",
            "As RCP101, with 'rcp-bypass' in package_checker_params: the official checker lets it"
            " pass, reviewers look at it.",
            _POINTS,
        ),
        Code(
            "RCP103",
            "the convergence test cannot be made",
            "The official RCP checker ends with an exception: runs of different batch sizes or"
            " benchmarks, numbers that are none, or a benchmark without reference points.",
            PACKAGE,
        ),
        Code(
            "RCP104",
            "a batch size read from another record",
            "The official RCP checker looks for the word global_batch_size in the text of a log,"
            " and takes the number of a record that only mentions it. The convergence test is then"
            " made at the wrong batch size.",
            _POINTS,
        ),
        # ---- trees ------------------------------------------------------------------------
        Code(
            "TREE101",
            "a submission without results",
            "A submission has results/<system>/<benchmark>/result_<number>.txt below it; none was"
            " found, so nothing was checked.",
            _STRUCTURE,
        ),
        Code(
            "TREE102",
            "a link that leads elsewhere",
            "Links out of the folder that is checked are not followed, as a submission may come"
            " from strangers. Copy the file instead.",
            _OURS,
        ),
        Code(
            "TREE120",
            "a system without results",
            "A description in systems/ to which no folder in results/ belongs. Leave it out, or"
            " check the names of both.",
            _STRUCTURE,
        ),
        # ---- code -------------------------------------------------------------------------
        Code(
            "CODE100",
            "a submission without code",
            "There is no folder benchmarks/ with the code of each result: none was checked.",
            _CODE,
        ),
        Code(
            "CODE101",
            "no code for a benchmark",
            "A result needs the code that made it, in benchmarks/<benchmark>/.",
            _CODE,
        ),
        Code(
            "CODE102",
            "a configuration file that is not there",
            "The log says in config_filename which file configured the run; no file of that name is"
            " below benchmarks/.",
            _CODE,
        ),
    )
}
"""Every code that is no rule's."""


def known_code(code: str) -> str:
    """A code as it is spelled, whatever its case.

    Raises:
        UserError: there is none; the nearest is named.
    """
    known = CODES.keys() | rulebook_codes()
    wanted = code.upper()
    if wanted in known:
        return wanted
    near = get_close_matches(wanted, sorted(known), n=3, cutoff=0.7)
    hint = f"did you mean {' or '.join(near)}?" if near else "a code looks like SET101 or BERT111"
    raise UserError(f"no finding has the code {code!r}: {hint}")

"""The commands that run unasked, as data: a command and exactly the flags that keep it a plain reader.

A flag that is not here makes the command ask.  Nothing here runs another program, writes, or reaches the network by any
flag or operand that is listed; commands that can only do so (`awk`, `env`, `xargs`, `tar`, `man`, `less`, interpreters)
are left out altogether.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FIND_PLAIN", "FIND_VALUE", "GIT", "TABLE", "TEST_WORDS", "VERSION", "Spec"]


@dataclass(frozen=True, slots=True)
class Spec:
    """What one command may be given.

    `short`, `long`: flags without a value.  `value`, `long_value`: flags with one (`long_value` also without, by `=`).
    `files`: those of them, letters or long names, whose value is a file that is read.  `operands`: `paths` (their
    content is read), `names` (only names and facts of files), `text`, `pattern` (one text, then paths), `none`, `plus`
    (one that begins with `+`), `git` (revisions and paths).  `most`: at most so many operands; `least` at least.
    `count`: `-5` is a flag.  `risky`: a file name from a glob could be taken for a flag that writes or runs; `planted`:
    one that begins with `@`, or with `-` on some system, even if no flag of the usual program writes.
    """

    operands: str = "paths"
    short: str = ""
    long: str = ""
    value: str = ""
    long_value: str = ""
    files: str = ""
    most: int = 1_000_000
    least: int = 0
    count: bool = False
    risky: bool = False
    planted: bool = False
    attached: str = ""  # letters with a value only if it is glued to them
    pattern_by: str = ""  # flags that bring the pattern, so that every operand is a path


_GREP = Spec(
    "pattern", "EFGPivwxycnHhoqsLlabrTUZzIV",
    "extended-regexp fixed-strings basic-regexp perl-regexp ignore-case no-ignore-case invert-match word-regexp "
    "line-regexp count line-number with-filename no-filename only-matching quiet silent no-messages files-with-matches "
    "files-without-match text recursive initial-tab null null-data line-buffered byte-offset color colour version help",
    "efmABCdD", "regexp max-count after-context before-context context color colour include exclude exclude-dir "
    "binary-files directories devices label exclude-from file", "f file exclude-from",
    count=True, pattern_by="e f regexp file",
)  # fmt: skip
_RG = Spec(
    "pattern", "iISswxvcnNHoluUFPpqabhV0.",
    "ignore-case case-sensitive smart-case word-regexp line-regexp invert-match count count-matches line-number no-line-number "
    "with-filename no-filename only-matching files-with-matches files-without-match files multiline multiline-dotall "
    "fixed-strings pcre2 pretty quiet text hidden no-ignore no-ignore-vcs no-ignore-parent no-ignore-dot no-ignore-global "
    "no-config heading no-heading column no-column vimgrep json stats trim null crlf type-list version help one-file-system "
    "no-messages byte-offset unrestricted passthru no-hidden glob-case-insensitive no-unicode block-buffered "
    "line-buffered debug trace",
    "egftTmABCMjrEd", "regexp glob iglob type type-not max-count after-context before-context context max-columns threads replace "
    "encoding color colors sort sortr max-depth max-filesize path-separator context-separator engine file ignore-file",
    "f file ignore-file", risky=True, pattern_by="e f regexp file files type-list",
)  # fmt: skip
_SUM = Spec(
    "paths", "btzcw", "binary text tag zero check quiet status warn strict ignore-missing", "al", "algorithm length"
)
_NO = Spec("none")

TABLE: dict[str, Spec] = {
    "ls": Spec(
        "names", "aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ1",
        "all almost-all author escape ignore-backups directory classify file-type dereference no-group human-readable si inode "
        "kibibytes numeric-uid-gid literal hide-control-chars quote-name reverse recursive size full-time color hyperlink "
        "group-directories-first help version zero",
        "ITw", "block-size color format hide indicator-style ignore quoting-style sort time time-style tabsize width classify hyperlink",
    ),
    "cat": Spec("paths", "AbeEnstTuv", "show-all number-nonblank show-ends number squeeze-blank show-tabs show-nonprinting help version"),
    "tac": Spec("paths", "br", "before regex", "s", "separator"),
    "head": Spec("paths", "qvz", "quiet silent verbose zero-terminated help version", "nc", "lines bytes", count=True),
    "tail": Spec("paths", "qvz", "quiet silent verbose zero-terminated help version", "nc", "lines bytes", count=True),
    "wc": Spec("paths", "clLmw", "bytes chars lines max-line-length words help version", "", "total"),
    "nl": Spec("paths", "p", "no-renumber", "bdfhilnsvw", "body-numbering number-format number-separator number-width line-increment"),
    "grep": _GREP, "egrep": _GREP, "fgrep": _GREP,
    "rg": _RG,
    "sort": Spec(
        "paths", "bdfghiMnRrVcCmsuz",
        "ignore-leading-blanks dictionary-order ignore-case general-numeric-sort ignore-nonprinting month-sort "
        "human-numeric-sort numeric-sort random-sort reverse version-sort check merge stable unique zero-terminated debug",
        "ktS", "key field-separator sort buffer-size parallel check", risky=True,
    ),
    "uniq": Spec(
        "paths", "cdDiuz", "count repeated ignore-case unique zero-terminated all-repeated group",
        "fsw", "skip-fields skip-chars check-chars all-repeated group", most=1, risky=True,
    ),
    "cut": Spec("paths", "nsz", "complement only-delimited zero-terminated", "bcdf", "bytes characters delimiter fields output-delimiter"),
    "tr": Spec("text", "cCdst", "complement delete squeeze-repeats truncate-set1", most=2),
    "rev": Spec(),
    "paste": Spec("paths", "sz", "serial zero-terminated", "d", "delimiters"),
    "join": Spec("paths", "iz", "ignore-case check-order nocheck-order header zero-terminated", "aejotv12"),
    "comm": Spec("paths", "123z", "check-order nocheck-order total zero-terminated", "", "output-delimiter"),
    "cmp": Spec("paths", "bls", "print-bytes verbose silent quiet", "in", "ignore-initial bytes"),
    "column": Spec("paths", "txLne", "table fillrows", "scoNHR", "separator output-separator columns table-columns"),
    "fold": Spec("paths", "bs", "bytes spaces", "w", "width"),
    "fmt": Spec("paths", "cstu", "", "wpg", "width"),
    "expand": Spec("paths", "i", "initial", "t", "tabs"),
    "unexpand": Spec("paths", "a", "all first-only", "t", "tabs"),
    "diff": Spec(
        "paths", "abBcdeEHiNnpqrstTuwyZ",
        "text ignore-space-change ignore-blank-lines minimal ed ignore-tab-expansion ignore-case new-file brief recursive "
        "report-identical-files expand-tabs initial-tab unified side-by-side ignore-all-space suppress-common-lines "
        "strip-trailing-cr ignore-trailing-space speed-large-files show-c-function left-column no-dereference color normal rcs",
        "UCWIxFL", "unified context width ignore-matching-lines exclude color label show-function-line tabsize palette",
        attached="BMCX",
    count=True,
    ),
    "od": Spec("paths", "abcdfiloxsvh", "output-duplicates", "AjNtwS", "address-radix skip-bytes read-bytes format width"),
    "hexdump": Spec("paths", "bcCdovx", "canonical", "ns", "length skip"),
    "hd": Spec("paths", "v", "", "ns"),
    "xxd": Spec("paths", "abCeEiupP", "", "clsogn", most=1, risky=True),
    "strings": Spec("paths", "afow", "all print-file-name", "net", "bytes radix encoding", count=True, planted=True),
    "base64": Spec("paths", "di", "decode ignore-garbage", "w", "wrap", planted=True),
    "base32": Spec("paths", "di", "decode ignore-garbage", "w", "wrap", planted=True),
    "md5sum": _SUM, "sha1sum": _SUM, "sha224sum": _SUM, "sha256sum": _SUM, "sha384sum": _SUM, "sha512sum": _SUM,
    "b2sum": _SUM, "cksum": _SUM, "sum": Spec("paths", "rs"), "shasum": Spec("paths", "btc", "check", "a", "algorithm"),
    "stat": Spec("names", "Lftxs", "dereference file-system terse", "c", "format printf cached"),
    "file": Spec(
        "names", "bEhiIkLNnrsv0", "brief mime mime-type mime-encoding keep-going dereference no-dereference no-buffer raw version",
        "F", "separator", risky=True,
    ),
    "du": Spec(
        "names", "0abcDhHklmPsSx",
        "all apparent-size bytes total human-readable si summarize separate-dirs one-file-system null inodes time",
        "dtB", "max-depth threshold block-size exclude time time-style",
    ),
    "df": Spec("names", "ahHiklPTm", "all human-readable si inodes local portability print-type total no-sync", "BtxF", "block-size type exclude-type output"),
    "tree": Spec(
        "names", "adfixpsughDFqNnCArtcUvSQJX", "dirsfirst filesfirst noreport gitignore prune du si matchdirs ignore-case help version inodes device",
        "LPI", "filelimit sort charset timefmt", risky=True,
    ),
    "basename": Spec("text", "az", "multiple zero", "s", "suffix"),
    "dirname": Spec("text", "z", "zero"),
    "realpath": Spec("names", "emLPqsz", "canonicalize-existing canonicalize-missing logical physical quiet strip no-symlinks zero", "", "relative-to relative-base"),
    "readlink": Spec("names", "femnqsvz", "canonicalize canonicalize-existing canonicalize-missing no-newline quiet silent verbose zero"),
    "pwd": Spec("none", "LP"),
    "echo": Spec("text", "neE"),
    "seq": Spec("text", "w", "equal-width", "fs", "format separator", most=3),
    "sleep": Spec("text", most=1),
    "true": Spec("text"), "false": Spec("text"), ":": Spec("text"),
    "exit": Spec("text", most=1), "return": Spec("text", most=1), "break": Spec("text", most=1), "continue": Spec("text", most=1),
    "which": Spec("text", "as", "all"),
    "type": Spec("text", "afptP"),
    "whereis": Spec("text", "bms"),
    "date": Spec(
        "plus", "uRI", "utc universal rfc-email iso-8601 rfc-3339", "dr", "date iso-8601 rfc-3339 reference", "r reference",
        most=1, attached="I",
    ),
    "expr": Spec("text"),
    "pgrep": Spec(
        "text", "flaxcnoviw", "full list-full list-name exact count newest oldest inverse ignore-case lightweight",
        "uUPgGtsd", "euid uid parent pgroup group terminal session delimiter",
    ),
    "cal": Spec("text", "13myj"),
    "whoami": _NO, "logname": _NO, "arch": _NO, "tty": Spec("none", "s"), "groups": _NO, "users": _NO, "wait": _NO, "jobs": Spec("none", "lnprs"),
    "hostname": Spec("none", "sfidI", "short fqdn long ip-address all-ip-addresses domain"),
    "id": Spec("none", "gGnruz", "group groups name real user zero"),
    "uname": Spec("none", "asnrvmpio", "all kernel-name nodename kernel-release kernel-version machine processor operating-system"),
    "nproc": Spec("none", "", "all", "", "ignore"),
    "uptime": Spec("none", "ps", "pretty since"),
    "free": Spec("none", "bkmghtwl", "human mega giga kibi mebi gibi total wide lohi si"),
    "lscpu": Spec("none", "abcexyJ", "json all"),
    "locale": Spec("none", "am"),
    "getconf": Spec("text", "a", most=2),
    "jq": Spec(
        "pattern", "rcnSsejMCaRj", "raw-output compact-output null-input sort-keys slurp exit-status monochrome-output "
        "color-output ascii-output raw-input join-output tab stream seq", "", "indent", risky=True,
    ),
}  # fmt: skip

VERSION = {
    "python": "--version -V", "python3": "--version -V", "node": "--version -v", "npm": "--version -v", "pip": "--version -V",
    "pip3": "--version -V", "uv": "--version -V", "ruff": "--version -V", "mypy": "--version -V", "gcc": "--version", "g++": "--version",
    "clang": "--version", "cc": "--version", "cmake": "--version", "make": "--version", "java": "-version --version", "javac": "-version --version",
    "ruby": "--version -v", "perl": "--version -v", "php": "--version -v", "bash": "--version", "zsh": "--version", "docker": "--version -v",
    "tmux": "-V", "curl": "--version -V", "wget": "--version -V", "rg": "--version -V", "jq": "--version -V", "fd": "--version -V",
    "sed": "--version", "awk": "--version", "find": "--version", "tar": "--version", "ssh": "-V", "gh": "--version", "git": "--version",
    "sqlite3": "--version -version", "openssl": "version", "vim": "--version", "nvim": "--version -v", "tsc": "--version -v", "deno": "--version -V",
}  # fmt: skip

_PRETTY = (
    "oneline abbrev-commit no-abbrev-commit no-color color no-patch patch raw stat numstat shortstat summary name-only name-status "
    "patch-with-stat compact-summary minimal patience histogram no-renames find-renames find-copies find-copies-harder full-index "
    "binary ignore-space-at-eol ignore-space-change ignore-all-space ignore-blank-lines function-context no-ext-diff no-textconv "
    "text exit-code quiet check word-diff color-words cached staged merge-base no-prefix dirstat cumulative no-relative relative "
    "abbrev ignore-cr-at-eol indent-heuristic no-indent-heuristic default-prefix no-color-moved "
    "pickaxe-all pickaxe-regex irreversible-delete submodule no-index color-moved combined-all-paths cc ours theirs base"
)
_PRETTY_VALUE = (
    "stat format pretty date abbrev diff-filter color unified word-diff word-diff-regex color-words diff-algorithm find-renames find-copies "
    "inter-hunk-context src-prefix dst-prefix line-prefix ignore-submodules submodule color-moved dirstat stat-width stat-count relative "
    "rotate-to skip-to anchored ws-error-highlight color-moved-ws abbrev-commit"
)
_WALK = (
    "all branches tags remotes graph reverse merges no-merges first-parent follow decorate no-decorate source topo-order date-order "
    "author-date-order boundary left-right left-only right-only cherry-pick cherry-mark cherry full-history simplify-merges ancestry-path simplify-by-decoration "
    "walk-reflogs no-walk invert-grep all-match extended-regexp fixed-strings perl-regexp regexp-ignore-case parents children "
    "show-pulls log-size use-mailmap no-mailmap mailmap relative-date clear-decorations notes no-notes count objects not full-diff dense sparse "
    "no-expand-tabs merge bisect reflog do-walk diff-merges"
)
_WALK_VALUE = (
    "max-count skip since after until before author committer grep grep-reflog decorate decorate-refs decorate-refs-exclude glob exclude "
    "min-parents max-parents encoding diff-merges no-walk branches tags remotes ancestry-path notes since-as-filter"
)
_DIFF = Spec("git", "pusRabwWDtcmRzq", _PRETTY, "UGSOl", _PRETTY_VALUE, "O", attached="BMCX", risky=True)
_LOG = Spec(
    "git",
    "pusRabwWDtcmziEFPgq",
    f"{_PRETTY} {_WALK}",
    "nUGSLl",
    f"{_PRETTY_VALUE} {_WALK_VALUE}",
    count=True,
    risky=True,
)
_LIST = "contains no-contains merged no-merged"
_LIST_VALUE = "sort format contains no-contains merged no-merged points-at color column abbrev"
GIT: dict[str, Spec] = {
    "status": Spec("git", "sbvz", "short branch show-stash porcelain long verbose ignored renames no-renames ahead-behind no-ahead-behind null column no-column", "", "untracked-files ignored porcelain ignore-submodules column find-renames", attached="u", risky=True),
    "log": _LOG, "show": _LOG, "whatchanged": _LOG, "rev-list": _LOG,
    "diff": _DIFF, "diff-tree": Spec("git", "rpuszcmt", f"{_PRETTY} no-commit-id root always pretty", "UGS", _PRETTY_VALUE, attached="MC", risky=True),
    "diff-index": _DIFF, "diff-files": _DIFF, "range-diff": Spec("git", "s", _PRETTY, "", _PRETTY_VALUE + " creation-factor", risky=True),
    "blame": Spec("git", "pletfnswbc", "porcelain line-porcelain root show-name show-number show-email show-stats incremental reverse first-parent progress color-lines color-by-age", "L", "since abbrev date ignore-rev", attached="MC", risky=True),
    "annotate": Spec("git", "ltw", "", "L", attached="MC", risky=True),
    "shortlog": Spec("git", "nsec", f"numbered summary email committer {_WALK}", "", f"group {_WALK_VALUE} format", attached="w", risky=True),
    "grep": Spec(
        "git", "ivwnHhlLczoEFGPpWqaIr1e",
        "ignore-case invert-match word-regexp line-number with-filename files-with-matches name-only files-without-match count null only-matching "
        "extended-regexp fixed-strings basic-regexp perl-regexp show-function function-context quiet text cached untracked heading break color no-color "
        "and or not all-match column full-name recurse-submodules no-recursive recursive exclude-standard no-exclude-standard",
        "ABCm", "after-context before-context context max-depth max-count threads color", count=True, risky=True,
    ),
    "ls-files": Spec("git", "cdomiskutvfz", "cached deleted others modified ignored stage directory no-empty-directory unmerged killed exclude-standard full-name error-unmatch eol deduplicate recurse-submodules debug sparse", "x", "exclude format abbrev with-tree", risky=True),
    "ls-tree": Spec("git", "drtlz", "long name-only name-status object-only full-name full-tree", "", "format abbrev", risky=True),
    "cat-file": Spec("git", "pte s".replace(" ", ""), "", most=2, risky=True),
    "rev-parse": Spec("git", "q", "verify quiet short abbrev-ref show-toplevel show-prefix show-cdup git-dir absolute-git-dir git-common-dir is-inside-work-tree is-inside-git-dir is-bare-repository symbolic-full-name symbolic all branches tags remotes show-superproject-working-tree show-object-format is-shallow-repository revs-only no-revs", "", "short abbrev-ref git-path path-format since until", risky=True),
    "describe": Spec("git", "", "all tags contains long always dirty exact-match first-parent broken", "", "abbrev candidates match exclude dirty", risky=True),
    "merge-base": Spec("git", "a", "all octopus independent is-ancestor fork-point", risky=True),
    "name-rev": Spec("git", "", "tags all name-only always no-undefined", "", "refs exclude", risky=True),
    "for-each-ref": Spec("git", "", "ignore-case", "", f"count {_LIST_VALUE} exclude", risky=True),
    "show-ref": Spec("git", "dsqh", "head heads tags branches dereference verify quiet hash", "", "hash abbrev", risky=True),
    "show-branch": Spec("git", "ra", "all remotes current more list sha1-name no-name topics", "", "more", risky=True),
    "cherry": Spec("git", "v", "verbose abbrev", risky=True),
    "count-objects": Spec("none", "vH", "verbose human-readable"),
    "check-ignore": Spec("git", "qvzn", "quiet verbose non-matching no-index", risky=True),
    "check-attr": Spec("git", "az", "all cached", risky=True),
    "verify-commit": Spec("none", most=0, least=1), "var": Spec("none", most=0, least=1),
    "version": Spec("none", "", "build-options"),
    # Verbs that also write: operands only where the flag makes them a list (checked in the git module).
    "branch": Spec("git", "arvl", f"all remotes verbose list show-current ignore-case no-color color no-column column omit-empty {_LIST}", "", _LIST_VALUE, risky=True),
    "tag": Spec("git", "l", f"list ignore-case no-column column omit-empty color {_LIST}", "", _LIST_VALUE, attached="n", risky=True),
    "stash": Spec("git", "pu", f"{_PRETTY} oneline include-untracked", "n", _PRETTY_VALUE + " max-count", count=True, risky=True),
    "reflog": _LOG,
    "remote": Spec("git", "v", "verbose all push", risky=True),
    "worktree": Spec("git", "vz", "porcelain verbose", risky=True),
    "submodule": Spec("git", "", "recursive cached", risky=True),
    "notes": Spec("git", risky=True),
    "clean": Spec("git", "ndxXq", "dry-run quiet", "e", "exclude", risky=True),
    "apply": Spec(
        "git", "Rvz", "check stat numstat summary reverse verbose recount unidiff-zero ignore-whitespace ignore-space-change",
        "pC", "directory exclude include whitespace", risky=True,
    ),
    "config": Spec("git", "z", "get get-all get-regexp local global system show-origin show-scope null name-only bool int path type", "", "type default", risky=True),
    "symbolic-ref": Spec("git", "q", "short quiet", most=1, least=1, risky=True),
}  # fmt: skip

FIND_PLAIN = (
    "-print -print0 -ls -prune -quit -depth -mount -xdev -daystart -noleaf -empty -executable -readable -writable "
    "-nouser -nogroup -true -false -not -and -or -a -o ! ( ) , -H -P"
)
FIND_VALUE = (
    "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size -mtime -mmin -ctime -cmin "
    "-atime -amin -newer -anewer -cnewer -newermt -newerat -newerct -perm -user -group -uid -gid -maxdepth -mindepth -links "
    "-inum -samefile -lname -ilname -fstype -printf -used"
)
TEST_WORDS = (
    "! ( ) -a -o -b -c -d -e -f -g -G -h -k -L -n -N -O -p -r -s -S -t -u -w -x -z = == != < > =~ -nt -ot -ef && ||"
)
